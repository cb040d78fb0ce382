"""A Kubelet whose pods follow scripts on a virtual clock: nothing runs, everything is reported as if it had.

It keeps its own list of what happens when; `next_due` and `tick` move it. It never decides what becomes of a Job.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from jobset_steps.clusters.controller.kubelet import PodStart
from jobset_steps.clusters.simulated.scripts import PodRun, PodScript
from jobset_steps.observed import Condition, ContainerView, EventView, PodView

__all__ = ["ScriptedKubelet", "Surroundings"]

# The kubelet's delays before it restarts a container: 10 s, doubled, at most five minutes.
_FIRST_RESTART, _LONGEST_RESTART = 10.0, 300.0


class Surroundings(Protocol):
    """What the Kubelet reports to."""

    def pod_changed(self, pod: PodView) -> None:
        """A pod changed."""

    def say(self, jobset: str, event: EventView) -> None:
        """An event about a pod."""

    def evict(self, uid: str, now: float) -> None:
        """A pod is to be deleted because of a disruption."""

    def wrote(self, pod: PodStart, lines: tuple[str, ...]) -> None:
        """A pod wrote lines."""


@dataclass(slots=True)
class _Pod:
    start: PodStart
    view: PodView
    script: PodScript
    run: PodRun
    restarts: bool
    stopping: bool = False
    # Grows with each thing that makes what was planned before void.
    plan: int = 0

    @property
    def container(self) -> str:
        containers = (self.start.manifest.get("spec") or {}).get("containers") or ()
        return containers[0].get("name", "main") if containers else "main"


class ScriptedKubelet:
    """`scripts` gives the script of a run; `now` is set by `tick`."""

    def __init__(self, scripts: Callable[[PodRun], PodScript], surroundings: Surroundings) -> None:
        self.now = 0.0
        self._scripts = scripts
        self._around = surroundings
        self._pods: dict[str, _Pod] = {}
        self._seen: Counter[tuple[str, int]] = Counter()
        self._planned: list[tuple[float, int, str, int, Callable[[_Pod], None]]] = []
        self._order = itertools.count()

    def start(self, pod: PodStart) -> None:
        """Plan the pod's run. Each pod of the same Job and index is one more retry."""
        view, spec = pod.view, pod.manifest.get("spec") or {}
        owners: tuple[dict[str, str], ...] = (pod.manifest.get("metadata") or {}).get("ownerReferences") or (
            {},
        )
        place = (owners[0].get("uid", view.job), view.index)
        run = PodRun(view.replicated_job, view.job_index, view.index, view.attempt, retry=self._seen[place])
        self._seen[place] += 1
        restarts = spec.get("restartPolicy") == "OnFailure"
        held = self._pods[view.uid] = _Pod(pod, view, self._scripts(run), run, restarts)
        self._plan(held, 0.0, self._schedule)

    def stop(self, uid: str, grace: float) -> None:
        """End the pod after its script's time, or killed after `grace` seconds. A pod that is not known is no error."""
        pod = self._pods.get(uid)
        if pod is None or pod.script.lost:
            return
        pod.stopping = True
        if not any(each.state == "running" for each in pod.view.containers):
            self._plan_anew(pod, 0.0, self._end_without_running)
        elif pod.script.stops_after > grace:
            self._plan(pod, grace, lambda each: self._end(each, 137, signal=9))
        else:
            code = pod.script.stop_exit_code
            self._plan(pod, pod.script.stops_after, lambda each: self._end(each, code))

    def next_due(self) -> float | None:
        """When something happens next, None: nothing before a change. POSIX seconds."""
        return self._planned[0][0] if self._planned else None

    def tick(self, now: float) -> None:
        """Let happen what is due."""
        while self._planned and self._planned[0][0] <= now:
            at, _, uid, plan, what = heapq.heappop(self._planned)
            self.now = max(self.now, at)
            pod = self._pods.get(uid)
            if pod is not None and pod.plan == plan:
                what(pod)
        self.now = now

    def _plan(self, pod: _Pod, after: float, what: Callable[[_Pod], None]) -> None:
        heapq.heappush(self._planned, (self.now + after, next(self._order), pod.view.uid, pod.plan, what))

    def _plan_anew(self, pod: _Pod, after: float, what: Callable[[_Pod], None]) -> None:
        pod.plan += 1
        self._plan(pod, after, what)

    def _schedule(self, pod: _Pod) -> None:
        if pod.script.unschedulable:
            words = "0/1 nodes are available: 1 Insufficient cpu."
            condition = Condition("PodScheduled", "False", "Unschedulable", words, self.now)
            self._report(pod, conditions=(condition,))
            self._say(pod, "Warning", "FailedScheduling", words)
            return
        scheduled = Condition("PodScheduled", "True", since=self.now)
        self._report(
            pod,
            node=pod.script.node,
            conditions=(scheduled,),
            containers=(ContainerView(pod.container, "waiting", "ContainerCreating"),),
        )
        if pod.script.cannot_pull:
            self._plan(pod, pod.script.starts_after, self._fail_to_pull)
        else:
            self._plan(pod, pod.script.starts_after, self._run)

    def _fail_to_pull(self, pod: _Pod) -> None:
        words = f'Back-off pulling image of container "{pod.container}"'
        self._report(pod, containers=(ContainerView(pod.container, "waiting", "ImagePullBackOff", words),))
        self._say(pod, "Warning", "Failed", "Error: ImagePullBackOff")

    def _run(self, pod: _Pod) -> None:
        before = pod.view.containers[0] if pod.view.containers else None
        running = ContainerView(
            pod.container,
            "running",
            started_at=self.now,
            restart_count=pod.run.restart,
            last=before.last if before is not None else None,
        )
        self._report(pod, phase="Running", containers=(running,))
        if pod.script.log:
            self._around.wrote(pod.start, pod.script.log)
        if pod.script.ready_after is not None:
            self._plan(pod, pod.script.ready_after, self._become_ready)
        if pod.script.runs is not None:
            self._plan(pod, pod.script.runs, self._disrupt if pod.script.disrupted else self._end_by_itself)

    def _become_ready(self, pod: _Pod) -> None:
        self._report(pod, ready=True, conditions=self._with(pod, Condition("Ready", "True", since=self.now)))

    def _disrupt(self, pod: _Pod) -> None:
        words = "Eviction API: evicting"
        condition = Condition("DisruptionTarget", "True", "EvictionByEvictionAPI", words, self.now)
        self._report(pod, conditions=self._with(pod, condition))
        self._around.evict(pod.view.uid, self.now)

    def _end_by_itself(self, pod: _Pod) -> None:
        if pod.script.oom:
            self._end(pod, 137, signal=9, reason="OOMKilled")
        else:
            self._end(pod, pod.script.exit_code, signal=pod.script.signal)

    def _end(self, pod: _Pod, code: int, *, signal: int | None = None, reason: str = "") -> None:
        pod.plan += 1
        before = pod.view.containers[0] if pod.view.containers else None
        ended = ContainerView(
            pod.container,
            "terminated",
            reason=reason or ("Error" if code else "Completed"),
            message=pod.script.message,
            exit_code=code,
            signal=signal,
            started_at=before.started_at if before is not None else None,
            finished_at=self.now,
            restart_count=pod.run.restart,
            last=before.last if before is not None else None,
        )
        if code and pod.restarts and not pod.stopping:
            self._restart(pod, ended)
            return
        self._report(
            pod,
            phase="Failed" if code else "Succeeded",
            ready=False,
            containers=(ended,),
            conditions=self._with(pod, Condition("Ready", "False", "PodFailed", since=self.now)),
        )
        del self._pods[pod.view.uid]

    def _restart(self, pod: _Pod, ended: ContainerView) -> None:
        """As the kubelet does with restartPolicy OnFailure: the container runs again, later each time."""
        pod.run = replace(pod.run, restart=pod.run.restart + 1)
        waiting = ContainerView(
            pod.container,
            "waiting",
            "CrashLoopBackOff",
            restart_count=pod.run.restart - 1,
            last=replace(ended, last=None),
        )
        not_ready = Condition("Ready", "False", "ContainersNotReady", since=self.now)
        self._report(pod, ready=False, containers=(waiting,), conditions=self._with(pod, not_ready))
        pod.script = self._scripts(pod.run)
        delay = min(_FIRST_RESTART * 2 ** min(pod.run.restart - 1, 10), _LONGEST_RESTART)
        self._plan(pod, delay, self._run)

    def _end_without_running(self, pod: _Pod) -> None:
        # Its container waits: for its first run, or to be restarted after its last one.
        ended = tuple(each.last for each in pod.view.containers if each.last is not None)
        self._report(pod, phase="Failed", ready=False, containers=ended or pod.view.containers)
        del self._pods[pod.view.uid]

    def _with(self, pod: _Pod, condition: Condition) -> tuple[Condition, ...]:
        return (*(each for each in pod.view.conditions if each.type != condition.type), condition)

    def _report(self, pod: _Pod, **changes: object) -> None:
        pod.view = replace(pod.view, **changes)  # type: ignore[arg-type]
        self._around.pod_changed(pod.view)

    def _say(self, pod: _Pod, type_: str, reason: str, words: str) -> None:
        event = EventView("Pod", pod.view.name, type_, reason, words, 1, self.now)
        self._around.say(pod.start.jobset, event)
