import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import jobset_steps.worker.entry
from jobset_steps.worker import context, wait_for_coordinator

SOURCE = Path(jobset_steps.worker.entry.__file__).read_text()


class Network:
    """A resolver that knows the name only from a certain second on, with its own clock."""

    def __init__(self, known_from):
        self.now = 1000.0
        self.start = self.now
        self.known_from = known_from
        self.asked = 0

    def resolve(self, host, port):
        self.asked += 1
        if self.now - self.start < self.known_from:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", 0))]

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def somewhere():
    return context(
        {
            "JOBSET_STEPS_RANK_OFFSET": "0",
            "JOBSET_STEPS_WORLD_SIZE": "1",
            "JOBSET_STEPS_COORDINATOR": "train-leader-0-0.train",
        }
    )


def wait(network, timeout):
    return wait_for_coordinator(
        timeout, where=somewhere(), resolve=network.resolve, clock=network.clock, sleep=network.sleep
    )


def test_c21_a_resolver_that_fails_for_40_seconds_is_waited_for():
    network = Network(known_from=40)

    assert wait(network, timeout=60) == "10.0.0.7"
    assert 40 <= network.now - network.start <= 41


def test_c21_a_name_that_never_comes_is_an_error_that_names_it():
    network = Network(known_from=10_000)

    with pytest.raises(TimeoutError, match=r"train-leader-0-0\.train did not resolve within 60 s"):
        wait(network, timeout=60)

    assert network.now - network.start == 60


def entry(*command, **kwargs):
    """The entry as a pod has it: its source on the command line."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("JOBSET")}
    environ |= kwargs.pop("env", {})
    return subprocess.Popen([sys.executable, "-c", SOURCE, "--", *command], env=environ, text=True, **kwargs)


def python(script):
    return [sys.executable, "-c", script]


@pytest.mark.parametrize("code", [0, 1, 17, 75])
def test_the_commands_own_exit_code_is_kept(code):
    assert entry(*python(f"raise SystemExit({code})")).wait(20) == code


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, 137), (signal.SIGSEGV, 139)])
def test_the_commands_signal_is_kept(number, code):
    assert entry(*python(f"import os; os.kill(os.getpid(), {int(number)})")).wait(20) == code


def patient(*command, world):
    """The entry of a pod of `world` pods, which holds an end back for longer than any test lasts."""
    source = SOURCE.replace("LAG = 2.0", "LAG = 600.0")
    environ = os.environ | {"JOBSET_STEPS_WORLD_SIZE": str(world)}
    arguments = [sys.executable, "-c", source, "--", *command]
    return subprocess.Popen(arguments, env=environ, text=True, stdout=subprocess.PIPE)


@pytest.mark.parametrize(("code", "world"), [(0, 2), (65, 2), (137, 2), (1, 1)])
def test_an_end_that_is_its_own_cause_is_told_at_once(code, world):
    process = patient(*python(f"raise SystemExit({code})"), world=world)

    process.communicate(timeout=20)
    assert process.returncode == code


@pytest.mark.parametrize("code", [1, 134])
def test_an_end_that_a_lost_peer_gives_is_held_back_but_not_beyond_sigterm(code):
    # Given a pod of two whose command ended as one does whose peer is gone
    process = patient(*python(f"import os; print(os.getpid(), flush=True); os._exit({code})"), world=2)
    command = Path(f"/proc/{process.stdout.readline().strip()}")
    end = time.monotonic() + 20
    while command.exists() and time.monotonic() < end:
        time.sleep(0.01)

    # When the set's restart ends it
    process.terminate()

    # Then it goes, with the command's exit code
    process.communicate(timeout=20)
    assert process.returncode == code


SWALLOWS = """
import signal, sys, time
def finish(number, frame):
    print("checkpoint finished", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, finish)
print("training", flush=True)
time.sleep(30)
"""


def test_c12_a_command_that_answers_sigterm_with_0_ends_with_143():
    process = entry(*python(SWALLOWS), stdout=subprocess.PIPE)
    assert process.stdout.readline() == "training\n"

    process.terminate()

    assert process.communicate(timeout=20)[0] == "checkpoint finished\n"
    assert process.returncode == 143


def test_c12_a_command_that_sigterm_kills_ends_with_143():
    process = entry(*python("import time; print('up', flush=True); time.sleep(30)"), stdout=subprocess.PIPE)
    process.stdout.readline()

    process.terminate()

    process.communicate(timeout=20)
    assert process.returncode == 143


def test_c12_sigterm_while_waiting_for_the_coordinator_ends_with_143():
    waits = "import time; time.sleep = lambda s, sleep=time.sleep: (print('waits', flush=True), sleep(s))\n"
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            waits + SOURCE.replace("from __future__ import annotations", ""),
            "--",
            "true",
        ],
        env=os.environ | {"JOBSET_STEPS_COORDINATOR": "nobody.invalid"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "waits\n"

    process.terminate()

    process.communicate(timeout=20)
    assert process.returncode == 143


def test_other_signals_reach_the_command():
    script = """
import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(9))
print("up", flush=True)
time.sleep(30)
"""
    process = entry(*python(script), stdout=subprocess.PIPE)
    process.stdout.readline()

    process.send_signal(signal.SIGUSR1)

    process.communicate(timeout=20)
    assert process.returncode == 9


def test_the_coordinators_name_is_waited_for_and_then_the_command_runs():
    process = entry(
        *python("print('ran')"), env={"JOBSET_STEPS_COORDINATOR": "127.0.0.1"}, stdout=subprocess.PIPE
    )

    assert process.communicate(timeout=20)[0] == "ran\n"
    assert process.returncode == 0


def test_who_is_told_to_begin_at_once_waits_for_no_name():
    done = subprocess.run(
        [sys.executable, "-c", SOURCE, "--at-once", "--", *python("print('ran')")],
        env=os.environ | {"JOBSET_STEPS_COORDINATOR": "nobody.invalid"},
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )

    assert (done.stdout, done.returncode) == ("ran\n", 0)


def test_a_command_that_is_not_there_is_named():
    process = entry("no-such-command", stderr=subprocess.PIPE)

    said = process.communicate(timeout=20)[1]
    assert "cannot run no-such-command: No such file" in said
    assert "Traceback" not in said
    assert process.returncode == 127


def test_it_is_a_module_too():
    done = subprocess.run(
        [sys.executable, "-m", "jobset_steps.worker", "--", *python("raise SystemExit(3)")],
        check=False,
        timeout=20,
    )
    assert done.returncode == 3

    nothing = subprocess.run(
        [sys.executable, "-m", "jobset_steps.worker"], check=False, timeout=20, capture_output=True, text=True
    )
    assert nothing.returncode == 64
    assert "a command is missing" in nothing.stderr
