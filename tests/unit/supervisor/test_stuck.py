"""What a start-up is stuck on: told early in the cluster's words, a verdict only where nothing can help."""

from __future__ import annotations

from typing import Any

import pytest
from step_talk import (
    START,
    Talk,
    completed,
    event,
    failed_job,
    job,
    jobset,
    jobset_view,
    plan,
    pod,
    queued,
    starting,
)

from jobset_steps.observed import Condition, ContainerView, JobSetView, PodView, ReplicatedJobStatus, View
from jobset_steps.outcome import Verdict
from jobset_steps.supervisor import Phase
from jobset_steps.supervisor.inputs import Delete, Progress, Read
from jobset_steps.supervisor.progress import stretch_of, stuck_on
from jobset_steps.supervisor.state import Stretch

UNMADE = 'Job.batch "train-workers-0" is invalid: spec.completions: Required value: when completion mode is Indexed'


def _silent(talk: Talk) -> JobSetView:
    """Our JobSet as a controller leaves it that never got to write a status."""
    return jobset_view(talk.plan, replicated_jobs=())


def _starting(**more: Any) -> Talk:
    talk = Talk(plan(**more))
    talk.create()
    return talk


def _waiting_container(reason: str, message: str) -> tuple[ContainerView, ...]:
    return (ContainerView("main", "waiting", reason, message),)


def test_c4_a_child_job_that_can_never_be_created_ends_as_stuck_within_a_minute() -> None:
    talk = _starting()
    talk.watch(_silent(talk))
    talk.sleep(31)
    assert talk.pending == [Read(talk.state.name, events=True)]
    talk.read(_silent(talk), events=(event("JobCreationFailed", UNMADE, count=14, at=talk.now),))

    talk.done(Delete)
    talk.read(None)
    assert (talk.outcome.verdict, talk.outcome.reason, talk.outcome.exit_code) == (
        Verdict.STUCK,
        "JobCreationFailed",
        65,
    )
    assert "spec.completions" in talk.outcome.message
    assert talk.now - START < 60


def test_c4_an_event_seen_once_just_now_is_told_and_not_yet_a_verdict() -> None:
    talk = _starting()
    talk.watch(_silent(talk))
    talk.sleep(31)
    talk.read(_silent(talk), events=(event("JobCreationFailed", UNMADE, count=1, at=talk.now),))

    assert talk.said[-1].progress is Progress.STUCK
    assert talk.finish is None
    talk.sleep(61)
    talk.read(_silent(talk), events=(event("JobCreationFailed", UNMADE, count=1, at=START + 30),))
    assert talk.all(Delete)


@pytest.mark.parametrize(
    "message",
    ['jobs.batch "x" is forbidden: exceeded quota: team', "Internal error occurred: failed calling webhook"],
)
def test_c4_a_creation_that_may_succeed_later_is_never_a_verdict(message: str) -> None:
    talk = _starting()
    talk.watch(_silent(talk))
    for _ in range(10):
        talk.sleep(1801)
        if talk.asks(Delete):
            break
        if talk.asks(Read):
            talk.read(_silent(talk), events=(event("JobCreationFailed", message, count=500, at=talk.now),))

    assert talk.state.phase is not Phase.WAITING
    talk.done(Delete)
    talk.read(None)
    assert talk.outcome.verdict is Verdict.STARTUP_TIMEOUT
    assert talk.outcome.reason in ("QuotaExceeded", "JobCreationFailed")
    assert message in talk.outcome.message


def test_c4_an_old_event_is_no_verdict_once_the_job_is_there() -> None:
    talk = _starting()
    talk.watch(starting(talk.plan))
    talk.sleep(31)
    events = (event("JobCreationFailed", UNMADE, count=14, at=START),)
    talk.read(starting(talk.plan), jobs=(job(talk.plan),), events=events)

    assert not talk.all(Delete)


def test_c8_a_pod_that_terminates_for_ever_is_told_with_its_node() -> None:
    # Given a pod on a dead node, terminating for 15 minutes, and no restart
    talk = _starting()
    dying = pod(talk.plan, 1, deleting_since=START, node="node-7")
    talk.watch(jobset_view(talk.plan), pod(talk.plan), dying)
    assert talk.said[-1].progress is Progress.RUNNING

    # When nothing more happens
    talk.sleep(900)
    if talk.asks(Read):
        talk.read(jobset_view(talk.plan), pod(talk.plan), dying)

    # Then it is told, with the node, without a read being needed
    stuck = [say for say in talk.said if say.cause == "Terminating"]
    assert stuck
    assert "node-7" in stuck[0].message
    assert talk.finish is None
    assert len(talk.all(Read)) <= 1


def test_an_unschedulable_pod_is_told_in_the_schedulers_words() -> None:
    talk = _starting()
    words = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    scheduled = Condition("PodScheduled", "False", "Unschedulable", words, START)
    waiting = pod(talk.plan, phase="Pending", ready=False, conditions=(scheduled,))
    talk.watch(starting(talk.plan), waiting, jobs=(job(talk.plan),))
    talk.sleep(61)

    assert talk.said[-1].progress is Progress.STUCK
    assert talk.said[-1].cause == "Unschedulable"
    assert words in talk.said[-1].message


@pytest.mark.parametrize("reason", ["ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError"])
def test_a_container_that_cannot_start_is_told_at_once(reason: str) -> None:
    talk = _starting()
    waiting = pod(
        talk.plan, phase="Pending", ready=False, containers=_waiting_container(reason, "no such image")
    )
    talk.watch(starting(talk.plan), waiting)

    assert (talk.said[-1].progress, talk.said[-1].cause) == (Progress.STUCK, reason)
    assert "no such image" in talk.said[-1].message


def test_what_was_stuck_and_goes_on_is_told_too() -> None:
    talk = _starting()
    waiting = pod(talk.plan, phase="Pending", ready=False, containers=_waiting_container("ErrImagePull", "x"))
    talk.watch(starting(talk.plan), waiting)
    talk.watch(jobset_view(talk.plan), pod(talk.plan))

    assert talk.said[-1].progress is Progress.RUNNING
    talk.watch(completed(talk.plan), pod(talk.plan, phase="Succeeded"))
    assert talk.outcome.verdict is Verdict.SUCCEEDED


def test_a_start_up_timeout_names_what_it_was_stuck_on() -> None:
    talk = _starting(budgets={"startup": "5m"})
    waiting = pod(
        talk.plan, phase="Pending", ready=False, containers=_waiting_container("ErrImagePull", "gone")
    )
    talk.watch(starting(talk.plan), waiting)
    while not talk.asks(Delete):
        talk.read(starting(talk.plan), waiting) if talk.asks(Read) else talk.sleep(30)
    talk.done(Delete)
    talk.read(None)

    assert (talk.outcome.verdict, talk.outcome.reason) == (Verdict.STARTUP_TIMEOUT, "ErrImagePull")
    assert "gone" in talk.outcome.message


def test_jobs_that_somebody_else_suspended_are_told() -> None:
    talk = _starting()
    suspended = job(talk.plan, suspended=True)
    talk.watch(starting(talk.plan), jobs=(suspended,))
    talk.sleep(121)
    if talk.asks(Read):
        talk.read(starting(talk.plan), jobs=(suspended,))

    assert any(say.cause == "JobSuspended" for say in talk.said)


def test_no_controller_is_told_after_a_minute() -> None:
    talk = _starting()
    talk.watch(_silent(talk))
    talk.sleep(31)
    talk.read(_silent(talk))
    talk.sleep(61)

    assert any(say.cause == "NoController" for say in talk.said)
    assert talk.finish is None


def test_events_are_asked_for_only_while_progress_stands_still() -> None:
    talk = _starting()
    talk.watch(jobset_view(talk.plan))
    for _ in range(5):
        talk.sleep(1801)
        if talk.asks(Read):
            talk.read(jobset_view(talk.plan))

    assert talk.all(Read)
    assert not any(read.events for read in talk.all(Read))


def _view(jobset: JobSetView, *pods: PodView, **more: Any) -> View:
    return View(jobset, pods=pods, read_at=START, **more)


def test_pods_held_by_scheduling_gates_are_queued() -> None:
    p = plan()
    gate = Condition("PodScheduled", "False", "SchedulingGated", "", START)
    gated = pod(p, phase="Pending", ready=False, conditions=(gate,))

    assert stretch_of(p.jobset, _view(starting(p), gated)) is Stretch.QUEUED
    assert stretch_of(p.jobset, _view(queued(p))) is Stretch.QUEUED
    assert stretch_of(p.jobset, _view(jobset_view(p), pod(p))) is Stretch.RUNNING


def test_a_replicated_job_that_waits_for_another_is_not_missing() -> None:
    # Given workers that depend on an initialiser's completion
    template = jobset().to_dict()["spec"]["replicatedJobs"][0]["template"]
    jobs = [
        {"name": "init", "template": template},
        {"name": "workers", "template": template, "dependsOn": [{"name": "init", "status": "Complete"}]},
    ]
    p = plan(spec=jobset(replicatedJobs=jobs))
    statuses = (ReplicatedJobStatus("init", ready=1, active=1), ReplicatedJobStatus("workers"))

    # Then it runs while the initialiser runs
    assert stretch_of(p.jobset, _view(jobset_view(p, replicated_jobs=statuses))) is Stretch.RUNNING
    # and starts once that has completed
    statuses = (ReplicatedJobStatus("init", succeeded=1), ReplicatedJobStatus("workers"))
    assert stretch_of(p.jobset, _view(jobset_view(p, replicated_jobs=statuses))) is Stretch.STARTING


def test_in_order_the_next_replicated_job_is_due_once_the_one_before_is_ready() -> None:
    template = jobset().to_dict()["spec"]["replicatedJobs"][0]["template"]
    jobs = [{"name": "first", "template": template}, {"name": "second", "template": template}]
    p = plan(spec=jobset(replicatedJobs=jobs, startupPolicy={"startupPolicyOrder": "InOrder"}))
    suspended = job(p, suspended=True)
    statuses = (ReplicatedJobStatus("first", active=1), ReplicatedJobStatus("second", suspended=1))
    view = _view(jobset_view(p, replicated_jobs=statuses), jobs=(suspended,))

    # The second one's Job is suspended by JobSet itself, and nobody else's doing
    assert stuck_on(p.jobset, view, (), START + 1000) is None
    assert stretch_of(p.jobset, view) is Stretch.STARTING


def test_a_finished_job_counts_as_started() -> None:
    p = plan()
    view = _view(
        jobset_view(p, replicated_jobs=(ReplicatedJobStatus("workers", failed=1),)), jobs=(failed_job(p),)
    )

    assert stretch_of(p.jobset, view) is Stretch.RUNNING
