"""What was read of a JobSet, its child Jobs, its Pods and its events, shrunk to what decides.

Plain frozen data, the same whether it was read from a Kubernetes API server, from the local cluster or from a
script in a test. Nothing here decides. Times are POSIX seconds (float); None means that it has not happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "Condition",
    "ContainerView",
    "EventView",
    "JobSetView",
    "JobView",
    "LogTail",
    "PodView",
    "ReplicatedJobStatus",
    "View",
]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a status. `status` is "True", "False" or "Unknown"; only "True" holds."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the condition is true now."""
        return self.status == "True"


@dataclass(frozen=True, slots=True)
class ContainerView:
    """One container (or init container) of a pod. `state` is "waiting", "running" or "terminated".

    `last` is how the run before this one ended, where the kubelet restarts the container.
    """

    name: str
    state: str
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    started_at: float | None = None
    finished_at: float | None = None
    restart_count: int = 0
    init: bool = False
    last: ContainerView | None = None


@dataclass(frozen=True, slots=True)
class PodView:
    """One pod. `index` is its completion index, `attempt` the JobSet restart it belongs to.

    `deleting_since` is its deletionTimestamp; `gone` marks a pod that was deleted since the previous View and is
    shown once more so that no termination is missed.
    """

    name: str
    uid: str
    job: str
    replicated_job: str
    job_index: int
    index: int
    attempt: int
    phase: str = "Pending"
    ready: bool = False
    node: str = ""
    reason: str = ""
    message: str = ""
    created_at: float | None = None
    deleting_since: float | None = None
    conditions: tuple[Condition, ...] = ()
    containers: tuple[ContainerView, ...] = ()
    gone: bool = False

    @property
    def finished(self) -> bool:
        """Whether the pod has ended, well or not."""
        return self.phase in ("Succeeded", "Failed")

    def condition(self, type_: str) -> Condition | None:
        """The condition of that type if it holds, else None."""
        return next((c for c in self.conditions if c.type == type_ and c.holds), None)


@dataclass(frozen=True, slots=True)
class JobView:
    """One child Job. `attempt` is its restart-attempt label; counts are the Job's own status."""

    name: str
    uid: str
    replicated_job: str
    index: int
    attempt: int
    suspended: bool = False
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    conditions: tuple[Condition, ...] = ()
    created_at: float | None = None
    started_at: float | None = None
    deleting_since: float | None = None

    def condition(self, type_: str) -> Condition | None:
        """The condition of that type if it holds, else None."""
        return next((c for c in self.conditions if c.type == type_ and c.holds), None)

    @property
    def is_complete(self) -> bool:
        """Whether the Job ended well."""
        return self.condition("Complete") is not None

    @property
    def is_failed(self) -> bool:
        """Whether the Job ended in failure."""
        return self.condition("Failed") is not None


@dataclass(frozen=True, slots=True)
class ReplicatedJobStatus:
    """Counts of child Jobs of one replicated job, as in `status.replicatedJobsStatus`."""

    name: str
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    active: int = 0
    suspended: int = 0


@dataclass(frozen=True, slots=True)
class JobSetView:
    """One JobSet: what of its metadata, spec and status decides.

    `labels` and `annotations` hold only the keys with our prefix and Kueue's. `restarts` counts all restarts,
    `restarts_counted` those that count towards `max_restarts`.
    """

    name: str
    namespace: str
    uid: str
    resource_version: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    suspended: bool = False
    restarts: int = 0
    restarts_counted: int = 0
    terminal_state: str = ""
    conditions: tuple[Condition, ...] = ()
    replicated_jobs: tuple[ReplicatedJobStatus, ...] = ()
    created_at: float | None = None
    deleting_since: float | None = None

    def condition(self, type_: str) -> Condition | None:
        """The condition of that type if it holds, else None."""
        return next((c for c in self.conditions if c.type == type_ and c.holds), None)

    def label(self, key: str) -> str | None:
        """The value of a label, or None."""
        return dict(self.labels).get(key)

    def annotation(self, key: str) -> str | None:
        """The value of an annotation, or None."""
        return dict(self.annotations).get(key)


@dataclass(frozen=True, slots=True)
class EventView:
    """One event about the JobSet, a child Job or a pod. `kind` and `name` are the object's it regards."""

    kind: str
    name: str
    type: str
    reason: str
    message: str
    count: int = 1
    last_at: float | None = None


@dataclass(frozen=True, slots=True)
class View:
    """All that is known of one JobSet at `read_at`.

    `jobset` is None where the server says that it does not exist. `complete` is true where the View comes from a
    fresh read of all kinds, false where a watch patched an older one: absence proves something only if complete.
    `events` is empty unless events were asked for.
    """

    jobset: JobSetView | None
    jobs: tuple[JobView, ...] = ()
    pods: tuple[PodView, ...] = ()
    events: tuple[EventView, ...] = field(default=())
    complete: bool = True
    read_at: float = 0.0


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last lines of a container's log.

    `written_at` is when the last of them was written, 0.0 where the container wrote nothing, None where that is not told.
    """

    lines: tuple[str, ...]
    written_at: float | None = None
