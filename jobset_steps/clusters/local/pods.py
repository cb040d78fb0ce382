"""What a kubelet does with one pod: order of its containers, restarts, deadlines, how it ends. Pure: no clock, no I/O.

`PodRun` is told what happened and when; it answers with orders and with the PodView that follows. Rules and words are
those of the kubelet of Kubernetes 1.34: init containers one by one, sidecars beside them, an exit code of any container
that is not restarted decides the phase.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from jobset_steps.clusters.local.pod_rules import ContainerRules, Kill, Order, PodRules, Run, Terminate
from jobset_steps.observed import Condition, ContainerView, PodView

__all__ = ["PodRun"]

_BACKOFF_FIRST, _BACKOFF_MOST, _BACKOFF_FORGET = 10.0, 300.0, 600.0
"""Seconds: the kubelet restarts at once after the first end, then after 10, 20, ... 300, and forgets after 600."""


@dataclass(slots=True)
class _Container:
    rules: ContainerRules
    view: ContainerView
    ordered: bool = False
    """A Run was given and its end has not been heard of."""
    ever_ran: bool = False
    restart_at: float | None = None
    backoff: float = 0.0
    terminating: bool = False
    ready: bool = False

    @property
    def ended(self) -> bool:
        return self.view.state == "terminated"


class PodRun:
    """One pod from start to end. `finished` is true once its phase is final and nothing of it runs."""

    def __init__(self, view: PodView, rules: PodRules, now: float) -> None:
        self._rules = rules
        self._boxes = {
            rule.name: _Container(
                rule,
                ContainerView(
                    rule.name,
                    "waiting",
                    "PodInitializing"
                    if any(c.init for c in rules.containers) and not rule.init
                    else "ContainerCreating",
                    init=rule.init,
                ),
            )
            for rule in rules.containers
        }
        self._base = view
        self._started_at = now
        self._initialized = not any(rule.init for rule in rules.containers)
        self._kill_at: float | None = None
        self._stopping = False
        self._lost = ""
        self._reason, self._message = "", ""
        self._deadline = None if rules.active_deadline is None else now + rules.active_deadline
        self.finished = False
        self._since: dict[str, tuple[str, float]] = {}
        self.view = view
        self._look(now)

    # What happens to it ---------------------------------------------------------------------------------------------

    def begin(self, now: float) -> list[Order]:
        """The pod is placed: start what comes first."""
        return self._go_on(now)

    def started(self, container: str, now: float) -> list[Order]:
        """A container's main process runs."""
        box = self._boxes[container]
        box.ever_ran = True
        box.ready = not box.rules.probed
        box.view = replace(
            box.view, state="running", reason="", message="", exit_code=None, signal=None, started_at=now,
            finished_at=None,
        )  # fmt: skip
        return self._go_on(now)

    def probed(self, container: str, ready: bool, now: float) -> None:
        """A readiness probe has an answer."""
        self._boxes[container].ready = ready and self._boxes[container].view.state == "running"
        self._look(now)

    def exited(
        self,
        container: str,
        code: int,
        signal: int | None,
        now: float,
        *,
        message: str = "",
        failure: str = "",
    ) -> list[Order]:
        """A container ended, or could not be started (`failure` says why)."""
        box = self._boxes[container]
        box.ordered = box.ready = box.terminating = False
        reason = "StartError" if failure else "Completed" if code == 0 else "Error"
        ran_for = now - (box.view.started_at if box.view.started_at is not None else now)
        box.view = replace(
            box.view, state="terminated", reason=reason, message=failure or message, exit_code=code, signal=signal,
            finished_at=now,
        )  # fmt: skip
        if ran_for > _BACKOFF_FORGET:
            box.backoff = 0.0
        if not self._stopping and self._restarts(box):
            box.restart_at = now + box.backoff
            box.backoff = min(max(2 * box.backoff, _BACKOFF_FIRST), _BACKOFF_MOST)
            if box.restart_at > now:
                self._wait_for_restart(box)
        return self._go_on(now)

    def stop(self, grace: float, now: float) -> list[Order]:
        """It is being deleted: SIGTERM now, SIGKILL after `grace` seconds."""
        return self._stop(grace, now)

    def lost(self, why: str, now: float) -> None:
        """All of it is gone, and not of its own doing: as when a node is lost."""
        for box in self._boxes.values():
            if box.ordered:
                box.ordered = False
                box.view = replace(
                    box.view, state="terminated", reason="ContainerStatusUnknown", message=why, exit_code=137,
                    finished_at=now,
                )  # fmt: skip
        self._stopping, self._lost = True, why
        self._reason, self._message = self._reason or "NodeLost", self._message or why
        self._go_on(now)

    def tick(self, now: float) -> list[Order]:
        """Time passed: see `next_due`."""
        orders: list[Order] = []
        if self.finished:
            return orders
        if self._deadline is not None and now >= self._deadline:
            self._deadline = None
            if not self._stopping:
                self._reason = "DeadlineExceeded"
                self._message = "Pod was active on the node longer than the specified deadline"
                orders += self._stop(self._rules.grace, now)
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            orders += [Kill(name) for name, box in self._boxes.items() if box.ordered]
        return orders + self._go_on(now)

    @property
    def next_due(self) -> float | None:
        """When `tick` has something to do, None if only an event has."""
        if self.finished:
            return None
        times = [self._deadline, self._kill_at]
        if not self._stopping:
            times += [box.restart_at for box in self._boxes.values()]
        return min((time for time in times if time is not None), default=None)

    # What follows ---------------------------------------------------------------------------------------------------

    def _restarts(self, box: _Container) -> bool:
        if box.rules.sidecar:
            return True
        if box.rules.init or self._rules.restart_policy == "OnFailure":
            return self._rules.restart_policy != "Never" and box.view.exit_code != 0
        return self._rules.restart_policy == "Always"

    def _wait_for_restart(self, box: _Container) -> None:
        pause = box.restart_at - (box.view.finished_at or 0.0) if box.restart_at is not None else 0.0
        box.view = ContainerView(
            box.rules.name,
            "waiting",
            "CrashLoopBackOff",
            f"back-off {pause:g}s restarting failed container={box.rules.name} pod={self._base.name}",
            restart_count=box.view.restart_count,
            init=box.rules.init,
            last=replace(box.view, last=None),
        )

    def _go_on(self, now: float) -> list[Order]:
        orders = [] if self._stopping else list(self._start(now))
        if self._over():
            orders += self._stop_sidecars(now)
        if self._over() and not any(box.ordered for box in self._boxes.values()):
            self.finished = True
        self._look(now)
        return orders

    def _over(self) -> bool:
        """Whether no container that decides will run any more."""
        if self._stopping:
            return not any(box.ordered for box in self._boxes.values() if not box.rules.sidecar)
        if not self._initialized:
            return any(
                box.ended and box.restart_at is None and box.view.exit_code != 0
                for box in self._boxes.values()
                if box.rules.init and not box.rules.sidecar
            )
        return all(box.ended and box.restart_at is None for box in self._boxes.values() if not box.rules.init)

    def _start(self, now: float) -> Iterator[Order]:
        for box in self._boxes.values():
            if self._over():
                return
            due = box.restart_at is not None and now >= box.restart_at
            if not box.ordered and (due or (box.view.state == "waiting" and box.restart_at is None)):
                if not box.rules.init and not self._initialized:
                    return
                if due:
                    count = box.view.restart_count + 1
                    last = box.view.last if box.view.state == "waiting" else replace(box.view, last=None)
                    box.view = ContainerView(
                        box.rules.name, "waiting", "ContainerCreating", restart_count=count, init=box.rules.init,
                        last=last,
                    )  # fmt: skip
                box.restart_at, box.ordered = None, True
                yield Run(box.rules.name, box.view.restart_count)
            if box.rules.init and not self._initialized:
                # A sidecar that started once holds nobody up again.
                passed = box.ever_ran and (box.rules.sidecar or (box.ended and box.view.exit_code == 0))
                if not passed:
                    return
            if not self._initialized and box is self._last_init:
                self._initialized = True

    @property
    def _last_init(self) -> _Container | None:
        return next((box for box in reversed(self._boxes.values()) if box.rules.init), None)

    def _stop(self, grace: float, now: float) -> list[Order]:
        orders: list[Order] = []
        if not self._stopping:
            self._stopping = True
            for box in self._boxes.values():
                box.restart_at = None
        # A second stop can only shorten the grace.
        kill_at = now + grace
        self._kill_at = kill_at if self._kill_at is None else min(self._kill_at, kill_at)
        if grace <= 0:
            self._kill_at = None
            orders += [Kill(name) for name, box in self._boxes.items() if box.ordered]
        else:
            orders += self._terminate(box for box in self._boxes.values() if not box.rules.sidecar)
        return orders + self._go_on(now)

    def _stop_sidecars(self, now: float) -> Iterator[Order]:
        if not self._stopping:
            self._stopping = True
            self._kill_at = now + self._rules.grace
            for box in self._boxes.values():
                box.restart_at = None
        yield from self._terminate(box for box in self._boxes.values() if box.rules.sidecar)

    def _terminate(self, boxes: Iterator[_Container]) -> Iterator[Order]:
        for box in boxes:
            if box.ordered and not box.terminating:
                box.terminating = True
                yield Terminate(box.rules.name)

    # What it looks like ---------------------------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        boxes = self._boxes.values()
        main = [box for box in boxes if not box.rules.init]
        if self.finished:
            well = (
                not self._lost and not self._reason and all(b.ended and b.view.exit_code == 0 for b in main)
            )
            phase = "Succeeded" if well else "Failed"
        else:
            phase = "Running" if self._initialized and any(b.ever_ran for b in main) else "Pending"
        serving = [*main, *(b for b in boxes if b.rules.sidecar)]
        ready = phase == "Running" and all(box.ready for box in serving)
        holds = {
            "PodScheduled": True,
            "Initialized": self._initialized or phase == "Succeeded",
            "Ready": ready,
        }
        if self._lost:
            holds["DisruptionTarget"] = True
        self.view = replace(
            self._base,
            phase=phase,
            ready=ready,
            reason=self._reason if phase == "Failed" else "",
            message=self._message if phase == "Failed" else "",
            conditions=tuple(self._condition(type_, held, now) for type_, held in holds.items()),
            containers=tuple(box.view for box in boxes),
        )

    def _condition(self, type_: str, holds: bool, now: float) -> Condition:
        status = "True" if holds else "False"
        if self._since.get(type_, ("", 0.0))[0] != status:
            self._since[type_] = (status, now)
        if type_ == "DisruptionTarget":
            return Condition(type_, status, "NodeLost", self._lost, self._since[type_][1])
        return Condition(type_, status, since=self._since[type_][1])
