"""The runner carries out what supervisors ask for, on any clock, for any number of steps."""

from __future__ import annotations

from typing import Any

import pytest
from virtual import hooks, plan, simulated

from jobset_steps.clusters.simulated.scripts import Case, PodScript, Scripts
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.runner import Hooks, manifest_of
from jobset_steps.supervisor.inputs import EndCause, EndRequest, Progress, Say
from jobset_steps.supervisor.plan import EngineAttempt
from tests.unit.spec.examples import job, jobset, replicated

TWO = jobset(replicated("leader"), replicated("workers", replicas=2), failurePolicy={"maxRestarts": 1})
CRASH = Scripts(
    cases=(
        Case(
            replicated_job="workers",
            job=1,
            attempt=0,
            script=PodScript(runs=5.0, exit_code=17, log=("boom",)),
        ),
    ),
    default=PodScript(runs=10.0),
)


def test_a_step_runs_from_its_plan_to_its_outcome() -> None:
    cluster, runner = simulated(CRASH)
    delivered: list[Outcome] = []
    said: list[Say] = []
    outcome = runner.run(plan(TWO), hooks(delivered, say=said.append))
    assert outcome.verdict is Verdict.SUCCEEDED
    assert outcome.restarts.total == 1
    assert outcome.attempts[0].cause is not None
    assert (outcome.attempts[0].cause.exit_code, outcome.attempts[0].cause.job_index) == (17, 1)
    assert delivered == [outcome]
    assert list(cluster.created.values()) == [1]
    assert Progress.RESTARTING in [each.progress for each in said]


def test_many_steps_share_one_loop() -> None:
    cluster, runner = simulated(Scripts(default=PodScript(runs=10.0)))
    handles = [runner.add(plan(jobset(), run=f"run-{number}"), hooks()) for number in range(300)]
    runner.run_all()
    assert {handle.outcome.verdict for handle in handles if handle.outcome} == {Verdict.SUCCEEDED}
    assert len(cluster.created) == 300


def test_a4_a_step_that_is_told_to_end_deletes_its_jobset() -> None:
    cluster, runner = simulated(Scripts(default=PodScript(runs=None)))

    def end(said: Say) -> None:
        if said.progress is Progress.RUNNING:
            handle.end(EndRequest(EndCause.CANCEL, "test"))

    handle = runner.add(plan(TWO), hooks(say=end))
    runner.run_all()
    assert handle.outcome is not None
    assert (handle.outcome.verdict, handle.outcome.exit_code) == (Verdict.CANCELLED, 143)
    assert cluster.read(handle.outcome.jobset).jobset is None


def test_a1_a_launcher_that_comes_back_adopts_and_creates_nothing() -> None:
    cluster, runner = simulated(CRASH)
    seen = 0

    def evicted(_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == 8:
            handle.end(EndRequest(EndCause.EVICTION, "test"))

    handle = runner.add(plan(TWO), hooks(seen=evicted))
    runner.run_all()
    assert handle.outcome is not None
    assert (handle.outcome.verdict, handle.outcome.exit_code) == (Verdict.UNKNOWN, 76)
    outcome = runner.run(plan(TWO, engine=EngineAttempt("launcher-2", 1)), hooks())
    assert outcome.verdict is Verdict.SUCCEEDED
    assert list(cluster.created.values()) == [1]


def test_what_nobody_foresaw_ends_its_own_step_and_leaves_the_jobset() -> None:
    cluster, runner = simulated(Scripts(default=PodScript(runs=10.0)))

    def broken(_: Outcome) -> None:
        raise RuntimeError("a defect")

    first = runner.add(plan(jobset(), run="a"), hooks())
    second = runner.add(plan(jobset(), run="b"), Hooks(deliver=broken))
    runner.run_all()
    assert first.outcome is not None
    assert first.outcome.verdict is Verdict.SUCCEEDED
    assert second.outcome is not None
    assert (second.outcome.reason, second.outcome.exit_code) == ("InternalError", 70)
    assert "a defect" in second.outcome.message
    assert cluster.read(second.outcome.jobset).jobset is not None


def test_outputs_that_cannot_be_written_are_tried_again() -> None:
    _, runner = simulated(Scripts(default=PodScript(runs=1.0)))
    tries = 0

    def full_disk(_: Outcome) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise OSError("no space left on device")

    assert runner.run(plan(jobset()), Hooks(deliver=full_disk)).verdict is Verdict.SUCCEEDED
    assert tries == 3


@pytest.mark.parametrize("kind", ["unavailable", "unauthorized"])
def test_a9_faults_of_reads_and_watches_never_fail_a_training(kind: str) -> None:
    cluster, runner = simulated(Scripts(default=PodScript(runs=3600.0)))
    cluster.faults.order("read", kind, times=20)
    assert runner.run(plan(jobset()), hooks()).verdict is Verdict.SUCCEEDED


def test_a_manifest_carries_the_marks_of_its_step() -> None:
    made = manifest_of(
        plan(jobset(replicated(spec=job())), annotations=(("jobset-steps/model-uri", "/m"),)), "name", 2
    )
    template = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert made["metadata"]["annotations"]["jobset-steps/generation"] == "2"
    assert template["metadata"]["annotations"]["jobset-steps/model-uri"] == "/m"
