"""What a pod's life depends on, and what its life orders: the plain data of PodRun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["ContainerRules", "Kill", "Order", "PodRules", "Run", "Terminate"]


@dataclass(frozen=True, slots=True)
class ContainerRules:
    """One container, as far as its life goes. A sidecar is an init container with restartPolicy Always."""

    name: str
    init: bool = False
    sidecar: bool = False
    probed: bool = False
    """It is ready only once a readiness probe says so; without one it is ready while it runs."""


@dataclass(frozen=True, slots=True)
class PodRules:
    """One pod, as far as its life goes. `grace` and `active_deadline` are in seconds."""

    containers: tuple[ContainerRules, ...]
    restart_policy: Literal["Never", "OnFailure", "Always"] = "Never"
    grace: float = 30.0
    active_deadline: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Start the container; `number` is its restart count."""

    container: str
    number: int


@dataclass(frozen=True, slots=True)
class Terminate:
    """SIGTERM to the container's main process."""

    container: str


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL to the container's process tree."""

    container: str


Order = Run | Terminate | Kill
