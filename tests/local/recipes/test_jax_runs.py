"""The jax recipe as real processes on the local cluster: jax.distributed on CPUs, collectives over gloo."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobset_steps.observed import JobSetView
from jobset_steps.recipes import jax
from jobset_steps.spec.jobset import FailurePolicy, JobSet

SCRIPT = Path(__file__).with_name("jax_train.py")

Run = Callable[[JobSet], JobSetView]
Logs = Callable[[], dict[str, str]]


def training(*args: Any, nodes: int = 3) -> JobSet:
    made = jax(
        "jax",
        image="none",
        script=SCRIPT,
        args=args,
        nodes=nodes,
        env={"JAX_PLATFORMS": "cpu"},
        checkpoints="pvc://checkpoints/jax",
        failure_policy=FailurePolicy.resilient(1),
    )
    assert isinstance(made, JobSet)
    return made


def test_a_process_that_crashes_restarts_all_and_they_resume(run: Run, logs: Logs) -> None:
    # Given three processes of which the last ends after step 3 of the first attempt
    seen = run(training("--ends", 2))

    # Then all were restarted once and completed
    assert (seen.terminal_state, seen.restarts, seen.restarts_counted) == ("Completed", 1, 1), logs()
    first, second = (
        "".join(text for name, text in logs().items() if f"attempt-{n}/" in name) for n in (0, 1)
    )
    assert "ends now" in first
    # And JAX's processes are the pods' places, in both attempts
    for written in (first, second):
        places = re.findall(r"process (\d) of (\d), (\d) devices, place (\d)", written)
        assert sorted(places) == [(str(n), "3", "3", str(n)) for n in range(3)]
    # And all of them went on where the checkpoint was
    assert re.findall(r"begins at step (\d), attempt 1", second) == ["3"] * 3
    assert second.count("ends with step 6") == 3


@pytest.mark.parametrize("how", ["worker", "plain"])
def test_a_script_joins_by_jaxs_own_call_or_by_the_workers(how: str, run: Run, logs: Logs) -> None:
    seen = run(training(*(["--plain"] if how == "plain" else []), nodes=2))

    assert (seen.terminal_state, seen.restarts) == ("Completed", 0), logs()
    assert "".join(logs().values()).count("ends with step 6") == 2


def test_a_fatal_exit_code_ends_the_set_at_once(run: Run, logs: Logs) -> None:
    seen = run(training("--ends", 1, "--code", 65, nodes=2))

    failed = seen.condition("Failed")
    assert failed is not None, logs()
    assert (seen.restarts, failed.reason) == (0, "FailJobSetFailurePolicyAction"), logs()
