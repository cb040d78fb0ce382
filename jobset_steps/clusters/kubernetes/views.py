"""From the API server's JSON to Views. Pure; unknown and missing fields are as if never set."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jobset_steps.observed import (
    Condition,
    ContainerView,
    EventView,
    JobSetView,
    JobView,
    LogTail,
    PodView,
    ReplicatedJobStatus,
)

__all__ = ["event_view", "job_view", "jobset_view", "log_tail", "pod_view", "seconds"]

_OURS = ("jobset-steps/", "kueue.x-k8s.io/")
_JOBSET = "jobset.sigs.k8s.io/"


def jobset_view(item: Mapping[str, Any]) -> JobSetView:
    """A JobSet as read."""
    meta, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    # The controller lists them in any order; the first of the spec has the leader.
    order = {job["name"]: number for number, job in enumerate(spec.get("replicatedJobs") or ())}
    return JobSetView(
        name=meta["name"],
        namespace=meta.get("namespace", ""),
        uid=meta.get("uid", ""),
        resource_version=meta.get("resourceVersion", ""),
        labels=_ours(meta.get("labels")),
        annotations=_ours(meta.get("annotations")),
        suspended=bool(spec.get("suspend")),
        restarts=int(status.get("restarts") or 0),
        restarts_counted=int(status.get("restartsCountTowardsMax") or 0),
        terminal_state=str(status.get("terminalState") or ""),
        conditions=_conditions(status),
        replicated_jobs=tuple(
            ReplicatedJobStatus(
                name=entry["name"],
                **{
                    key: int(entry.get(key) or 0)
                    for key in ("ready", "succeeded", "failed", "active", "suspended")
                },
            )
            for entry in sorted(
                status.get("replicatedJobsStatus") or (),
                key=lambda entry: order.get(entry["name"], len(order)),
            )
        ),
        created_at=seconds(meta.get("creationTimestamp")),
        deleting_since=seconds(meta.get("deletionTimestamp")),
    )


def job_view(item: Mapping[str, Any]) -> JobView:
    """A child Job as read."""
    meta, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    labels = meta.get("labels") or {}
    return JobView(
        name=meta["name"],
        uid=meta.get("uid", ""),
        replicated_job=labels.get(_JOBSET + "replicatedjob-name", ""),
        index=_int(labels.get(_JOBSET + "job-index")),
        attempt=_int(labels.get(_JOBSET + "restart-attempt")),
        suspended=bool(spec.get("suspend")),
        active=int(status.get("active") or 0),
        ready=int(status.get("ready") or 0),
        succeeded=int(status.get("succeeded") or 0),
        failed=int(status.get("failed") or 0),
        terminating=int(status.get("terminating") or 0),
        conditions=_conditions(status),
        created_at=seconds(meta.get("creationTimestamp")),
        started_at=seconds(status.get("startTime")),
        deleting_since=seconds(meta.get("deletionTimestamp")),
    )


def pod_view(item: Mapping[str, Any], *, gone: bool = False) -> PodView:
    """A pod as read; `gone` where this is the last that was heard of it."""
    meta, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    labels = meta.get("labels") or {}
    conditions = _conditions(status)
    return PodView(
        name=meta["name"],
        uid=meta.get("uid", ""),
        job=labels.get("batch.kubernetes.io/job-name") or labels.get("job-name", ""),
        replicated_job=labels.get(_JOBSET + "replicatedjob-name", ""),
        job_index=_int(labels.get(_JOBSET + "job-index")),
        index=_int(
            (meta.get("annotations") or {}).get("batch.kubernetes.io/job-completion-index")
            or labels.get("batch.kubernetes.io/job-completion-index")
        ),
        attempt=_int(labels.get(_JOBSET + "restart-attempt")),
        phase=str(status.get("phase") or "Pending"),
        ready=any(c.type == "Ready" and c.holds for c in conditions),
        node=str(spec.get("nodeName") or ""),
        reason=str(status.get("reason") or ""),
        message=str(status.get("message") or ""),
        created_at=seconds(meta.get("creationTimestamp")),
        deleting_since=seconds(meta.get("deletionTimestamp")),
        conditions=conditions,
        containers=(
            *(_container(c, init=True) for c in status.get("initContainerStatuses") or ()),
            *(_container(c, init=False) for c in status.get("containerStatuses") or ()),
        ),
        gone=gone,
    )


def event_view(item: Mapping[str, Any]) -> EventView:
    """An event as read, of either event API."""
    regarding = item.get("involvedObject") or item.get("regarding") or {}
    series = item.get("series") or {}
    return EventView(
        kind=regarding.get("kind", ""),
        name=regarding.get("name", ""),
        type=item.get("type") or "",
        reason=item.get("reason") or "",
        message=item.get("message") or item.get("note") or "",
        count=int(series.get("count") or item.get("count") or 1),
        last_at=seconds(series.get("lastObservedTime") or item.get("lastTimestamp") or item.get("eventTime")),
    )


def _container(status: Mapping[str, Any], *, init: bool) -> ContainerView:
    name, count = status.get("name", ""), int(status.get("restartCount") or 0)
    before = (status.get("lastState") or {}).get("terminated")
    state, detail = next(iter((status.get("state") or {"waiting": {}}).items()))
    return _state(
        name,
        state,
        detail or {},
        count,
        init,
        _state(name, "terminated", before, count, init) if before else None,
    )


def _state(
    name: str,
    state: str,
    detail: Mapping[str, Any],
    count: int,
    init: bool,
    last: ContainerView | None = None,
) -> ContainerView:
    return ContainerView(
        name=name,
        state=state,
        reason=str(detail.get("reason") or ""),
        message=str(detail.get("message") or ""),
        exit_code=detail.get("exitCode"),
        signal=detail.get("signal"),
        started_at=seconds(detail.get("startedAt")),
        finished_at=seconds(detail.get("finishedAt")),
        restart_count=count,
        init=init,
        last=last,
    )


def _conditions(status: Mapping[str, Any]) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=c.get("type", ""),
            status=c.get("status", ""),
            reason=c.get("reason") or "",
            message=c.get("message") or "",
            since=seconds(c.get("lastTransitionTime")),
        )
        for c in status.get("conditions") or ()
    )


def _ours(pairs: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((k, v) for k, v in (pairs or {}).items() if k.startswith(_OURS)))


def log_tail(text: str, lines: int) -> LogTail:
    """The last lines of a log whose lines begin with the time at which they were written.

    A line without one is the kubelet's own, such as that it cannot give the log.
    """
    kept: list[str] = []
    last = None
    for line in text.removesuffix("\n").split("\n") if text else ():
        stamp, _, words = line.partition(" ")
        try:
            last = seconds(stamp) or last
        except ValueError:
            words = line
        kept += words.splitlines() or [""]
    return LogTail(tuple(kept[-lines:]), last if kept else 0.0)


def seconds(text: str | None) -> float | None:
    """POSIX seconds of an API timestamp, None for none."""
    return datetime.fromisoformat(text).timestamp() if text else None


def _int(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0
