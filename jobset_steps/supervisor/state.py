"""The state of one step, and one turn of it: what is known so far and what is asked for. Plain data.

Nothing here decides. `StepState` is frozen; a `Turn` is the scratch of one call of `step` and never outlives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from jobset_steps.observed import EventView, View
from jobset_steps.outcome import Outcome, SecondsSpent
from jobset_steps.supervisor.evidence import Trace
from jobset_steps.supervisor.inputs import (
    Action,
    Create,
    Delete,
    Deliver,
    EndCause,
    EndRequest,
    Finish,
    Load,
    Progress,
    Read,
    Save,
    Say,
    WakeAt,
)
from jobset_steps.supervisor.plan import Record, StepPlan

__all__ = ["Phase", "Removal", "StepState", "Stretch", "Turn", "start"]


class Phase(StrEnum):
    """Where a step is in its life. One file each decides what happens in it."""

    LOADING = "loading"
    """life: the Record was asked for."""
    CLEARING = "clearing"
    """life: what is left of the generation before is being removed."""
    INTENDING = "intending"
    """life: the intent is being saved; nothing is created before it is."""
    CREATING = "creating"
    """making: the JobSet is being created or read back."""
    RECORDING = "recording"
    """making: its uid is being saved."""
    WAITING = "waiting"
    """waiting: the training is queued, starting or running."""
    GATHERING = "gathering"
    """waiting: it has ended; the last evidence is awaited, for seconds."""
    DISCARDING = "discarding"
    """making: another launcher's JobSet won, so ours is being removed."""
    ENDING = "ending"
    """ending: the JobSet is being removed for a cancel or a time-out."""
    LEAVING = "leaving"
    """ending: the launcher goes and the JobSet stays."""
    CONCLUDING = "concluding"
    """closing: the outcome is being saved."""
    DELIVERING = "delivering"
    """closing: the outcome is being handed to the engine."""
    MARKING = "marking"
    """closing: the delivery is being saved."""
    DONE = "done"


class Stretch(StrEnum):
    """What the seconds that pass are counted as."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Removal:
    """A deletion that is not over before the JobSet is seen to be gone, with its Jobs and pods.

    `uid` is "" until it was read. Before `settle_until` absence proves nothing: a create may still be under way.
    """

    name: str
    uid: str = ""
    generation: int = 0
    settle_until: float = 0.0
    accepted: bool = False
    looks: int = 0


@dataclass(frozen=True, slots=True)
class StepState:
    """All that a step knows. `start` makes the first; only `step` makes the next."""

    plan: StepPlan
    phase: Phase = Phase.LOADING

    generation: int = 0
    """The generation that this launcher follows, 0 before it follows any."""
    name: str = ""
    uid: str = ""
    known_at: float = 0.0
    """When the uid became known: an absence read before proves nothing."""

    record: Record | None = None
    """The Record as it should be stored."""
    stored: Record | None = None
    """The Record as it was last known to be stored, at `version`."""
    saving: Record | None = None
    version: str = ""
    saved_at: float = 0.0

    asked: frozenset[str] = frozenset()
    """Kinds of action that are not answered yet; at most one of each."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """Faults in a row, by kind of action ("watch" for the watch)."""
    down: Mapping[str, float] = field(default_factory=dict)
    """Since when a kind of action has had no answer from the server."""
    timers: Mapping[str, float] = field(default_factory=dict)
    wake: float | None = None

    clock: float | None = None
    stretch: Stretch | None = None
    spent: SecondsSpent = field(default_factory=SecondsSpent)
    attempt: int = 0
    attempt_starting: float = 0.0
    uncounted_since: float | None = None
    """Adopted, and the time since then, when no launcher lived, is not counted yet (-1: since the JobSet was made)."""

    view: View | None = None
    answer: View | None = None
    """The complete View that came since a Read was asked for."""
    early: View | None = None
    """The last View that came before the uid was saved."""
    events: tuple[EventView, ...] = ()
    quiet_reads: int = 0
    traces: tuple[Trace, ...] = ()
    metrics: Mapping[str, Any] | None = None
    tails: frozenset[tuple[str, str, int]] = frozenset()
    tails_awaited: frozenset[tuple[str, str, int]] = frozenset()
    said: tuple[str, str, str] | None = None
    stuck: tuple[str, str] | None = None

    end: EndRequest | None = None
    end_requests: int = 0
    read_back: bool = False
    """Before a create is sent, look whether the JobSet is there."""
    name_taken: bool = False
    """The last create met the name taken: somebody has made a JobSet of it since the Record was read."""
    made_here: bool = False
    """This launcher stored the intent, so it knows of every create in this generation."""
    unanswered_at: float | None = None
    """When a create last had no answer: it may still take effect."""
    removal: Removal | None = None
    resumed_ending: bool = False
    leaked: str = ""
    outcome: Outcome | None = None
    """The outcome being reached (ENDING) or handed on (CONCLUDING and after)."""
    unsaved: bool = False
    """The outcome is this launcher's alone and never goes into the Record."""

    @property
    def watching(self) -> str:
        """The name of the JobSet that a runner keeps a watch on now, "" for none."""
        phases = (Phase.RECORDING, Phase.WAITING, Phase.GATHERING, Phase.ENDING, Phase.DISCARDING)
        if self.phase is Phase.CLEARING and self.removal is not None:
            return self.removal.name
        return self.name if self.phase in phases else ""

    @property
    def cancelled(self) -> bool:
        """Whether the run was asked to end for good."""
        return self.end is not None and self.end.cause is EndCause.CANCEL


def start(plan: StepPlan) -> StepState:
    """The state before the first input, which is a Tick."""
    return StepState(plan)


_KIND: dict[type[Any], str] = {
    Load: "load",
    Save: "save",
    Create: "create",
    Read: "read",
    Delete: "delete",
    Deliver: "deliver",
}


class Turn:
    """One call of `step` while it is being worked out."""

    def __init__(self, state: StepState, now: float) -> None:
        self.state = state
        self.now = now
        self.actions: list[Action] = []
        self.entering = False
        """The phase was changed: its entry is still to be carried out."""
        self.stored = False
        """The Record is stored as it should be: the phase may go on."""

    def go(self, phase: Phase, **changes: Any) -> None:
        """Change the phase. Its timers begin anew; what is still unanswered will be answered in the new phase."""
        self.stop("deadline", "create", "read", "delete", "deliver", "persist", "budget", "look", "save")
        self.put(phase=phase, **changes)
        if self.state.down:
            # What could not be reached in another phase gets its whole budget in this one.
            self.put(down=dict.fromkeys(self.state.down, self.now))
            self.after("outage", self.state.plan.budgets.outage)
        self.entering, self.stored = True, False

    def finish(self, outcome: Outcome) -> None:
        """The step is over."""
        self.put(phase=Phase.DONE, outcome=outcome, timers={}, wake=None)
        self.entering = self.stored = False
        self.actions.append(Finish(outcome))

    def put(self, **changes: Any) -> None:
        """Change the state."""
        self.state = replace(self.state, **changes)

    def ask(self, action: Action) -> None:
        """Ask for an action, unless one of its kind is still unanswered."""
        kind = _KIND[type(action)]
        if kind in self.state.asked:
            return
        self.stop(kind)
        self.put(asked=self.state.asked | {kind})
        if kind == "read":
            self.put(answer=None)
        self.actions.append(action)

    def answered(self, action: Action) -> str:
        """Note that an action was answered; its kind."""
        kind = _KIND.get(type(action), "")
        self.put(asked=self.state.asked - {kind})
        return kind

    def at(self, timer: str, when: float) -> None:
        """Set a timer; there is one of each name."""
        self.put(timers={**self.state.timers, timer: when})

    def after(self, timer: str, seconds: float) -> None:
        """Set a timer, in seconds from now."""
        self.at(timer, self.now + seconds)

    def stop(self, *timers: str) -> None:
        """Take timers back."""
        if any(timer in self.state.timers for timer in timers):
            self.put(timers={name: at for name, at in self.state.timers.items() if name not in timers})

    def say(self, progress: Progress, message: str, cause: str = "") -> None:
        """Tell people, unless the same was told last."""
        if self.state.said != (progress.value, cause, message):
            self.put(said=(progress.value, cause, message))
            self.actions.append(Say(progress, message, cause))

    def fault(self, kind: str) -> int:
        """Count a fault; how many of this kind there have been in a row."""
        count = self.state.faults.get(kind, 0) + 1
        self.put(faults={**self.state.faults, kind: count})
        return count

    def lost(self, kind: str) -> None:
        """The server gave no answer to this kind of action."""
        if kind not in self.state.down:
            self.put(down={**self.state.down, kind: self.now})
            self.at("outage", self.now + self.state.plan.budgets.outage)

    def reached(self, *kinds: str) -> None:
        """The server answered; its faults are forgotten."""
        state = self.state
        if any(kind in state.faults for kind in kinds):
            self.put(faults={k: n for k, n in state.faults.items() if k not in kinds})
        if any(kind in state.down for kind in kinds):
            left = {k: since for k, since in state.down.items() if k not in kinds}
            self.put(down=left)
            self.stop("outage")
            if left:
                self.at("outage", min(left.values()) + state.plan.budgets.outage)

    def backoff(self, kind: str, *, cap: float = 300.0, retry_after: float | None = None) -> float:
        """Seconds before the next try after the faults so far: growing, capped, never less than the server asked for.

        The spread between steps comes from the identity, so that it is the same in every replay.
        """
        tries = max(1, self.state.faults.get(kind, 1))
        spread = int(self.state.plan.identity.digest, 16) >> (tries % 24) & 0xFF
        return max(min(cap, 2.0 ** min(tries - 1, 20)) * (0.75 + spread / 1020), retry_after or 0.0)

    def set_wake(self) -> None:
        """Ask to be woken for the earliest timer."""
        timers = self.state.timers
        at = min(timers.values()) if timers else None
        if at != self.state.wake:
            self.put(wake=at)
            if at is not None:
                self.actions.append(WakeAt(at))
