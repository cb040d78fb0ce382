import os
import signal
import threading
from contextlib import suppress

import pytest

from jobset_steps.worker import Terminated, terminating


def sigterm():
    os.kill(os.getpid(), signal.SIGTERM)


def train(body):
    """Training code that runs `body(termination)` inside terminating()."""
    with terminating() as termination:
        body(termination)


def test_sigterm_ends_with_143():
    with pytest.raises(SystemExit) as end:
        train(lambda termination: sigterm())

    assert end.value.code == 143


def test_a_checkpoint_is_finished_first():
    done = []

    def body(termination):
        with termination.finishing():
            sigterm()
            done.append("checkpoint")
        done.append("next round")

    with pytest.raises(Terminated):
        train(body)
    assert done == ["checkpoint"]


def test_blocks_nest():
    done = []

    def body(termination):
        with termination.finishing():
            with termination.finishing():
                sigterm()
            done.append("outer")

    with pytest.raises(Terminated):
        train(body)
    assert done == ["outer"]


def test_a_thread_that_holds_hands_the_end_to_the_main_thread():
    held, release = threading.Event(), threading.Event()

    def body(termination):
        def save():
            with termination.finishing():
                held.set()
                release.wait(5)

        saver = threading.Thread(target=save)
        saver.start()
        held.wait(5)
        sigterm()
        assert termination.requested  # and nothing was raised: the thread still holds
        release.set()
        threading.Event().wait(5)

    with pytest.raises(Terminated):
        train(body)


def test_c12_code_that_swallows_sigterm_does_not_end_well():
    def body(termination):
        with suppress(SystemExit):  # such code exists, inside training libraries
            sigterm()

    with pytest.raises(SystemExit) as end:
        train(body)
    assert end.value.code == 143


def test_c12_code_that_answers_sigterm_with_exit_0_does_not_end_well():
    def body(termination):
        try:
            sigterm()
        except SystemExit:
            raise SystemExit(0) from None

    with pytest.raises(SystemExit) as end:
        train(body)
    assert end.value.code == 143


def test_a_last_checkpoint_may_be_saved_on_the_way_out():
    saved = []

    def body(termination):
        try:
            sigterm()
        except Terminated:
            with termination.finishing():
                saved.append(True)
            raise

    with pytest.raises(Terminated):
        train(body)
    assert saved == [True]


def test_an_error_of_the_training_stays_the_error():
    def body(termination):
        with termination.finishing():
            sigterm()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(body)


def test_without_sigterm_nothing_changes():
    before = signal.getsignal(signal.SIGTERM)

    with terminating() as termination, termination.finishing():
        pass

    assert not termination.requested
    assert signal.getsignal(signal.SIGTERM) is before


def test_only_the_main_thread_can_handle_signals():
    errors = []

    def enter():
        try:
            train(lambda termination: None)
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()

    assert "main thread" in errors[0]
