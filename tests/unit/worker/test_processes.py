"""What starts the processes of one pod for torch.distributed's env://, as a pod has it: its source on the command line."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import jobset_steps.worker
from jobset_steps.worker import processes

SOURCE = (Path(jobset_steps.worker.__file__).parent / "processes.py").read_text()
POD = {"JOBSET_STEPS_RANK_OFFSET": "0", "JOBSET_STEPS_WORLD_SIZE": "3", "JOB_COMPLETION_INDEX": "2"}


def start(number, script, **env):
    environ = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"} | POD | env
    return subprocess.Popen(
        [sys.executable, "-c", SOURCE, str(number), sys.executable, "-c", script],
        env=environ,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


NAMES = "RANK LOCAL_RANK LOCAL_WORLD_SIZE WORLD_SIZE NODE_RANK GROUP_RANK GROUP_WORLD_SIZE OMP_NUM_THREADS"
SAYS = (
    "import os, sys; "
    f"sys.stdout.write(' '.join(os.environ.get(name, '-') for name in {NAMES!r}.split()) + chr(10))"
)


def test_every_process_knows_its_place_in_its_pod_and_among_all():
    process = start(2, SAYS)

    said = process.communicate(timeout=20)[0]
    assert sorted(said.splitlines()) == ["4 0 2 6 2 2 3 1", "5 1 2 6 2 2 3 1"]
    assert process.returncode == 0


def test_one_process_takes_the_starters_place():
    process = start(1, SAYS + "; print(os.getpid())")

    place, pid = process.communicate(timeout=20)[0].splitlines()
    assert place == "2 0 1 3 2 2 3 -"
    assert int(pid) == process.pid


def test_the_pods_of_several_jobs_are_counted_on():
    pod = POD | {
        "JOBSET_STEPS_RANK_OFFSET": "1",
        "JOBSET_STEPS_JOB_INDEX": "2",
        "JOBSET_STEPS_PODS_PER_JOB": "4",
    }

    assert processes.variables(pod, 1, 8)["RANK"] == str((1 + 2 * 4 + 2) * 8 + 1)


def test_an_authors_number_of_threads_is_kept():
    process = start(2, SAYS, OMP_NUM_THREADS="6")

    assert [line.split()[-1] for line in process.communicate(timeout=20)[0].splitlines()] == ["6", "6"]


ONE_FAILS = """
import os, signal, sys, time
if os.environ["LOCAL_RANK"] == "1":
    {end}
signal.signal(signal.SIGTERM, lambda *_: (print("told", flush=True), sys.exit(0)))
print("up", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(("end", "code"), [("sys.exit(66)", 66), ("os.kill(os.getpid(), 9)", 137)])
def test_the_first_failure_ends_the_others_and_is_the_exit_code(end, code):
    waits = "time.sleep(0.5); "  # until the others have their handler

    process = start(3, ONE_FAILS.format(end=waits + end))

    assert process.communicate(timeout=40)[0].count("told") == 2
    assert process.returncode == code


def test_a_process_that_swallows_sigterm_is_killed_after_the_grace():
    ignores = "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    script = (
        ignores + "time.sleep(0.3); sys.exit(7) if os.environ['LOCAL_RANK'] == '0' else time.sleep(600)\n"
    )
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            SOURCE.replace("GRACE = 30.0", "GRACE = 0.1"),
            "2",
            sys.executable,
            "-c",
            script,
        ],
        env=os.environ | POD,
    )

    assert process.wait(30) == 7


def test_signals_reach_every_process():
    script = """
import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: (print("heard", flush=True), sys.exit(0)))
print("up", flush=True)
time.sleep(30)
"""
    process = start(2, script)
    assert [process.stdout.readline() for _ in range(2)] == ["up\n"] * 2

    process.send_signal(signal.SIGUSR1)

    assert process.communicate(timeout=20)[0].count("heard") == 2
    assert process.returncode == 0


@pytest.mark.parametrize("number", [1, 2])
def test_a_command_that_is_not_there_is_named(number):
    done = subprocess.run(
        [sys.executable, "-c", SOURCE, str(number), "no-such-command"],
        env=os.environ | POD,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )

    assert "cannot run no-such-command: No such file" in done.stderr
    assert done.returncode == 127
