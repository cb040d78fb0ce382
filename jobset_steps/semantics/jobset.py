"""What the JobSet controller does next: from a spec, its status and its child Jobs to one Decision.

`reconcile` is one pass of JobSet 0.11.1, in its order: finished, failed, succeeded, create, suspend or resume. It
creates and deletes nothing itself; who carries a Decision out applies the new status only if every creation worked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from jobset_steps.observed import Condition, EventView, JobSetView, JobView
from jobset_steps.semantics.child_jobs import ChildJobs
from jobset_steps.semantics.children import child_job_name, replicas_of
from jobset_steps.semantics.conditions import jobset_condition
from jobset_steps.semantics.failure_policy import decide_failure
from jobset_steps.semantics.startup import dependencies_met, has_started, in_order
from jobset_steps.semantics.success_policy import is_met

if TYPE_CHECKING:
    from jobset_steps.spec.jobset import JobSetSpec, ReplicatedJob

__all__ = ["Decision", "NewJob", "decide", "reconcile"]

_CONTROLLER = "jobset.sigs.k8s.io/jobset-controller"


@dataclass(frozen=True, slots=True)
class NewJob:
    """A child Job to create. `attempt` is its restart-attempt label."""

    name: str
    replicated_job: str
    index: int
    attempt: int
    suspended: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What one pass of the controller asks for.

    `status` is the JobSet after it, the same object where nothing changes. `delete`, `suspend` and `resume` hold uids
    of child Jobs; a delete is in the foreground. `create` is in the order of the replicated jobs: where a Job of one
    of them cannot be created, those after it are not tried, and neither status nor events are written. `expired`
    means that the JobSet's TTL is over and that it goes, `look_again_at` when (POSIX seconds) to ask once more.
    """

    status: JobSetView
    delete: tuple[str, ...] = ()
    create: tuple[NewJob, ...] = ()
    suspend: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    events: tuple[EventView, ...] = ()
    expired: bool = False
    look_again_at: float | None = None


def reconcile(spec: JobSetSpec, status: JobSetView, jobs: Iterable[JobView], now: float) -> Decision:
    """One pass over the child Jobs that exist, those of earlier attempts included. `now` is in POSIX seconds."""
    children = ChildJobs(spec.replicated_jobs, attempt=status.restarts)
    for job in jobs:
        children.put(job)
    return decide(spec, status, children, now)


def decide(spec: JobSetSpec, status: JobSetView, children: ChildJobs, now: float) -> Decision:
    """As `reconcile`, from Jobs that are already counted: for who keeps the count as they change."""
    if status.deleting_since is not None or spec.managed_by not in (None, "", _CONTROLLER):
        return Decision(status)
    counts = tuple(children.counts())
    if counts != status.replicated_jobs:
        status = replace(status, replicated_jobs=counts)
    if (finished := status.condition("Completed") or status.condition("Failed")) is not None:
        return _finished(spec, status, children, finished, now)
    delete = tuple(job.uid for job in children.previous.values() if job.deleting_since is None)
    if children.failed:
        return _failed(spec, status, children, delete, now)
    if children.succeeded and is_met(
        spec.success_policy, spec.replicated_jobs, {each.name: each.succeeded for each in counts}
    ):
        condition = Condition(
            "Completed", "True", "AllJobsCompleted", "jobset completed successfully", since=now
        )
        status, events = _told(replace(status, terminal_state="Completed"), condition)
        return Decision(status, delete=delete, events=events)
    return _running(spec, status, children, delete, now)


def _finished(
    spec: JobSetSpec, status: JobSetView, children: ChildJobs, finished: Condition, now: float
) -> Decision:
    delete = tuple(job.uid for job in children.active.values() if job.deleting_since is None)
    ttl = spec.ttl_seconds_after_finished
    if ttl is None:
        return Decision(status, delete=delete)
    end = (finished.since or 0.0) + ttl
    if end <= now:
        return Decision(status, delete=delete, expired=True)
    return Decision(status, delete=delete, look_again_at=end)


def _failed(
    spec: JobSetSpec, status: JobSetView, children: ChildJobs, delete: tuple[str, ...], now: float
) -> Decision:
    decision = decide_failure(
        spec.failure_policy, tuple(children.failed.values()), restarts_counted=status.restarts_counted
    )
    if decision.ends:
        condition = Condition("Failed", "True", decision.reason, decision.message, since=now)
        status, events = _told(replace(status, terminal_state="Failed"), condition)
        return Decision(status, delete=delete, events=events)
    restarted = replace(
        status,
        restarts=status.restarts + 1,
        restarts_counted=status.restarts_counted + decision.counted,
    )
    event = _event(status, "Warning", decision.reason, decision.message, now)
    return Decision(restarted, delete=delete, events=(event,))


@dataclass(slots=True)
class _Pass:
    """The parts of a Decision while a pass goes over the replicated jobs."""

    status: JobSetView
    create: list[NewJob] = field(default_factory=list)
    resume: list[str] = field(default_factory=list)
    events: list[EventView] = field(default_factory=list)

    def condition(self, condition: Condition) -> None:
        self.status, events = _told(self.status, condition)
        self.events += events


def _running(
    spec: JobSetSpec, status: JobSetView, children: ChildJobs, delete: tuple[str, ...], now: float
) -> Decision:
    work = _Pass(status)
    _create(spec, children, work, now)
    if not status.suspended:
        _resume(spec, children, work, now)
        return Decision(
            work.status, delete, tuple(work.create), resume=tuple(work.resume), events=tuple(work.events)
        )
    suspend = tuple(job.uid for job in children.active.values() if not job.suspended)
    work.condition(Condition("Suspended", "True", "SuspendedJobs", "jobset is suspended", since=now))
    return Decision(work.status, delete, tuple(work.create), suspend=suspend, events=tuple(work.events))


def _startable(spec: JobSetSpec, status: JobSetView) -> Iterator[ReplicatedJob]:
    """The replicated jobs whose dependencies are met, in order."""
    statuses = {each.name: each for each in status.replicated_jobs}
    replicas: dict[str, int] = {}
    for job in spec.replicated_jobs:
        replicas[job.name] = replicas_of(job)
        if dependencies_met(job, replicas, statuses):
            yield job


def _create(spec: JobSetSpec, children: ChildJobs, work: _Pass, now: float) -> None:
    ordered = in_order(spec.startup_policy) and not work.status.suspended
    statuses = {each.name: each for each in work.status.replicated_jobs}
    policy = spec.failure_policy
    blocked = policy is not None and policy.restart_strategy == "BlockingRecreate" and bool(children.previous)
    for job in _startable(spec, work.status):
        if ordered and has_started(replicas_of(job), statuses[job.name]):
            continue
        # A Job of the attempt before keeps its name until it is gone.
        if not blocked and children.existing(job.name) < replicas_of(job):
            for index in range(replicas_of(job)):
                name = child_job_name(work.status.name, job.name, index)
                if name not in children.names:
                    work.create.append(
                        NewJob(name, job.name, index, work.status.restarts, work.status.suspended)
                    )
        if ordered:
            work.condition(_startup("InProgress", "is in progress", now))
            return
    if ordered:
        work.condition(_startup("Completed", "has completed", now))


def _resume(spec: JobSetSpec, children: ChildJobs, work: _Pass, now: float) -> None:
    ordered = in_order(spec.startup_policy)
    statuses = {each.name: each for each in work.status.replicated_jobs}
    suspended: dict[str, list[str]] = {}
    for child in children.suspended.values():
        suspended.setdefault(child.replicated_job, []).append(child.uid)
    for job in _startable(spec, work.status):
        if ordered and has_started(replicas_of(job), statuses[job.name]):
            continue
        work.resume += suspended.get(job.name, ())
        if ordered:
            work.condition(_startup("InProgress", "is in progress", now))
            return
    work.condition(Condition("Suspended", "False", "ResumeJobs", "jobset is resumed", since=now))


def _startup(state: str, words: str, now: float) -> Condition:
    return Condition(
        f"StartupPolicy{state}",
        "True",
        f"InOrderStartupPolicy{state}",
        f"in order startup policy {words}",
        since=now,
    )


def _told(status: JobSetView, condition: Condition) -> tuple[JobSetView, tuple[EventView, ...]]:
    """The status with the condition, and the event that says so where it is a change."""
    conditions = jobset_condition(status.conditions, condition)
    if conditions is status.conditions:
        return status, ()
    type_ = "Warning" if condition.type == "Failed" else "Normal"
    event = _event(status, type_, condition.reason, condition.message, condition.since or 0.0)
    return replace(status, conditions=conditions), (event,)


def _event(status: JobSetView, type_: str, reason: str, message: str, now: float) -> EventView:
    return EventView("JobSet", status.name, type_, reason, message, count=1, last_at=now)
