"""What a supervisor hears (inputs) and what it asks for (actions). Plain data; see `step` for who decides.

Each action is answered by exactly one `Done` or `ApiFault` that carries the same action, except `Say`, `WakeAt` and
`Finish`, which are not answered. A runner that dies loses answers: every action can be carried out again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from jobset_steps.observed import View
from jobset_steps.outcome import Outcome
from jobset_steps.supervisor.plan import Record

__all__ = [
    "Action",
    "ApiFault",
    "Create",
    "Delete",
    "Deliver",
    "Done",
    "EndCause",
    "EndRequest",
    "Finish",
    "Input",
    "Load",
    "Progress",
    "Read",
    "Save",
    "Say",
    "Seen",
    "Tail",
    "Tick",
    "WakeAt",
]


@dataclass(frozen=True, slots=True)
class Load:
    """Read the identity's Record. Answer: Done with `record` (None: there is none) and `version`."""


@dataclass(frozen=True, slots=True)
class Save:
    """Write the Record if it is still at `version` ("" = must not exist). Answer: Done with the new `version`."""

    record: Record
    version: str


@dataclass(frozen=True, slots=True)
class Create:
    """Create the JobSet under this name and generation. Answer: Done with `uid`, or ApiFault."""

    name: str
    generation: int


@dataclass(frozen=True, slots=True)
class Read:
    """Read JobSet, Jobs and Pods afresh (events too if `events`). Answer: Done, and a Seen before it."""

    name: str
    events: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the JobSet in the foreground if it still has this uid. Answer: Done once the server took it."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Tail:
    """Read the last lines of a pod's container. Best effort. Answer: Done with `lines`."""

    pod: str
    container: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand the outcome to the engine (write the outputs). Answer: Done."""

    outcome: Outcome


class Progress(StrEnum):
    """What a step is doing, told while it lasts, never final."""

    QUEUED = "Queued"
    STARTING = "Starting"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    STUCK = "Stuck"
    UNREACHABLE = "Unreachable"
    ENDING = "Ending"


@dataclass(frozen=True, slots=True)
class Say:
    """Tell people: progress and one line. `cause` is a CamelCase word where progress is Stuck or Queued."""

    progress: Progress
    message: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Send a Tick at this time (POSIX seconds) or soon after. Replaces the previous WakeAt."""

    at: float


@dataclass(frozen=True, slots=True)
class Finish:
    """The step is over; nothing more will be asked."""

    outcome: Outcome


Action = Load | Save | Create | Read | Delete | Tail | Deliver | Say | WakeAt | Finish


@dataclass(frozen=True, slots=True)
class Seen:
    """The cluster was read, or a watch told of a change."""

    view: View


@dataclass(frozen=True, slots=True)
class Done:
    """An action was carried out."""

    action: Action
    record: Record | None = None
    version: str = ""
    uid: str = ""
    lines: tuple[str, ...] = field(default=())
    written_at: float | None = None


@dataclass(frozen=True, slots=True)
class ApiFault:
    """An action, or the watch (action None), failed. `kind` is one of ApiError.KINDS."""

    action: Action | None
    kind: str
    message: str
    retry_after: float | None = None


class EndCause(StrEnum):
    """Why the launcher itself is asked to end."""

    CANCEL = "Cancel"
    """The run is shut down, past its deadline, or gone: delete the JobSet."""
    EVICTION = "Eviction"
    """Only this launcher is going: leave the JobSet to the next one."""
    UNKNOWN = "Unknown"
    """Cannot tell: leave the JobSet, and say so."""


@dataclass(frozen=True, slots=True)
class EndRequest:
    """The launcher is to end. `message` says how it was found out."""

    cause: EndCause
    message: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed: a WakeAt is due, or the runner starts (the first input of all)."""


Input = Seen | Done | ApiFault | EndRequest | Tick
