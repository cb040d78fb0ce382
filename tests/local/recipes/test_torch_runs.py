"""PyTorch under torchrun (static and c10d) and without it, as real processes on the local cluster, over gloo."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobset_steps.observed import JobSetView
from jobset_steps.recipes import ddp, torchrun
from jobset_steps.spec.jobset import FailurePolicy, JobSet

SCRIPT = Path(__file__).with_name("ddp_train.py")

Run = Callable[[JobSet], JobSetView]
Logs = Callable[[], dict[str, str]]

WAYS: dict[str, dict[str, Any]] = {
    "static": {"recipe": torchrun},
    "c10d": {"recipe": torchrun, "rendezvous": "c10d"},
    "ddp": {"recipe": ddp},
}


def training(way: str, env: dict[str, str], *args: Any, **more: Any) -> JobSet:
    """Two pods of two processes each."""
    options = {"nodes": 2, "nproc_per_node": 2, "failure_policy": FailurePolicy.resilient(1), **WAYS[way]}
    recipe = options.pop("recipe")
    made = recipe(
        "ddp",
        image="none",
        script=SCRIPT,
        args=args,
        env=env,
        checkpoints="pvc://checkpoints/ddp",
        **options | more,
    )
    assert isinstance(made, JobSet)
    return made


def of_attempt(logs: Logs, number: int) -> str:
    return "".join(text for name, text in logs().items() if f"attempt-{number}/" in name)


@pytest.mark.parametrize("way", WAYS)
def test_b12_a_crash_restarts_all_of_them_once_and_they_resume(
    way: str, run: Run, logs: Logs, torch_env: dict[str, str]
) -> None:
    # Given two pods of two processes, of which the last ends after step 3 of the first attempt
    seen = run(training(way, torch_env, "--ends", 3))

    # Then the set was restarted once, by the JobSet, and completed
    assert (seen.terminal_state, seen.restarts, seen.restarts_counted) == ("Completed", 1, 1), logs()
    first, second = of_attempt(logs, 0), of_attempt(logs, 1)
    assert "ends now" in first
    # And every process had the environment of its place, in both attempts
    for written in (first, second):
        places = sorted(re.findall(r"env (\d) (\d) (\d) (\d) (\d) pod (\d)", written))
        assert [place[:5] for place in places] == [
            ("0", "0", "2", "4", "0"),
            ("1", "1", "2", "4", "0"),
            ("2", "0", "2", "4", "1"),
            ("3", "1", "2", "4", "1"),
        ]
        if way != "c10d":  # which leaves the order of pods to torchrun
            assert [place[5] for place in places] == ["0", "0", "1", "1"]
    # And all of them went on where the checkpoint was
    assert re.findall(r"begins at step (\d), attempt 1", second) == ["3"] * 4
    assert second.count("ends with step 6") == 4


@pytest.mark.parametrize("way", WAYS)
def test_a_fatal_exit_code_of_one_process_ends_the_set_at_once(
    way: str, run: Run, logs: Logs, torch_env: dict[str, str]
) -> None:
    # Given two nodes of one process, of which the second ends with a code that no restart mends, and the first then breaks
    seen = run(training(way, torch_env, "--ends", 1, "--code", 65, nproc_per_node=1))

    assert (seen.terminal_state, seen.restarts) == ("Failed", 0), logs()
    failed = seen.condition("Failed")
    assert failed is not None
    assert failed.reason == "FailJobSetFailurePolicyAction"


@pytest.mark.parametrize("way", WAYS)
def test_a_pod_that_hangs_does_not_keep_the_set_from_restarting(
    way: str, run: Run, logs: Logs, torch_env: dict[str, str]
) -> None:
    # Given pods of one process, of which the second crashes while the first hangs
    begun = time.monotonic()
    seen = run(training(way, torch_env, "--ends", 1, "--hangs", 0, nproc_per_node=1))

    # Then the hanging one is not waited for
    assert (seen.terminal_state, seen.restarts) == ("Completed", 1), logs()
    assert time.monotonic() - begun < 60
