"""A leader and workers of different templates as real processes: who starts first, and whose success is the step's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from jobset_steps.observed import JobSetView
from jobset_steps.recipes import Role, leader_workers
from jobset_steps.spec.jobset import FailurePolicy, JobSet

Run = Callable[[JobSet], JobSetView]
Logs = Callable[[], dict[str, str]]

HERE = Path(__file__).parent


def actors_and_driver(first: Literal["leader", "workers"] | None, **env: Any) -> JobSet:
    made = leader_workers(
        "rl",
        leader=Role(image="none", script=HERE / "rl_driver.py", env=env),
        workers=Role(image="none", script=HERE / "rl_actor.py", env={"FLAVOUR": "b"}),
        count=2,
        first=first,
        succeeds_with="leader",
        failure_policy=FailurePolicy.resilient(1),
    )
    assert isinstance(made, JobSet)
    return made


@pytest.mark.parametrize("first", [None, "leader", "workers"])
def test_the_leaders_success_completes_the_set_and_ends_the_workers(
    first: Literal["leader", "workers"] | None, run: Run, logs: Logs
) -> None:
    seen = run(actors_and_driver(first))

    assert (seen.terminal_state, seen.restarts) == ("Completed", 0), logs()
    written = "".join(logs().values())
    assert "heard actor-0-b actor-1-b" in written
    assert written.count("actor starts") == 2


def test_a_leader_that_crashes_restarts_the_workers_too(run: Run, logs: Logs) -> None:
    seen = run(actors_and_driver("workers", CRASHES=1))

    assert (seen.terminal_state, seen.restarts, seen.restarts_counted) == ("Completed", 1, 1), logs()
    assert "".join(logs().values()).count("actor starts") == 4
