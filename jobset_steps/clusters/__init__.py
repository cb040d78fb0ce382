"""The Cluster protocol: one place where JobSets run. Kubernetes, this machine, or a script.

Every call blocks, may come from any thread, and either does what it says or raises `ApiError`. No call retries, waits
for a state or decides anything: the supervisor does. All are idempotent or say how a repeat is told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from jobset_steps.errors import ApiError
from jobset_steps.observed import LogTail, View

__all__ = ["Cluster", "Notify", "Stored", "Subscription"]


@dataclass(frozen=True, slots=True)
class Stored:
    """A Record as stored: its JSON text and the version that a save must name."""

    text: str
    version: str


class Notify(Protocol):
    """What a watch calls, from a thread of the cluster's. It must return at once and never raises."""

    def __call__(self, seen: View | ApiError) -> None:
        """Hear of a new View, or of a watch that cannot be kept up (it goes on trying)."""


class Subscription(Protocol):
    """A watch that is on."""

    def close(self) -> None:
        """Stop it; no call of notify begins after this returns."""


class Cluster(Protocol):
    """One namespace of one cluster."""

    name: str
    """What people call it: "local", "kubernetes", "simulated"."""

    def load(self, digest: str) -> Stored | None:
        """The Record of an identity (Identity.digest), None if there is none."""

    def save(self, digest: str, text: str, version: str, *, owner: Mapping[str, Any] | None = None) -> str:
        """Write it if still at `version` ("": must not exist) and return the new version. Raises conflict."""

    def create(self, manifest: Mapping[str, Any]) -> str:
        """Create a JobSet from its full camelCase manifest and return its uid.

        Raises exists, invalid (also where a child Job or pod could never be made), forbidden, unavailable.
        """

    def read(self, name: str, *, events: bool = False) -> View:
        """A complete View, read afresh. A JobSet that does not exist is `View(jobset=None)`, not an error."""

    def watch(self, name: str, notify: Notify) -> Subscription:
        """Call notify after every change, and once at the start. Changes may be coalesced; terminations may not:
        a pod deleted since the last View is shown once more with `gone`.
        """

    def delete(self, name: str, uid: str) -> None:
        """Begin a foreground delete if the JobSet has this uid. A JobSet gone, or with another uid, is no error."""

    def tail(self, pod: str, container: str, attempt: int, lines: int) -> LogTail:
        """The last lines a container wrote (fewer if there are fewer). Raises not_found once they are lost."""

    def follow(self, name: str, write: Callable[[str], None]) -> Subscription:
        """Stream the log lines of the leader (first pod of the first replicated job), attempt after attempt."""

    def close(self) -> None:
        """Release what this object holds. The local cluster ends its pods; Kubernetes keeps its JobSets."""
