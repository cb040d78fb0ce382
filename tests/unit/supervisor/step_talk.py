"""Talks to `step` by hand: a plan, Views as plain data, and a dialogue that keeps what was asked and answers it.

The Record lives in a `Memory` with compare-and-swap, as in a cluster; Load, Save, Deliver and Tail are answered at once
unless they are held, everything else by the test. Time is a number.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from jobset_steps.observed import (
    Condition,
    ContainerView,
    EventView,
    JobSetView,
    JobView,
    PodView,
    ReplicatedJobStatus,
    View,
)
from jobset_steps.outcome import Outcome
from jobset_steps.spec.budgets import Budgets
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.naming import marks, step_name
from jobset_steps.supervisor import StepState, start, step
from jobset_steps.supervisor.inputs import (
    Action,
    ApiFault,
    Create,
    Deliver,
    Done,
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
from jobset_steps.supervisor.plan import EngineAttempt, Identity, Record, StepPlan

A = TypeVar("A")

START = 1_000_000.0
RULES = (
    {
        "name": "disruption",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
        "onJobFailureMessagePatterns": ["condition DisruptionTarget"],
    },
    {"name": "fatal", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]},
)


def jobset(*, replicas: int = 1, pods: int = 2, max_restarts: int | None = 2, **spec: Any) -> JobSet:
    """A JobSet with one replicated job "workers"; `max_restarts` None: no failure policy."""
    policy = {"failurePolicy": {"maxRestarts": max_restarts, "rules": list(RULES)}}
    template = {
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}
            },
        }
    }
    workers = {"name": "workers", "replicas": replicas, "template": template}
    return JobSet.from_dict(
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": "train"},
            "spec": {
                "replicatedJobs": [workers],
                **(policy if max_restarts is not None else {}),
                **spec,
            },
        }
    )


def plan(
    *,
    run: str = "run-1",
    slot: str = "",
    launcher: str = "pod-a",
    retry: int = 0,
    spec: JobSet | None = None,
    spec_hash: str = "abc",
    budgets: dict[str, Any] | None = None,
    **more: Any,
) -> StepPlan:
    return StepPlan(
        identity=Identity(run, "train", slot),
        jobset=spec or jobset(),
        spec_hash=spec_hash,
        engine=EngineAttempt(launcher, retry),
        namespace="team",
        budgets=Budgets(**(budgets or {})),
        **more,
    )


def name_of(plan: StepPlan, generation: int = 1) -> str:
    return step_name(plan.jobset, plan.identity.digest, generation)


def jobset_view(plan: StepPlan, *, uid: str = "uid-1", generation: int = 1, **more: Any) -> JobSetView:
    """Our JobSet as read: running unless `more` says otherwise."""
    identity = plan.identity
    labels, annotations = marks(
        digest=identity.digest,
        run=identity.run,
        step=identity.step,
        slot=identity.slot,
        generation=generation,
        spec_hash=plan.spec_hash,
    )
    fields: dict[str, Any] = {
        "labels": tuple(sorted(labels.items())),
        "annotations": tuple(sorted(annotations.items())),
        "replicated_jobs": (ReplicatedJobStatus("workers", ready=1, active=1),),
        "created_at": START,
        **more,
    }
    return JobSetView(name_of(plan, generation), "team", uid, **fields)


def starting(plan: StepPlan, **more: Any) -> JobSetView:
    return jobset_view(plan, replicated_jobs=(ReplicatedJobStatus("workers", active=1),), **more)


def queued(plan: StepPlan, **more: Any) -> JobSetView:
    conditions = (Condition("Suspended", "True", "SuspendedJobs", "jobset is suspended", START),)
    status = (ReplicatedJobStatus("workers", suspended=1),)
    fields = {"suspended": True, "conditions": conditions, "replicated_jobs": status, **more}
    return jobset_view(plan, **fields)


def completed(plan: StepPlan, **more: Any) -> JobSetView:
    end = Condition("Completed", "True", "AllJobsCompleted", "jobset completed successfully", START)
    status = (ReplicatedJobStatus("workers", succeeded=1),)
    return jobset_view(plan, terminal_state="Completed", conditions=(end,), replicated_jobs=status, **more)


def failed(plan: StepPlan, reason: str = "ReachedMaxRestarts", message: str = "", **more: Any) -> JobSetView:
    name = f"{name_of(plan)}-workers-0"
    message = message or f"jobset failed due to reaching max number of restarts (first failed job: {name})"
    end = Condition("Failed", "True", reason, message, START)
    status = (ReplicatedJobStatus("workers", failed=1),)
    return jobset_view(plan, terminal_state="Failed", conditions=(end,), replicated_jobs=status, **more)


def job(plan: StepPlan, index: int = 0, *, attempt: int = 0, **more: Any) -> JobView:
    name = f"{name_of(plan)}-workers-{index}"
    return JobView(name, f"{name}-{attempt}", "workers", index, attempt, created_at=START, **more)


def failed_job(
    plan: StepPlan,
    index: int = 0,
    *,
    attempt: int = 0,
    at: float = START,
    reason: str = "BackoffLimitExceeded",
    message: str = "Job has reached the specified backoff limit",
) -> JobView:
    end = Condition("Failed", "True", reason, message, at)
    return job(plan, index, attempt=attempt, failed=1, conditions=(end,))


def pod(plan: StepPlan, index: int = 0, *, job_index: int = 0, attempt: int = 0, **more: Any) -> PodView:
    job_name = f"{name_of(plan)}-workers-{job_index}"
    name = f"{job_name}-{index}-{attempt}"
    fields: dict[str, Any] = {"phase": "Running", "ready": True, "node": f"node-{index}", "created_at": START}
    return PodView(name, f"uid-{name}", job_name, "workers", job_index, index, attempt, **{**fields, **more})


def crashed(
    plan: StepPlan, index: int = 0, *, exit_code: int = 17, at: float = START, message: str = "", **more: Any
) -> PodView:
    """A pod whose container ended badly. `reason` in `more` is the pod's own."""
    container = ContainerView(
        "main",
        "terminated",
        reason=more.pop("container_reason", "Error"),
        message=message,
        exit_code=exit_code,
        finished_at=at,
    )
    return pod(plan, index, phase="Failed", ready=False, containers=(container,), **more)


def finished(plan: StepPlan, index: int = 0, *, message: str = "", **more: Any) -> PodView:
    container = ContainerView("main", "terminated", "Completed", message, exit_code=0, finished_at=START)
    return pod(plan, index, phase="Succeeded", ready=False, containers=(container,), **more)


@dataclass
class Memory:
    """Where Records are stored, one identity only."""

    record: Record | None = None
    version: str = ""
    saves: int = 0

    def save(self, action: Save) -> Input:
        if action.version != self.version:
            return ApiFault(action, "conflict", "the Record was changed")
        self.saves += 1
        self.record, self.version = action.record, str(self.saves)
        return Done(action, version=self.version)

    def load(self, action: Load) -> Input:
        return Done(action, record=self.record, version=self.version)


@dataclass
class Talk:
    """One launcher's dialogue with `step`."""

    plan: StepPlan
    memory: Memory = field(default_factory=Memory)
    now: float = START
    hold: tuple[type[Any], ...] = ()
    tails: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state: StepState = start(self.plan)
        self.log: list[Action] = []
        self.pending: list[Action] = []
        self.wake: float | None = None
        self.hear(Tick())

    @property
    def finish(self) -> Outcome | None:
        return next((a.outcome for a in self.log if isinstance(a, Finish)), None)

    @property
    def outcome(self) -> Outcome:
        assert self.finish is not None, f"not finished: {self.state.phase}, pending {self.pending}"
        return self.finish

    @property
    def said(self) -> list[Say]:
        return self.all(Say)

    def all(self, kind: type[A]) -> list[A]:
        """Every action of a kind that was ever asked for."""
        return [action for action in self.log if isinstance(action, kind)]

    def asks(self, kind: type[Any]) -> bool:
        """Whether an action of this kind is waiting for its answer."""
        return any(isinstance(action, kind) for action in self.pending)

    def hear(self, heard: Input, after: float = 0.0) -> None:
        self.now += after
        self.state, actions = step(self.state, heard, self.now)
        self.log += actions
        for action in actions:
            if isinstance(action, WakeAt):
                self.wake = action.at
            elif not isinstance(action, Say | Finish):
                self.pending.append(action)
        self._answer_what_needs_no_test()

    def done(self, kind: type[Any], **answer: Any) -> None:
        """Answer the action of this kind that waits."""
        self.hear(Done(self._take(kind), **answer))

    def fault(
        self, kind: type[Any], what: str = "unavailable", message: str = "", retry_after: float | None = None
    ) -> None:
        """Let the waiting action of this kind fail."""
        self.hear(ApiFault(self._take(kind), what, message, retry_after))

    def watch(self, seen: JobSetView | None, *pods: PodView, **more: Any) -> None:
        """The watch tells of a change."""
        self.hear(Seen(View(seen, pods=pods, complete=False, read_at=self.now, **more)))

    def read(self, seen: JobSetView | None, *pods: PodView, **more: Any) -> None:
        """Answer the waiting Read with this."""
        action = self._take(Read)
        self.hear(Seen(View(seen, pods=pods, complete=True, read_at=self.now, **more)))
        self.hear(Done(action))

    def sleep(self, seconds: float) -> None:
        """Let time pass, with a Tick whenever one was asked for."""
        until = self.now + seconds
        while self.wake is not None and self.wake <= until and self.finish is None:
            self.now, self.wake = max(self.now, self.wake), None
            self.hear(Tick())
        self.now = until

    def create(self, uid: str = "uid-1") -> None:
        """Answer the waiting Create, and go on to the wait."""
        self.done(Create, uid=uid)

    def successor(self, **changes: Any) -> Talk:
        """Another launcher of the same identity, later, with the same memory."""
        fields = {"launcher": "pod-b", "retry": 1, **changes}
        engine = EngineAttempt(fields.pop("launcher"), fields.pop("retry"))
        return Talk(replace(self.plan, engine=engine, **fields), self.memory, self.now)

    def _take(self, kind: type[Any]) -> Any:
        found = next((action for action in self.pending if isinstance(action, kind)), None)
        assert found is not None, f"no {kind.__name__} waits: {self.pending} in {self.state.phase}"
        self.pending.remove(found)
        return found

    def _answer_what_needs_no_test(self) -> None:
        for action in tuple(self.pending):
            if action not in self.pending or isinstance(action, self.hold):
                continue
            if isinstance(action, Load | Save | Deliver | Tail):
                self.pending.remove(action)
                self.hear(self._answer(action))

    def _answer(self, action: Action) -> Input:
        if isinstance(action, Load):
            return self.memory.load(action)
        if isinstance(action, Save):
            return self.memory.save(action)
        if isinstance(action, Tail):
            return Done(action, lines=self.tails.get(action.pod, ()))
        return Done(action)


def event(
    reason: str, message: str, *, count: int = 1, kind: str = "JobSet", at: float | None = None
) -> EventView:
    return EventView(kind, "train", "Warning", reason, message, count, at)
