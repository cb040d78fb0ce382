"""The typed end of a step: Outcome and its parts, and the exit code of each verdict.

These types are the product's stable contract: names and exit codes do not change. A verdict is final; progress
(queued, starting, stuck on something that may pass) is told elsewhere and never ends up here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = ["FINAL", "Attempt", "Cause", "Outcome", "Restarts", "SecondsSpent", "Verdict", "exit_code"]


class Verdict(StrEnum):
    """How a step ended. `UNKNOWN` is no verdict: the training may still run and the next launcher adopts it."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    QUEUE_TIMEOUT = "QueueTimeout"
    STARTUP_TIMEOUT = "StartupTimeout"
    RUN_TIMEOUT = "RunTimeout"
    STUCK = "Stuck"
    DELETED_EXTERNALLY = "DeletedExternally"
    REJECTED = "Rejected"
    FORBIDDEN = "Forbidden"
    CANCELLED = "Cancelled"
    UNKNOWN = "Unknown"


FINAL = frozenset(Verdict) - {Verdict.UNKNOWN}
"""The verdicts that end a training. With any other a step never ends well, whatever `on_failure` says."""


class Frozen(BaseModel):
    """Immutable, and strict about its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Cause(Frozen):
    """The pod that failed first in an attempt, and how. Empty strings and None where it was not seen."""

    job: str = ""
    replicated_job: str = ""
    job_index: int = 0
    index: int = 0
    pod: str = ""
    node: str = ""
    container: str = ""
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    """The kubelet's or the Job's word: "Error", "OOMKilled", "Evicted", "DeadlineExceeded", ..."""
    message: str = ""
    oom: bool = False
    disrupted: bool = False
    """The pod carried a DisruptionTarget condition, was evicted or lost its node: not the training's fault."""
    deleted: bool = False
    """The pod was being deleted already, and a signal ended it: a restart's doing rather than its reason."""
    log_tail: tuple[str, ...] = ()
    at: float | None = None


class Attempt(Frozen):
    """One attempt of the JobSet (status.restarts at the time), from the first pod to the restart that ended it."""

    number: int
    started_at: float | None = None
    ended_at: float | None = None
    cause: Cause | None = None
    """None for an attempt that succeeded, or that nobody lived to see."""
    rule: str = ""
    """The failure-policy rule that answered this attempt's failure, "" where none matched (the default action)."""
    action: str = ""
    """FailJobSet, RestartJobSet, RestartJobSetAndIgnoreMaxRestarts, or "" where nothing failed."""
    counted: bool = False
    """Whether the restart that ended it counts towards maxRestarts."""
    missed: bool = False
    """No launcher lived to see it."""


class Restarts(Frozen):
    """Restarts of the JobSet: all, those that count towards maxRestarts, and maxRestarts (None: no failure policy)."""

    total: int = 0
    counted: int = 0
    maximum: int | None = None


class SecondsSpent(Frozen):
    """Seconds the step spent in each stretch, summed over attempts."""

    queued: float = 0.0
    starting: float = 0.0
    running: float = 0.0
    outage: float = 0.0


class Outcome(Frozen):
    """The typed end of a step. `reason` is one CamelCase word: the JobSet's own where it has one."""

    schema_version: str = "1"
    verdict: Verdict
    reason: str = ""
    message: str = ""
    rule: str = ""
    action: str = ""
    first_failed_job: str = ""
    restarts: Restarts = Restarts()
    attempts: tuple[Attempt, ...] = ()
    seconds: SecondsSpent = SecondsSpent()
    retryable: bool = False
    exit_code: int = 70
    metrics: dict[str, Any] = {}
    """What the leader wrote as JSON to its termination log when it ended well (worker.report_metrics)."""
    leaked: str = ""
    """namespace/name of a JobSet that should have been deleted and could not be confirmed gone, else ""."""
    run: str = ""
    step: str = ""
    slot: str = ""
    generation: int = 1
    namespace: str = ""
    jobset: str = ""
    uid: str = ""
    started_at: float | None = None
    finished_at: float | None = None


_EXIT = {
    Verdict.SUCCEEDED: 0,
    Verdict.FAILED: 1,
    Verdict.QUEUE_TIMEOUT: 124,
    Verdict.STARTUP_TIMEOUT: 124,
    Verdict.RUN_TIMEOUT: 124,
    Verdict.STUCK: 65,
    Verdict.DELETED_EXTERNALLY: 1,
    Verdict.REJECTED: 64,
    Verdict.FORBIDDEN: 77,
    Verdict.CANCELLED: 143,
}
_NO_VERDICT_EXIT = {
    "LauncherEvicted": 76,
    "ApiUnavailable": 69,
    "InternalError": 70,
    "LauncherOOMKilled": 137,
}


def exit_code(verdict: Verdict, *, retryable: bool = False, reason: str = "") -> int:
    """The process exit code of a verdict, as in the table of the README (stable contract)."""
    if verdict is Verdict.UNKNOWN:
        return _NO_VERDICT_EXIT.get(reason, 70)
    if verdict is Verdict.FAILED and retryable:
        return 75
    return _EXIT[verdict]
