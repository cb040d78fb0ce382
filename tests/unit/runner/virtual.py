"""A runner on the simulated cluster: its clock is the cluster's, and actions are carried out at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import Empty
from typing import Any

from jobset_steps.clusters.simulated import SimulatedCluster
from jobset_steps.clusters.simulated.scripts import Scripts
from jobset_steps.outcome import Outcome
from jobset_steps.runner import Hooks, Inputs, Item, Runner
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.jobset import JobSet
from jobset_steps.supervisor.plan import EngineAttempt, Identity, StepPlan

__all__ = ["AtOnce", "VirtualClock", "hooks", "plan", "simulated"]


class VirtualClock:
    """Time jumps to whatever is due next: a wake-up of the runner or something in the cluster."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def now(self) -> float:
        return self._cluster.now

    def next(self, inputs: Inputs, until: float | None) -> Item | None:
        try:
            return inputs.get_nowait()
        except Empty:
            pass
        due = [at for at in (until, self._cluster.next_due()) if at is not None]
        assert due, "nothing would ever happen again"
        self._cluster.advance(max(0.0, min(due) - self._cluster.now))
        try:
            return inputs.get_nowait()
        except Empty:
            return None


class AtOnce(Executor):
    """Carries out what is submitted before submit returns."""

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(call(*args, **kwargs))
        return future


def simulated(scripts: Scripts | None = None) -> tuple[SimulatedCluster, Runner]:
    cluster = SimulatedCluster(scripts)
    return cluster, Runner(cluster, clock=VirtualClock(cluster), executor=AtOnce())


def hooks(delivered: list[Outcome] | None = None, **more: Any) -> Hooks:
    return Hooks(deliver=(delivered if delivered is not None else []).append, **more)


def plan(tree: dict[str, Any], *, run: str = "run-1", step: str = "train", **more: Any) -> StepPlan:
    return StepPlan(
        identity=Identity(run, step),
        jobset=with_defaults(JobSet.from_dict(tree)),
        spec_hash="hash",
        engine=more.pop("engine", EngineAttempt("launcher-1")),
        **more,
    )
