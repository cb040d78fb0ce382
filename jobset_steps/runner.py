"""The only loop and the only clock: feeds inputs to supervisors, carries out what they ask for, any number at once.

It decides nothing. An action that fails becomes an ApiFault; one that breaks in a way nobody foresaw ends its own step with
`InternalError` and leaves the JobSet alone. A step costs a few objects here and no thread of its own.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from jobset_steps.clusters import Cluster, Subscription
from jobset_steps.errors import ApiError
from jobset_steps.observed import View
from jobset_steps.outcome import Outcome, Verdict, exit_code
from jobset_steps.spec.naming import instantiate, marks
from jobset_steps.supervisor import start, step
from jobset_steps.supervisor.inputs import (
    Action,
    ApiFault,
    Create,
    Delete,
    Deliver,
    Done,
    EndRequest,
    Finish,
    Input,
    Load,
    Read,
    Save,
    Say,
    Seen,
    Tail,
    Tick,
    WakeAt,
)
from jobset_steps.supervisor.plan import Record, StepPlan
from jobset_steps.supervisor.state import StepState

__all__ = ["Clock", "Handle", "Inputs", "Runner", "WallClock"]

TAIL_LINES = 50
"""Lines kept of a pod that failed."""
# Actions wait on the server, not on this machine's cores.
_WORKERS = 16


@dataclass(frozen=True, slots=True)
class _Broken:
    """An action that raised what nobody foresaw."""

    error: BaseException


# A handle with None says that its newest View waits to be taken.
Item = tuple["Handle", Input | _Broken | None]
# None alone wakes the loop.
Inputs = SimpleQueue[Item | None]


class Clock(Protocol):
    """Time as the loop sees it: a wall clock, or a simulated cluster's."""

    def now(self) -> float:
        """POSIX seconds."""

    def next(self, inputs: Inputs, until: float | None) -> Item | None:
        """The next input, or None once it is `until` (None: wait for an input however long it takes) or was woken."""


class WallClock:
    """This machine's clock."""

    def now(self) -> float:
        """See Clock.now."""
        return time.time()

    def next(self, inputs: Inputs, until: float | None) -> Item | None:
        """See Clock.next."""
        try:
            return inputs.get(timeout=None if until is None else max(0.0, until - time.time()))
        except Empty:
            return None


class Handle:
    """One step under way. `end` may be called from any thread and from a signal handler."""

    def __init__(self, runner: Runner, plan: StepPlan, hooks: Hooks) -> None:
        self._runner, self.plan, self._hooks = runner, plan, hooks
        self.state: StepState = start(plan)
        self.outcome: Outcome | None = None
        self._wake: float | None = None
        self._lock = threading.Lock()
        self._view: View | None = None
        self._watched = ""
        self._subscriptions: list[Subscription] = []

    def end(self, request: EndRequest) -> None:
        """Ask the step to end."""
        self._runner._inputs.put((self, request))

    def _notify(self, seen: View | ApiError) -> None:
        """Called by the watch: only the newest View is kept, with every pod that went in between."""
        if isinstance(seen, ApiError):
            self._runner._inputs.put((self, _fault(None, seen)))
            return
        with self._lock:
            before, self._view = self._view, seen
            if before is not None:
                known = {pod.uid for pod in seen.pods}
                lost = tuple(pod for pod in before.pods if pod.gone and pod.uid not in known)
                self._view = replace(seen, pods=seen.pods + lost) if lost else seen
                return
        self._runner._inputs.put((self, None))

    def _take(self) -> View | None:
        with self._lock:
            view, self._view = self._view, None
            return view


@dataclass(frozen=True)
class Hooks:
    """What a step's owner wants to hear. All are called from the loop's thread, but `deliver` and `log`."""

    deliver: Callable[[Outcome], None]
    """Hand the outcome to the engine (write outputs). An OSError is told and tried again by the supervisor."""
    say: Callable[[Say], None] = field(default=lambda _: None)
    seen: Callable[[StepState], None] = field(default=lambda _: None)
    log: Callable[[str], None] | None = None
    """Lines of the leader's log; None: not followed."""
    done: Callable[[Outcome], None] = field(default=lambda _: None)


class Runner:
    """Drives steps over one cluster. `run_all` and `run_until` are its loop; any thread may call `add` and `Handle.end`."""

    def __init__(
        self, cluster: Cluster, *, clock: Clock | None = None, executor: Executor | None = None
    ) -> None:
        self._cluster = cluster
        self._clock: Clock = clock or WallClock()
        self._executor = executor or ThreadPoolExecutor(_WORKERS, thread_name_prefix="jobset-steps-action")
        self._inputs: Inputs = SimpleQueue()
        self._wakes: list[tuple[float, int, Handle]] = []
        self._order = itertools.count()
        self._live: set[Handle] = set()

    def add(self, plan: StepPlan, hooks: Hooks) -> Handle:
        """Begin a step; it moves while `run_all` runs."""
        handle = Handle(self, plan, hooks)
        self._live.add(handle)
        self._inputs.put((handle, Tick()))
        return handle

    def run(self, plan: StepPlan, hooks: Hooks) -> Outcome:
        """One step from beginning to end."""
        handle = self.add(plan, hooks)
        self.run_all()
        assert handle.outcome is not None
        return handle.outcome

    def run_all(self) -> None:
        """Until every step that was added is over."""
        self._loop(lambda: not self._live)

    def run_until(self, stopped: threading.Event) -> None:
        """Until `stopped` is set and `wake` called, however many steps come and go meanwhile."""
        self._loop(stopped.is_set)

    def wake(self) -> None:
        """Let `run_until` look whether it is to stop."""
        self._inputs.put(None)

    def _loop(self, over: Callable[[], bool]) -> None:
        while not over():
            item = self._clock.next(self._inputs, self._wakes[0][0] if self._wakes else None)
            if item is not None:
                self._feed(*item)
            now = self._clock.now()
            while self._wakes and self._wakes[0][0] <= now:
                due, _, handle = heapq.heappop(self._wakes)
                if handle._wake == due and handle in self._live:
                    handle._wake = None
                    self._feed(handle, Tick())

    def close(self) -> None:
        """Leave every step where it is; JobSets stay."""
        for handle in tuple(self._live):
            self._forget(handle)
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _feed(self, handle: Handle, item: Input | _Broken | None) -> None:
        if handle not in self._live:
            return
        if isinstance(item, _Broken):
            self._broke(handle, item.error)
            return
        if item is None:
            view = handle._take()
            if view is None:
                return
            item = Seen(view)
        try:
            handle.state, actions = step(handle.state, item, self._clock.now())
            self._watch(handle)
            for action in actions:
                self._begin(handle, action)
            handle._hooks.seen(handle.state)
        except Exception as error:
            self._broke(handle, error)

    def _begin(self, handle: Handle, action: Action) -> None:
        match action:
            case Say():
                handle._hooks.say(action)
            case WakeAt(at=at):
                handle._wake = at
                heapq.heappush(self._wakes, (at, next(self._order), handle))
            case Finish(outcome=outcome):
                self._finish(handle, outcome)
            case _:
                self._executor.submit(self._carry_out, handle, action)

    def _carry_out(self, handle: Handle, action: Action) -> None:
        """One action, on a thread of the pool; its answer goes to the loop."""
        answer: Input | _Broken
        try:
            answer = self._answer(handle, action)
        except ApiError as error:
            answer = _fault(action, error)
        except Exception as error:
            if isinstance(error, OSError) and isinstance(action, Deliver):
                answer = ApiFault(action, "unavailable", f"the outputs cannot be written: {error}")
            else:
                answer = _Broken(error)
        self._inputs.put((handle, answer))

    def _answer(self, handle: Handle, action: Action) -> Done:
        cluster, plan = self._cluster, handle.plan
        match action:
            case Load():
                stored = cluster.load(plan.identity.digest)
                if stored is None:
                    return Done(action)
                return Done(action, record=Record.model_validate_json(stored.text), version=stored.version)
            case Save(record=record, version=version):
                owner = None if plan.identity.slot else _owner(plan)
                return Done(
                    action,
                    version=cluster.save(
                        plan.identity.digest, record.model_dump_json(), version, owner=owner
                    ),
                )
            case Create(name=name, generation=generation):
                return Done(action, uid=cluster.create(manifest_of(plan, name, generation)))
            case Read(name=name, events=events):
                self._inputs.put((handle, Seen(cluster.read(name, events=events))))
                return Done(action)
            case Delete(name=name, uid=uid):
                cluster.delete(name, uid)
                return Done(action)
            case Tail(pod=pod, container=container, attempt=attempt):
                log = cluster.tail(pod, container, attempt, TAIL_LINES)
                return Done(action, lines=log.lines, written_at=log.written_at)
            case Deliver(outcome=outcome):
                handle._hooks.deliver(outcome)
                return Done(action)
        raise AssertionError(f"nobody carries out {action}")

    def _watch(self, handle: Handle) -> None:
        """Watch the JobSet that the step waits for: none before it is made, another one in a new generation."""
        name = handle.state.watching
        if name == handle._watched:
            return
        self._unwatch(handle)
        handle._watched = name
        if name:
            handle._subscriptions.append(self._cluster.watch(name, handle._notify))
            if handle._hooks.log is not None:
                handle._subscriptions.append(self._cluster.follow(name, handle._hooks.log))

    def _unwatch(self, handle: Handle) -> None:
        for subscription in handle._subscriptions:
            subscription.close()
        handle._subscriptions.clear()
        handle._take()

    def _finish(self, handle: Handle, outcome: Outcome) -> None:
        handle.outcome = outcome
        self._forget(handle)
        handle._hooks.done(outcome)

    def _forget(self, handle: Handle) -> None:
        self._live.discard(handle)
        self._unwatch(handle)

    def _broke(self, handle: Handle, error: BaseException) -> None:
        """Our own defect: this step ends without a verdict, its JobSet and the other steps go on."""
        if handle not in self._live:
            return
        trace = "".join(traceback.format_exception(error))
        plan, state = handle.plan, handle.state
        outcome = Outcome(
            verdict=Verdict.UNKNOWN,
            reason="InternalError",
            message=f"jobset-steps itself failed: {type(error).__name__}: {error}\n{trace}",
            exit_code=exit_code(Verdict.UNKNOWN, reason="InternalError"),
            run=plan.identity.run,
            step=plan.identity.step,
            slot=plan.identity.slot,
            generation=max(1, state.generation),
            namespace=plan.namespace,
            jobset=state.name,
            uid=state.uid,
            finished_at=self._clock.now(),
        )
        self._finish(handle, outcome)


def manifest_of(plan: StepPlan, name: str, generation: int) -> dict[str, Any]:
    """The JobSet that a plan creates under a name and generation."""
    identity = plan.identity
    labels, annotations = marks(
        digest=identity.digest,
        run=identity.run,
        step=identity.step,
        slot=identity.slot,
        generation=generation,
        spec_hash=plan.spec_hash,
    )
    return instantiate(
        plan.jobset,
        name=name,
        namespace=plan.namespace,
        labels=labels,
        annotations=annotations | dict(plan.annotations),
        owner=_owner(plan),
    )


def _owner(plan: StepPlan) -> dict[str, Any] | None:
    if plan.owner is None:
        return None
    owner = plan.owner
    return {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}


def _fault(action: Action | None, error: ApiError) -> ApiFault:
    return ApiFault(action, error.kind, error.message, error.retry_after)
