"""What each failure policy makes of each failure, by runs with real exits, signals and a machine that is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jobset_steps.clusters.local import LocalCluster
from jobset_steps.observed import JobSetView
from jobset_steps.recipes import ddp
from jobset_steps.spec.jobset import FailurePolicy, JobSet

Run = Callable[[JobSet], JobSetView]
Logs = Callable[[], dict[str, str]]

SCRIPT = Path(__file__).with_name("fails_once.py")
POLICIES = {
    "resilient": FailurePolicy.resilient(),
    "spot": FailurePolicy.spot(),
    "fail_fast": FailurePolicy.fail_fast(),
}
FREE, COUNTED = ("Completed", 1, 0), ("Completed", 1, 1)
FAILED = ("Failed", 0, 0)
# failure -> policy -> (terminal state, restarts, restarts that count)
ANSWERS = {
    "1": {"resilient": COUNTED, "spot": COUNTED, "fail_fast": FAILED},
    "65": {"resilient": FAILED, "spot": FAILED, "fail_fast": FAILED},
    "SIGKILL": {"resilient": COUNTED, "spot": COUNTED, "fail_fast": FAILED},
    "SIGTERM": {"resilient": COUNTED, "spot": FREE, "fail_fast": FAILED},
    "taken": {"resilient": FREE, "spot": FREE, "fail_fast": FAILED},
}


def training(failure: str, policy: str) -> JobSet:
    made = ddp("train", image="none", script=SCRIPT, args=[failure], nodes=2, failure_policy=POLICIES[policy])
    assert isinstance(made, JobSet)
    return made


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("failure", [failure for failure in ANSWERS if failure != "taken"])
def test_a_failure_of_the_training(failure: str, policy: str, run: Run, logs: Logs) -> None:
    seen = run(training(failure, policy))

    answer = (seen.terminal_state, seen.restarts, seen.restarts_counted)
    assert answer == ANSWERS[failure][policy], logs()


@pytest.mark.parametrize("policy", POLICIES)
def test_c8_a_machine_that_is_lost(
    policy: str, run: Run, logs: Logs, cluster: LocalCluster, later: Callable[..., None]
) -> None:
    def lose_the_machine() -> None:
        end = time.monotonic() + 30
        while "".join(logs().values()).count("begins") < 2 and time.monotonic() < end:
            time.sleep(0.05)
        assert cluster.guardian is not None
        os.kill(cluster.guardian, signal.SIGKILL)

    # Given both pods run, the process goes that stands for their machine
    later(lose_the_machine)
    seen = run(training("taken", policy))

    answer = (seen.terminal_state, seen.restarts, seen.restarts_counted)
    assert answer == ANSWERS["taken"][policy], logs()
