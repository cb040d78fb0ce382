"""What runs pods, as the controller loop sees it: told to start and to stop, never asked and never waited for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from jobset_steps.observed import PodView

__all__ = ["Kubelet", "PodStart"]


@dataclass(frozen=True, slots=True)
class PodStart:
    """A pod to be run: its View as created and its full manifest (metadata with the labels and annotations that
    JobSet and Job set, spec with hostname and subdomain, JOB_COMPLETION_INDEX in every container's env).
    """

    view: PodView
    jobset: str
    manifest: Mapping[str, Any]


class Kubelet(Protocol):
    """What runs pods. Neither call blocks; what becomes of a pod is reported to the controller."""

    def start(self, pod: PodStart) -> None:
        """Start it. Each change is reported as a new PodView with the same uid."""

    def stop(self, uid: str, grace: float) -> None:
        """SIGTERM now, SIGKILL after `grace` seconds (0: at once); then the end is reported like any other."""
