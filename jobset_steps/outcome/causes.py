"""Why a pod failed, read from its status, and which of several failures came first. Pure.

A container that ended well is no cause. What the node, the scheduler or an eviction did to a pod is told apart from
what the training did: `disrupted`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jobset_steps.observed import Condition, ContainerView, JobView, PodView
from jobset_steps.outcome.types import Cause

__all__ = ["LOG_LINES", "cut_lines", "first", "of_job", "of_pod", "refined", "when"]

LOG_LINES = 40
"""Log lines kept of one failure."""
_LINE = 400
# A container that had fallen silent before its last second ended before any that still wrote in it.
_AT_ITS_START = 0.001
# status.reason of pods that the kubelet or the node controller ended (kubelet eviction, graceful node shutdown,
# admission after a node's restart, pod garbage collection).
_DISRUPTED = frozenset(
    {"Evicted", "NodeLost", "NodeShutdown", "NodeAffinity", "Preempting", "Shutdown", "Terminated"}
)


def of_pod(pod: PodView) -> tuple[Cause, ...]:
    """Every failure that this pod shows, the earlier runs of a restarted container included."""
    disruption = pod.condition("DisruptionTarget")
    disrupted = disruption is not None or pod.reason in _DISRUPTED
    found = [
        _of_container(pod, container, disrupted)
        for current in pod.containers
        for container in (current.last, current)
        if container is not None and _failed(container)
    ]
    if not found and (pod.phase == "Failed" or (disrupted and not pod.finished)):
        found.append(_of_whole(pod, disruption, disrupted))
    elif not found and pod.gone and not pod.finished:
        found.append(_at(pod, reason="PodDeleted", message="deleted before it ended", at=pod.deleting_since))
    return tuple(found)


def of_job(job: JobView) -> Cause | None:
    """The failure of a child Job whose pods show none: a deadline, or pods that nobody saw. None if it has not failed."""
    failure = job.condition("Failed")
    if failure is None:
        return None
    return Cause(
        job=job.name,
        replicated_job=job.replicated_job,
        job_index=job.index,
        reason=failure.reason,
        message=failure.message,
        disrupted="condition DisruptionTarget" in failure.message,
        at=failure.since,
    )


def first(
    causes: Iterable[Cause], failed: Sequence[JobView] = (), first_failed_job: str = ""
) -> Cause | None:
    """The failure that began an attempt's end: the earliest, of those at the same moment one in `first_failed_job`.

    `failed` are the attempt's failed child Jobs, as far as they are known: a pod of a Job that tolerated its failure
    began nothing, nor did one that was ended because its Job had run into its deadline.
    """
    jobs = {job.name: job for job in failed if job.is_failed}
    pods = [cause for cause in causes if not _came_after(cause, jobs.get(cause.job))]
    if inside := [cause for cause in pods if cause.job in jobs]:
        pods = inside
    if pods:
        # Ends are told in whole seconds, and a training that hears SIGTERM ends within the second that its restart began.
        return min(pods, key=lambda c: (_second(c), c.deleted, *_within(c), c.job != first_failed_job, c.pod))
    return min(
        (cause for job in jobs.values() if (cause := of_job(job)) is not None),
        key=lambda cause: (cause.job != first_failed_job, when(cause), cause.job),
        default=None,
    )


def cut_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """The last lines as kept: at most LOG_LINES, each cut to 400 characters, trailing blank lines left out."""
    kept = [line if len(line) <= _LINE else line[: _LINE - 1] + "…" for line in lines]
    while kept and not kept[-1].strip():
        kept.pop()
    return tuple(kept[-LOG_LINES:])


def when(cause: Cause) -> float:
    """For ordering: a failure whose time is unknown comes after all others."""
    return float("inf") if cause.at is None else cause.at


def refined(at: float, written_at: float) -> float:
    """When a container ended, more finely than in whole seconds: with its last line, or at the second's start if earlier."""
    return written_at if 0 < written_at - int(at) < 1 else int(at) + _AT_ITS_START


def _second(cause: Cause) -> float:
    """`when` as a cluster tells it: in whole seconds."""
    at = when(cause)
    return at if at == float("inf") else float(int(at))


def _within(cause: Cause) -> tuple[bool, float]:
    """The order within a second: of what is told in whole seconds alone, nothing is known."""
    at = when(cause)
    return at == _second(cause), at


def _failed(container: ContainerView) -> bool:
    return container.state == "terminated" and bool(container.exit_code or container.signal)


def _of_container(pod: PodView, container: ContainerView, disrupted: bool) -> Cause:
    # The kubelet gives 128 + n for a process that signal n ended; the field `signal` is set by few runtimes.
    code = container.exit_code
    signal = container.signal or (code - 128 if code is not None and 128 < code < 160 else None)
    disrupted = disrupted or container.reason == "ContainerStatusUnknown"
    return _at(
        pod,
        container=container.name,
        exit_code=code,
        signal=signal or None,
        reason=container.reason or "Error",
        message=pod.message,
        oom=container.reason == "OOMKilled",
        disrupted=disrupted,
        # An eviction deletes its pod too, and is what a restart answers. (A deletionTimestamp is the time by which the pod
        # is to be gone, so it may lie after the end.)
        deleted=signal in (9, 15)
        and pod.deleting_since is not None
        and not (disrupted or container.reason == "OOMKilled"),
        log_tail=cut_lines(container.message.splitlines()),
        at=container.finished_at,
    )


def _of_whole(pod: PodView, disruption: Condition | None, disrupted: bool) -> Cause:
    reason = pod.reason or (disruption.reason if disruption else "") or "PodFailed"
    message = pod.message or (disruption.message if disruption else "")
    at = disruption.since if disruption else pod.deleting_since
    return _at(pod, reason=reason, message=message, disrupted=disrupted, at=at)


def _came_after(cause: Cause, job: JobView | None) -> bool:
    """Whether a deadline ended this pod. Only there: clocks differ between nodes, so times alone prove little."""
    failure = job.condition("Failed") if job is not None else None
    if job is None or failure is None or failure.reason != "DeadlineExceeded" or cause.at is None:
        return False
    # Failed waits for the Job's pods to end; FailureTarget is when the Job controller decided.
    decided = job.condition("FailureTarget") or failure
    return decided.since is not None and cause.at >= decided.since


def _at(pod: PodView, **how: Any) -> Cause:
    return Cause(
        job=pod.job,
        replicated_job=pod.replicated_job,
        job_index=pod.job_index,
        index=pod.index,
        pod=pod.name,
        node=pod.node,
        **how,
    )
