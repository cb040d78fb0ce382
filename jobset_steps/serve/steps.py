"""All steps that this process runs: begun at the agent's first question, driven by one runner, told of when asked.

Nothing is kept that the cluster does not hold as well: a process that is started again is asked about the same nodes, and
each step finds its Record. What Argo never tells a plugin, that a Workflow or a node is over, the Workflow itself says.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from jobset_steps.clusters import Cluster, Subscription
from jobset_steps.clusters.kubernetes.launcher_pod import place_of
from jobset_steps.clusters.kubernetes.workflows import Read
from jobset_steps.errors import ApiError, BadInput, StepError
from jobset_steps.launch import LaunchRequest, plan_of
from jobset_steps.launch.options import read_spec, settings
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.runner import Clock, Handle, Hooks, Runner
from jobset_steps.serve import calls
from jobset_steps.serve.calls import Call
from jobset_steps.supervisor.inputs import EndCause, EndRequest, Say
from jobset_steps.supervisor.plan import OnFailure
from jobset_steps.supervisor.workflow import over

__all__ = ["Namespace", "Steps", "request_of"]

_ENDED = ("Succeeded", "Failed", "Error", "Skipped", "Omitted")
# Seconds in which a node must show in its Workflow; one that does not (a status stored elsewhere) is begun all the same.
_SHOWN = 30.0
# The agent patches what it was told every ten seconds at Argo's defaults: to be asked more often than this gains nothing.
_ASK_LEAST, _ASK_MOST, _STEPS_A_SECOND = 1.0, 10.0, 100


class Workflows(Protocol):
    """Where Workflows are followed: `KubernetesCluster`."""

    def follow_workflow(self, name: str, heard: Callable[[Read], None]) -> Subscription:
        """Call `heard` with the Workflow now and at every change, from a thread of its own."""

    def read_workflow(self, name: str) -> Read:
        """The Workflow, read afresh. Raises ApiError."""


@dataclass(frozen=True)
class Namespace:
    """What steps of one namespace run on."""

    cluster: Cluster
    workflows: Workflows


@dataclass
class _Followed:
    """One Workflow that has steps here."""

    read: Read | None = None
    subscription: Subscription | None = None

    def began(self, node: str) -> str | None:
        """When Argo began this try of the node; None while that is not known."""
        found = self.read.nodes.get(node) if self.read is not None else None
        return found.started_at if found is not None and found.started_at else None


@dataclass
class _Step:
    """One try of one node."""

    began: str
    on_failure: OnFailure = "fail"
    handle: Handle | None = None
    said: Say | None = None
    answer: dict[str, Any] | None = None


@dataclass
class _Line:
    """The runner of one namespace, in a thread of its own."""

    namespace: Namespace
    runner: Runner
    stopped: threading.Event = field(default_factory=threading.Event)


class Steps:
    """See the module. `open_` makes what a namespace's steps run on; `say` is told what happens, a line each."""

    def __init__(
        self,
        open_: Callable[[str], Namespace],
        *,
        say: Callable[[str], None] = lambda _: None,
        now: Callable[[], float] = time.time,
        clock: Clock | None = None,
    ) -> None:
        self._open, self._say, self._now, self._clock = open_, say, now, clock
        self._lock = threading.RLock()
        self._lines: dict[str, _Line] = {}
        self._followed: dict[tuple[str, str, str], _Followed] = {}
        self._steps: dict[tuple[str, str], _Step] = {}
        self._asked: dict[tuple[str, str], float] = {}
        self._stopping = False

    def answer(self, call: Call) -> dict[str, Any]:
        """The answer to a question, at once. The first one about a node begins its step."""
        key = (call.uid, call.node)
        with self._lock:
            line = self._line(call.namespace)
            followed = self._follow(call, line)
            step, began = self._steps.get(key), followed.began(call.node)
            if step is None or (began is not None and step.began != began and step.answer is not None):
                if self._stopping:
                    return calls.running(None, self._ask_again())
                if began is None and self._now() < self._asked.setdefault(key, self._now()) + _SHOWN:
                    return calls.running(None, _ASK_LEAST)
                step = self._steps[key] = self._begin(call, line, began or "")
            if step.answer is not None:
                return step.answer
            return calls.running(step.said, self._ask_again())

    def stop(self, seconds: float) -> bool:
        """The process is going: what belongs to a Workflow that is over is deleted, all else left to the next process.

        Waits until that is done, at most `seconds`; whether it was.
        """
        with self._lock:
            self._stopping = True
            followed, lines = dict(self._followed), list(self._lines.values())
        for (namespace, name, uid), one in followed.items():
            try:
                read = self._lines[namespace].namespace.workflows.read_workflow(name)
                why = over(read.workflow, uid, self._now())
            except ApiError as error:
                why = over(one.read.workflow, uid, self._now()) if one.read is not None else ""
                self._say(f"{name}: the Workflow could not be read: {error}")
            left = EndRequest(EndCause.EVICTION, "only the agent's pod is going")
            self._end(uid, EndRequest(EndCause.CANCEL, why) if why else left)
        end = time.monotonic() + seconds
        while self._live() and time.monotonic() < end:
            time.sleep(0.1)
        for line in lines:
            line.stopped.set()
            line.runner.wake()
        for one in followed.values():
            if one.subscription is not None:
                one.subscription.close()
        return not self._live()

    def _live(self) -> int:
        with self._lock:
            return sum(step.answer is None for step in self._steps.values())

    def _ask_again(self) -> float:
        return min(_ASK_MOST, max(_ASK_LEAST, len(self._steps) / _STEPS_A_SECOND))

    def _line(self, namespace: str) -> _Line:
        if namespace not in self._lines:
            opened = self._open(namespace)
            line = _Line(opened, Runner(opened.cluster, clock=self._clock))
            self._lines[namespace] = line
            threading.Thread(
                target=line.runner.run_until,
                args=(line.stopped,),
                name=f"jobset-steps-{namespace}",
                daemon=True,
            ).start()
        return self._lines[namespace]

    def _follow(self, call: Call, line: _Line) -> _Followed:
        key = (call.namespace, call.workflow, call.uid)
        followed = self._followed.get(key)
        if followed is None:
            followed = self._followed[key] = _Followed()
            followed.subscription = line.namespace.workflows.follow_workflow(
                call.workflow, lambda read: self._heard(key, read)
            )
        return followed

    def _heard(self, key: tuple[str, str, str], read: Read) -> None:
        """A Workflow changed: what is over there is over here."""
        _, name, uid = key
        with self._lock:
            followed = self._followed.get(key)
            if followed is None:
                return
            followed.read = read
            if why := over(read.workflow, uid, self._now()):
                self._say(f"{name}: {why}")
                self._end(uid, EndRequest(EndCause.CANCEL, why))
                return
            for (owner, node), step in self._steps.items():
                seen = read.nodes.get(node)
                if owner == uid and step.answer is None and seen is not None and seen.phase in _ENDED:
                    why = f"Argo has ended the node ({seen.phase}) {seen.message}".strip()
                    self._end_step(node, step, EndRequest(EndCause.CANCEL, why))

    def _end(self, uid: str, request: EndRequest) -> None:
        with self._lock:
            for (owner, node), step in self._steps.items():
                if owner == uid and step.answer is None:
                    self._end_step(node, step, request)

    def _end_step(self, node: str, step: _Step, request: EndRequest) -> None:
        # Asked once: a second request would cut the first one's time short.
        if step.handle is not None and step.handle.state.end is None:
            self._say(f"{node}: {request.cause.value}: {request.message}")
            step.handle.end(request)

    def _begin(self, call: Call, line: _Line, began: str) -> _Step:
        options = call.body.get("options") or {}
        step = _Step(began)
        try:
            step.on_failure = settings(options)[1]
            request = request_of(call, began)
            plan = plan_of(request)
        except (StepError, ValueError, KeyError, TypeError) as error:
            message = str(error) if isinstance(error, StepError) else f"{type(error).__name__}: {error}"
            self._say(f"{call.node}: {message}")
            step.answer = calls.refused(message, step.on_failure)
            return step

        def say(said: Say) -> None:
            step.said = said
            cause = f" ({said.cause})" if said.cause else ""
            self._say(f"{call.node}: {said.progress.value}{cause}: {said.message}")

        def done(outcome: Outcome) -> None:
            self._say(f"{call.node}: {outcome.verdict.value}: {outcome.reason}")
            if self._stopping and outcome.verdict is Verdict.UNKNOWN:
                # The step goes on under the next process, which is asked again: an answer would end the node.
                step.answer = calls.running(step.said, self._ask_again())
            else:
                step.answer = calls.ended(outcome, step.on_failure)

        step.handle = line.runner.add(plan, Hooks(deliver=lambda _: None, say=say, done=done))
        return step


def request_of(call: Call, began: str) -> LaunchRequest:
    """What a node's template asks for. Raises BadInput and InvalidSpec.

    The launcher's name is the try of the node, not this process: whichever process comes next delivers to the same try, and
    a person's retry, which lets Argo begin the node anew, is another.
    """
    options: Mapping[str, Any] = call.body.get("options") or {}
    budgets, on_failure, waive = settings(options)
    owner = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "name": call.workflow,
        "uid": call.uid,
    }
    annotations = {"workflows.argoproj.io/node-name": call.node}
    place = place_of(
        {
            "metadata": {
                "uid": f"{call.node}@{began}",
                "annotations": annotations,
                "ownerReferences": [owner],
            }
        }
    )
    slot = str(options.get("slot") or "")
    namespace = str(options.get("namespace") or "")
    if namespace and namespace != call.namespace:
        raise BadInput(
            f"options.namespace: {namespace!r}: a plugin step trains in the namespace of its Workflow, {call.namespace!r}; "
            "mode launcher may train elsewhere"
        )
    return LaunchRequest(
        spec=read_spec(call.body["spec"]),
        values={name: _value(name, value) for name, value in (call.body.get("values") or {}).items()},
        run=place.run,
        step=place.step,
        slot=slot,
        engine=place.engine,
        budgets=budgets,
        on_failure=on_failure,
        namespace=call.namespace,
        # What is kept for a slot outlives the run that came first.
        owner=None if slot else place.owner,
        waive=waive,
    )


def _value(name: str, value: Any) -> str:
    """The text that a value was handed on as."""
    return value if isinstance(value, str) else json.dumps(value)
