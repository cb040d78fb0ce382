"""The leader announces, the others ask: over real sockets on the loopback interface."""

import socket
import threading
from dataclasses import replace

import pytest

from jobset_steps.worker import MissingEnvironment, context
from jobset_steps.worker.rendezvous import announce, ask

HOST = "127.0.0.1"


@pytest.fixture
def here():
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    return context(
        {
            "JOBSET_NAME": "train",
            "JOBSET_STEPS_RANK_OFFSET": "0",
            "JOBSET_STEPS_WORLD_SIZE": "2",
            "JOBSET_STEPS_PORT": str(port),
            "JOBSET_RESTART_ATTEMPT": "1",
        }
    )


def test_who_asks_is_told_what_the_leader_announces(here):
    with announce(here, HOST, {"tracker_port": 4711}):
        assert [ask(here, HOST, 5)["tracker_port"] for _ in range(3)] == [4711] * 3


def test_b12_a_leader_that_does_not_listen_yet_is_waited_for(here):
    told = []
    asker = threading.Thread(target=lambda: told.append(ask(here, HOST, 10)["tracker_port"]))
    asker.start()

    with announce(here, HOST, {"tracker_port": 1}):
        asker.join(10)

    assert told == [1]


def test_c10_a_leader_of_an_earlier_attempt_is_passed_over(here):
    earlier = replace(here, attempt=0)
    said = r"leader of train attempt 1 .*: train attempt 0 answers"

    with announce(earlier, HOST, {"tracker_port": 1}), pytest.raises(TimeoutError, match=said):
        ask(here, HOST, 0.3)


def test_a_port_that_an_earlier_attempt_has_just_left_is_free(here):
    for attempt in range(3):
        now = replace(here, attempt=attempt)
        with announce(now, HOST, {"tracker_port": attempt}):
            assert ask(now, HOST, 5)["tracker_port"] == attempt


def test_without_a_port_the_variable_is_named(here):
    with pytest.raises(MissingEnvironment, match="JOBSET_STEPS_PORT"):
        ask(replace(here, port=0), HOST, 1)
