"""Reads from a View what a training is doing: queued, starting, running, and what it is stuck on. Pure.

Nothing here is final. Stuck is told early and in the cluster's own words; only child Jobs that can never be created
(`hopeless`) are a reason to give up before a budget is spent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobset_steps.observed import Condition, EventView, JobSetView, JobView, PodView, View
from jobset_steps.semantics.startup import dependencies_met, has_started, in_order
from jobset_steps.spec.jobset import JobSet, ReplicatedJob
from jobset_steps.supervisor.state import Stretch

__all__ = ["Stuck", "began", "in_question", "queue_cause", "stretch_of", "stuck_on"]

# Seconds after which something that is normal for a moment is worth telling.
_UNSCHEDULED, _SUSPENDED, _NO_STATUS, _CREATION_FAILED = 30.0, 60.0, 60.0, 20.0
_TERMINATING = 300.0
# An event that was last seen longer ago explains nothing of now.
_STALE = 1800.0
# Reasons of waiting containers that do not pass by themselves within a start-up (kubelet).
_WAITING = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "RegistryUnavailable",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "CrashLoopBackOff",
    }
)
# Warnings that explain why pods are missing or not starting (JobSet, Job and attach-detach controllers, kubelet).
_EVENTS = (
    "JobCreationFailed",
    "HeadlessServiceCreationFailed",
    "PVCCreationFailed",
    "FailedCreate",
    "FailedMount",
    "FailedAttachVolume",
    "FailedCreatePodSandBox",
    "FailedScheduling",
)
_KUEUE = "kueue.x-k8s.io/queue-name"


@dataclass(frozen=True, slots=True)
class Stuck:
    """What progress waits for. `cause` is a CamelCase word, `hopeless` means that waiting cannot help."""

    cause: str
    message: str
    hopeless: bool = False


def stretch_of(spec: JobSet, view: View) -> Stretch:
    """What the seconds that pass now are counted as.

    Queued: suspended, or all pods held back by scheduling gates. Starting: a pod that should exist by now is neither
    ready nor finished. Counted from the JobSet's own status, which counts child Jobs in just that way, and where that lags
    from the pods.
    """
    jobset = view.jobset
    if jobset is None:
        return Stretch.STARTING
    if jobset.suspended or jobset.condition("Suspended") is not None:
        return Stretch.QUEUED
    current = _pods(view)
    if current and all(_gated(pod) for pod in current):
        return Stretch.QUEUED
    statuses = {status.name: status for status in jobset.replicated_jobs}
    for job in _due(spec, jobset):
        status = statuses.get(job.name)
        counted = 0 if status is None else status.ready + status.succeeded + status.failed
        # A pod that ends is no longer ready before its Job has counted it: its JobSet has not begun to start again.
        if counted < _replicas(job) and not _all_up(job, current):
            return Stretch.STARTING
    return Stretch.RUNNING if statuses else Stretch.STARTING


def began(stretch: Stretch, view: View) -> float | None:
    """Since when, at the earliest, the JobSet can have been in this stretch; None where it does not say."""
    jobset = view.jobset
    if jobset is None:
        return None
    suspension = next((c for c in jobset.conditions if c.type == "Suspended"), None)
    if stretch is Stretch.QUEUED:
        return suspension.since if suspension is not None and suspension.holds else jobset.created_at
    resumed = suspension.since if suspension is not None and not suspension.holds else None
    jobs = [job for job in view.jobs if job.attempt == jobset.restarts]
    times = [job.created_at if stretch is Stretch.STARTING else job.started_at for job in jobs]
    known = [
        at for at in (resumed, min((at for at in times if at is not None), default=None)) if at is not None
    ]
    return max(known, default=jobset.created_at)


def queue_cause(view: View) -> tuple[str, str]:
    """(cause, words) for a queued JobSet."""
    jobset = view.jobset
    queue = jobset.label(_KUEUE) if jobset is not None else None
    if jobset is not None and not jobset.suspended and jobset.condition("Suspended") is None:
        return "SchedulingGated", "its pods are held back by scheduling gates"
    if queue:
        return "NotAdmitted", f"waiting for Kueue to admit it to queue {queue}"
    return "Suspended", "suspended"


def in_question(stretch: Stretch, view: View) -> bool:
    """Whether time alone, without a new View, can make this stuck: worth another look in a minute."""
    return stretch is Stretch.STARTING or any(
        pod.deleting_since is not None for pod in view.pods if not pod.gone
    )


def stuck_on(spec: JobSet, view: View, events: Sequence[EventView], now: float) -> Stuck | None:
    """What keeps a JobSet that is not queued from going on, the most telling cause first; None where nothing does."""
    if view.jobset is None:
        return None
    for found in _causes(spec, view, view.jobset, events, now):
        return found
    return None


def _causes(
    spec: JobSet, view: View, jobset: JobSetView, events: Sequence[EventView], now: float
) -> Iterator[Stuck]:
    missing = _missing(spec, view, jobset)
    warnings = [
        event
        for event in events
        if event.type != "Normal" and event.reason in _EVENTS and not _older(event.last_at, _STALE, now)
    ]
    if missing:
        yield from _refused_jobs(warnings, jobset, now)
    yield from _terminating(view, now)
    yield from _waiting_containers(view)
    yield from _unscheduled(view, now)
    yield from _suspended_jobs(spec, view, jobset, now)
    incomplete = missing or any(not pod.ready and not pod.finished for pod in _pods(view))
    for reason in _EVENTS if incomplete else ():
        for event in warnings:
            if event.reason == reason:
                cause = "QuotaExceeded" if "exceeded quota" in event.message else reason
                yield Stuck(cause, f"{event.kind} {event.name}: {event.message}")
    silent = not jobset.conditions and not jobset.replicated_jobs and not jobset.restarts
    if silent and not view.jobs and _older(jobset.created_at, _NO_STATUS, now):
        yield Stuck(
            "NoController",
            "no controller has written a status: is the JobSet controller running and does it manage this JobSet?",
        )


def _refused_jobs(warnings: Sequence[EventView], jobset: JobSetView, now: float) -> Iterator[Stuck]:
    """A child Job that the API refuses as invalid stays so: the spec is immutable. Seen twice, or for a while."""
    refused = [
        event
        for event in warnings
        if event.reason == "JobCreationFailed" and event.kind == "JobSet" and "is invalid" in event.message
    ]
    if not refused:
        return
    repeated = sum(event.count for event in refused) >= 2
    lasting = any(_older(event.last_at, _CREATION_FAILED, now) for event in refused)
    yield Stuck("JobCreationFailed", refused[-1].message, hopeless=repeated or lasting)


def _terminating(view: View, now: float) -> Iterator[Stuck]:
    for pod in view.pods:
        if not pod.gone and _older(pod.deleting_since, _TERMINATING, now):
            node = pod.node or "no node"
            minutes = (now - (pod.deleting_since or now)) / 60
            yield Stuck(
                "Terminating",
                f"pod {pod.name} on node {node} has been terminating for {minutes:.0f} min and blocks a restart; "
                "if the node is dead, taint it out-of-service or delete the pod by force",
            )


def _waiting_containers(view: View) -> Iterator[Stuck]:
    for pod in _pods(view):
        for container in pod.containers:
            if container.state == "waiting" and container.reason in _WAITING:
                words = container.message or pod.message
                yield Stuck(
                    container.reason, f"pod {pod.name}, container {container.name}: {words}".rstrip(": ")
                )


def _unscheduled(view: View, now: float) -> Iterator[Stuck]:
    for pod in _pods(view):
        scheduled = _condition(pod, "PodScheduled")
        if scheduled is None or scheduled.status != "False" or scheduled.reason == "SchedulingGated":
            continue
        if _older(scheduled.since if scheduled.since is not None else pod.created_at, _UNSCHEDULED, now):
            yield Stuck("Unschedulable", f"pod {pod.name}: {scheduled.message or scheduled.reason}")


def _suspended_jobs(spec: JobSet, view: View, jobset: JobSetView, now: float) -> Iterator[Stuck]:
    due = {job.name for job in _due(spec, jobset)}
    for job in view.jobs:
        if not job.suspended or job.replicated_job not in due or job.attempt != jobset.restarts:
            continue
        since = next((c.since for c in job.conditions if c.type == "Suspended" and c.holds), job.created_at)
        if _older(since, _SUSPENDED, now):
            yield Stuck(
                "JobSuspended", f"Job {job.name} is suspended while its JobSet is not: something else did it"
            )


def _due(spec: JobSet, jobset: JobSetView) -> Iterator[ReplicatedJob]:
    """The replicated jobs that should have started by now, by start-up policy and dependsOn."""
    statuses = {status.name: status for status in jobset.replicated_jobs}
    replicas: dict[str, int] = {}
    one_by_one = in_order(spec.spec.startup_policy)
    for job in spec.spec.replicated_jobs:
        replicas[job.name] = _replicas(job)
        if not dependencies_met(job, replicas, statuses):
            continue
        yield job
        status = statuses.get(job.name)
        if one_by_one and (status is None or not has_started(_replicas(job), status)):
            return


def _missing(spec: JobSet, view: View, jobset: JobSetView) -> bool:
    """Whether a child Job that should exist by now does not."""
    there: dict[str, int] = {}
    for job in view.jobs:
        if job.attempt == jobset.restarts:
            there[job.replicated_job] = there.get(job.replicated_job, 0) + 1
    return any(there.get(job.name, 0) < _replicas(job) for job in _due(spec, jobset))


def _pods(view: View) -> list[PodView]:
    """The pods of the current attempt that are still there."""
    attempt = view.jobset.restarts if view.jobset else 0
    return [pod for pod in view.pods if pod.attempt == attempt and not pod.gone]


def _all_up(job: ReplicatedJob, current: Sequence[PodView]) -> bool:
    """Whether every pod that the replicated job has is there, and each is ready or has ended."""
    spec = job.template.spec
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    pods = [pod for pod in current if pod.replicated_job == job.name]
    wanted = _replicas(job) * min(parallelism, parallelism if spec.completions is None else spec.completions)
    return len(pods) >= wanted and all(pod.ready or _ended(pod) for pod in pods)


def _ended(pod: PodView) -> bool:
    """Whether the pod's containers have all ended, although its phase may not say so yet."""
    containers = [container for container in pod.containers if not container.init]
    return pod.finished or (
        bool(containers) and all(container.state == "terminated" for container in containers)
    )


def _gated(pod: PodView) -> bool:
    scheduled = _condition(pod, "PodScheduled")
    return scheduled is not None and scheduled.status == "False" and scheduled.reason == "SchedulingGated"


def _condition(thing: PodView | JobView, type_: str) -> Condition | None:
    return next((c for c in thing.conditions if c.type == type_), None)


def _replicas(job: ReplicatedJob) -> int:
    return 1 if job.replicas is None else job.replicas


def _older(since: float | None, seconds: float, now: float) -> bool:
    return since is not None and now - since >= seconds
