"""What a step is told to do, and what it writes down about it: plan and Record. Plain data.

The Record is the memory of an identity. It lives beside the JobSets (a ConfigMap, or a file on a laptop), outlives
launchers and is changed by compare-and-swap only.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict

from jobset_steps.outcome import Attempt, Outcome, SecondsSpent
from jobset_steps.spec.budgets import Budgets
from jobset_steps.spec.jobset import JobSet

__all__ = ["EngineAttempt", "Identity", "OnFailure", "Owner", "Record", "StepPlan"]

OnFailure = Literal["fail", "branch"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a training belongs to: run + step (loop item included), or slot + step for a schedule slot.

    `key` is what everything is named by; two launchers with the same key serve the same training.
    """

    run: str
    step: str
    slot: str = ""

    @property
    def key(self) -> str:
        """The identity as one string, unambiguous whatever the parts contain."""
        return "\n".join(("slot", self.slot, self.step) if self.slot else ("run", self.run, self.step))

    @property
    def digest(self) -> str:
        """Ten hex digits of the key, for names."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:10]


@dataclass(frozen=True, slots=True)
class EngineAttempt:
    """Which launcher this is, in the engine's eyes.

    `launcher` names the process's home (a pod uid; the same after a container restart), `retry` is the engine's
    retry index (0 for the first try).
    """

    launcher: str
    retry: int = 0


@dataclass(frozen=True, slots=True)
class Owner:
    """The object whose deletion takes the JobSet along (the Workflow), in the JobSet's own namespace."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class StepPlan:
    """All that a supervisor needs to know of a step. `spec_hash` is over the author's input, not over defaults."""

    identity: Identity
    jobset: JobSet
    spec_hash: str
    engine: EngineAttempt
    namespace: str = "default"
    budgets: Budgets = field(default_factory=Budgets)
    on_failure: OnFailure = "fail"
    owner: Owner | None = None
    free_restarts_cap: int = 20
    """Restarts that do not count towards maxRestarts are unbounded in the controller; the step ends beyond this."""
    annotations: tuple[tuple[str, str], ...] = ()
    """More annotations for the JobSet and its pods, such as where the pipeline expects the model."""
    grace: float = 25.0
    """Seconds within which a cancelled step says that it has ended: less than SIGTERM leaves its process."""


class Record(BaseModel):
    """The memory of one identity. At most 64 KiB as JSON: attempts lose their log tails first, oldest first.

    `state` is "intent" (a create may be in flight), "created" (uid known), "ending" (tombstone: the JobSet is to
    be deleted, for the verdict in `outcome`), "ended" (outcome final).
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    schema_version: str = "1"
    run: str
    step: str
    slot: str = ""
    made_by_run: str
    spec_hash: str
    generation: int = 1
    jobset: str
    """The JobSet's name in this generation."""
    uid: str = ""
    state: Literal["intent", "created", "ending", "ended"] = "intent"
    launcher: str = ""
    """The launcher that last intended the create: whoever resumes it claims it first, so that a tombstone is not missed."""
    spent: SecondsSpent = SecondsSpent()
    attempts: tuple[Attempt, ...] = ()
    outcome: Outcome | None = None
    delivered_launcher: str = ""
    """The launcher (EngineAttempt.launcher) that wrote the outputs of `outcome`, "" while undelivered."""
    delivered_retry: int = 0
    started_at: float | None = None
    """When this generation was first intended."""
    counted_at: float | None = None
    """Until when `spent` has been counted; a launcher that comes later counts from here on."""
    attempt: int = 0
    """The JobSet's restarts at `counted_at`."""
    attempt_starting: float = 0.0
    """Seconds of start-up already spent in that attempt: the start-up budget is counted per attempt."""
