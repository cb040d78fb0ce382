"""The xgboost recipe as real processes on the local cluster, over XGBoost's own collective."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from jobset_steps.observed import JobSetView
from jobset_steps.recipes import xgboost
from jobset_steps.spec.jobset import FailurePolicy, JobSet

SCRIPT = Path(__file__).with_name("boost_train.py")

Run = Callable[[JobSet], JobSetView]
Logs = Callable[[], dict[str, str]]


def boost(*args: str) -> JobSet:
    made = xgboost(
        "boost",
        image="none",
        script=SCRIPT,
        args=args,
        workers=2,
        checkpoints="pvc://checkpoints/boost",
        failure_policy=FailurePolicy.resilient(max_restarts=1),
    )
    assert isinstance(made, JobSet)
    return made


def test_leader_and_workers_train_together_and_ranks_are_places(run: Run, logs: Logs) -> None:
    seen = run(boost())

    assert (seen.terminal_state, seen.restarts) == ("Completed", 0)
    written = "".join(logs().values())
    ranks = sorted(re.findall(r"rank (\d) of (\d), place (\d)", written))
    assert ranks == [
        ("0", "3", "0"),
        ("1", "3", "1"),
        ("2", "3", "2"),
    ]
    assert written.count("ends with 6 rounds") == 3


def test_a_leader_that_dies_restarts_the_set_which_resumes_from_the_newest_checkpoint(
    run: Run, logs: Logs
) -> None:
    # Given a leader, who hosts the tracker and has connections open, that dies after round 3 of the first attempt
    seen = run(boost("--dies", "0"))

    # Then the set was restarted once and completed
    assert (seen.terminal_state, seen.restarts, seen.restarts_counted) == ("Completed", 1, 1)
    first, second = (
        "".join(text for name, text in logs().items() if f"attempt-{n}/" in name) for n in (0, 1)
    )
    assert "dies now" in first
    # And every rank of the second attempt went on where the checkpoint was
    assert re.findall(r"begins at round (\d), attempt 1", second) == ["3", "3", "3"]
    assert second.count("ends with 6 rounds") == 3
