"""A small world for whole lives of a step: one identity, its Record, its JobSets, and launchers that come and go.

What a JobSet does is a function of its script and the time, so the truth is known beforehand. Requests take effect or not,
answers arrive in any order, late or never; every choice comes from a random source that hypothesis owns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from step_talk import (
    START,
    Memory,
    completed,
    crashed,
    failed,
    failed_job,
    jobset_view,
    pod,
    queued,
    starting,
)

from jobset_steps.observed import Condition, JobSetView, View
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.supervisor import StepState, start, step
from jobset_steps.supervisor.inputs import (
    Action,
    ApiFault,
    Create,
    Delete,
    Deliver,
    Done,
    EndCause,
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
from jobset_steps.supervisor.plan import EngineAttempt, StepPlan

DELETED = (
    Verdict.CANCELLED,
    Verdict.QUEUE_TIMEOUT,
    Verdict.STARTUP_TIMEOUT,
    Verdict.RUN_TIMEOUT,
    Verdict.STUCK,
)
RETRIED = (75, 76, 69, 70, 137)
_RESTART_TAKES = 2.0
_DELETE_TAKES = 3.0
# A create without an answer takes effect within this time or not at all.
_LATE = 8.0


@dataclass(frozen=True)
class Script:
    """What one JobSet does when it is left alone. `attempts`: ("crash" | "disrupt" | "fatal" | "reclaim" |
    "succeed", seconds); "reclaim" is a failure for good that infrastructure caused.
    """

    queued: float
    starting: float
    attempts: tuple[tuple[str, float], ...]

    def verdict(self, max_restarts: int) -> tuple[Verdict, bool, int]:
        """Verdict, whether it is retryable, and the restarts."""
        counted = 0
        for number, (end, _) in enumerate(self.attempts):
            if end == "succeed":
                return Verdict.SUCCEEDED, False, number
            if end == "reclaim":
                return Verdict.FAILED, True, number
            if end == "fatal" or (end == "crash" and counted >= max_restarts):
                return Verdict.FAILED, False, number
            counted += end == "crash"
        return Verdict.SUCCEEDED, False, len(self.attempts)

    @property
    def ran(self) -> float:
        """Seconds of running at most, over all attempts."""
        return sum(seconds for _, seconds in self.attempts) + 30.0


@dataclass
class Made:
    """One JobSet of the world."""

    uid: str
    generation: int
    at: float
    script: Script
    deleted_at: float | None = None

    def there(self, now: float) -> bool:
        return self.deleted_at is None or now < self.deleted_at + _DELETE_TAKES


def view_of(made: Made, plan: StepPlan, now: float) -> tuple[JobSetView, dict[str, Any]]:
    """The JobSet at a time, and its Jobs and pods. Versions grow with time."""
    at = min(now, made.deleted_at) if made.deleted_at is not None else now
    jobset, parts = _undeleted(made, plan, at)
    return replace(jobset, resource_version=str(int(at * 1000)), deleting_since=made.deleted_at), parts


def _undeleted(made: Made, plan: StepPlan, now: float) -> tuple[JobSetView, dict[str, Any]]:
    script = made.script
    marks: dict[str, Any] = {"uid": made.uid, "generation": made.generation, "created_at": made.at}
    clock = made.at + script.queued
    if now < clock:
        return queued(plan, **marks), {}
    limit = plan.jobset.spec.failure_policy.max_restarts if plan.jobset.spec.failure_policy else 0
    counted = 0
    for number, (end, seconds) in enumerate((*script.attempts, ("succeed", 30.0))):
        marks |= {"restarts": number, "restarts_counted": counted}
        ready = clock + script.starting
        over = ready + seconds
        if now < ready:
            return starting(plan, **marks), {
                "pods": (pod(plan, attempt=number, ready=False, created_at=clock),)
            }
        if now < over:
            return jobset_view(plan, **marks), {"pods": (pod(plan, attempt=number, created_at=clock),)}
        if end == "succeed":
            return completed(plan, **marks), {}
        ended = _failure(plan, number, end, over)
        if end in ("fatal", "reclaim"):
            message = f"applying FailJobSet failure policy action (first failed job: {ended['jobs'][0].name})"
            return failed(plan, "FailJobSetFailurePolicyAction", message, **marks), ended
        if end == "crash" and counted >= (limit or 0):
            return failed(plan, **marks), ended
        counted += end == "crash"
        clock = over + _RESTART_TAKES
        if now < clock:
            return jobset_view(plan, **marks), ended
    raise AssertionError("a script ends")


def _failure(plan: StepPlan, number: int, end: str, at: float) -> dict[str, Any]:
    reason, message = (
        "PodFailurePolicy",
        "Container main for pod failed with exit code 64 matching FailJob rule",
    )
    if end == "disrupt":
        message = "Pod team/x has condition DisruptionTarget matching FailJob rule at index 0"
    elif end == "crash":
        reason, message = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    code = {"crash": 17, "fatal": 64, "disrupt": 143, "reclaim": 137}[end]
    job = failed_job(plan, attempt=number, at=at, reason=reason, message=message)
    lost = (
        (Condition("DisruptionTarget", "True", "DeletionByTaintManager"),)
        if end in ("disrupt", "reclaim")
        else ()
    )
    died = crashed(plan, attempt=number, exit_code=code, at=at, message=end, conditions=lost)
    return {"jobs": (job,), "pods": (died,)}


@dataclass
class Launcher:
    """One process that serves the step."""

    plan: StepPlan
    state: StepState
    pending: list[Action] = field(default_factory=list)
    wake: float | None = None
    outcome: Outcome | None = None


@dataclass
class World:
    """Everything, and the choices."""

    plan: StepPlan
    scripts: Sequence[Script]
    random: Random
    faults: int
    crashes: int
    ends: tuple[EndCause, ...]
    deletions: int = 0
    """How often a person deletes the JobSet behind the step's back."""
    now: float = START
    memory: Memory = field(default_factory=Memory)
    made: list[Made] = field(default_factory=list)
    late: list[tuple[float, Create]] = field(default_factory=list)
    launchers: list[Launcher] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    reads: int = 0
    disturbed: int = 0
    """Faults, crashes and end requests so far: what saves and reads may grow with."""
    zombies: bool = False
    retry: int = 0
    cancelled: bool = False
    meddled: bool = False
    recorded: set[str] = field(default_factory=set)

    def run(self) -> Outcome:
        """From the first launcher to the engine's last."""
        self._launch(self.plan.engine)
        for turn in range(600):
            if self.launchers[-1].outcome is not None and not self._relaunched():
                break
            if turn < 60 and (self.faults or self.crashes or self.ends):
                self._anything()
            else:
                self.ends = ()
                self._quietly()
        while any(launcher.outcome is None for launcher in self.launchers):
            assert len(self.history) < 6000, self.tale("a launcher never finishes")
            self._quietly(zombies=True)
        self.pass_time(60.0)
        outcome = self.launchers[-1].outcome
        assert outcome is not None
        return outcome

    def alive(self) -> list[Made]:
        """The JobSets that are there and not being deleted."""
        return [made for made in self.made if made.deleted_at is None]

    def pass_time(self, seconds: float) -> None:
        until = self.now + seconds
        for at, create in sorted(self.late, key=lambda late: late[0]):
            if at <= until:
                self.late.remove((at, create))
                self.now = max(self.now, at)
                self._create(create, late=True)
        self.now = until

    def tale(self, what: str) -> str:
        return what + "\n" + "\n".join(self.history[-120:])

    def _launch(self, engine: EngineAttempt) -> None:
        plan = replace(self.plan, engine=engine)
        launcher = Launcher(plan, start(plan))
        self.launchers.append(launcher)
        self._hear(launcher, Tick())

    def _relaunched(self) -> bool:
        """Whether the engine tries once more."""
        outcome = self.launchers[-1].outcome
        if outcome is None or outcome.exit_code not in RETRIED or self.retry >= 6:
            return False
        self.retry += 1
        self._launch(EngineAttempt(f"pod-{len(self.launchers)}", self.retry))
        return True

    def _hear(self, launcher: Launcher, heard: Input) -> None:
        number = self.launchers.index(launcher)
        before = launcher.state.phase
        launcher.state, actions = step(launcher.state, heard, self.now)
        self.history.append(
            f"{self.now - START:8.1f} L{number} {before}->{launcher.state.phase} {_short(heard)} => "
            + ", ".join(map(_short, actions))
        )
        for action in actions:
            if isinstance(action, WakeAt):
                launcher.wake = action.at
            elif isinstance(action, Finish):
                launcher.outcome = action.outcome
            elif not isinstance(action, Say):
                launcher.pending.append(action)

    def _living(self, *, zombies: bool = True) -> list[Launcher]:
        there = self.launchers if zombies else self.launchers[-1:]
        return [launcher for launcher in there if launcher.outcome is None]

    def _anything(self) -> None:
        living = self._living()
        launcher = self.random.choice(living) if living else self.launchers[-1]
        choice = self.random.randrange(13)
        if choice < 6 and launcher.pending:
            self._answer(launcher, self.random.choice(launcher.pending), chaos=True)
        elif choice == 6:
            self.pass_time(self.random.choice((0.1, 1.0, 4.0, 15.0, 70.0)))
            self._tick(launcher)
        elif choice in (7, 8):
            self._watch(launcher, stale=self.random.random() < 0.3)
        elif choice == 9 and self.crashes:
            self._crash(launcher)
        elif choice == 10 and self.ends and self.random.random() < 0.3:
            cause, *rest = self.ends
            self.ends = tuple(rest)
            self.disturbed += 1
            self.cancelled |= cause is EndCause.CANCEL
            self._hear(launcher, EndRequest(cause, "told"))
        elif choice == 11 and self.faults and launcher.state.watching:
            self.faults -= 1
            self.disturbed += 1
            self._hear(launcher, ApiFault(None, "unavailable", "the watch broke"))
        elif choice == 12 and self.deletions and self.alive() and self.random.random() < 0.2:
            self.deletions -= 1
            self.meddled = True
            self.history.append(f"{self.now - START:8.1f} DELETED by a person")
            self.alive()[0].deleted_at = self.now
        else:
            self._quietly()

    def _quietly(self, *, zombies: bool = False) -> None:
        """The plain course: answer what waits, else let time pass to what comes next."""
        for launcher in self._living(zombies=True):
            if launcher.pending:
                self._answer(launcher, launcher.pending[0], chaos=False)
                return
        living = self._living(zombies=True)
        if not living:
            return
        wakes = [launcher.wake for launcher in living if launcher.wake is not None]
        assert wakes, self.tale("asleep for ever")
        self.pass_time(max(0.0, min(min(wakes), self.now + 20.0) - self.now))
        for launcher in living:
            self._watch(launcher, stale=False)
            self._tick(launcher)

    def _tick(self, launcher: Launcher) -> None:
        if launcher.outcome is None and launcher.wake is not None and launcher.wake <= self.now:
            launcher.wake = None
            self._hear(launcher, Tick())

    def _watch(self, launcher: Launcher, *, stale: bool) -> None:
        if launcher.outcome is None and launcher.state.watching:
            at = self.now - self.random.choice((1.0, 5.0, 30.0)) if stale else self.now
            view = self._view(launcher.state.watching, at, complete=False)
            if view.jobset is not None or not stale:
                self._hear(launcher, Seen(view))

    def _crash(self, launcher: Launcher) -> None:
        """The launcher dies, or is thought dead, and another takes over."""
        self.crashes -= 1
        self.disturbed += 1
        if launcher is not self.launchers[-1] or launcher.outcome is not None:
            return
        if self.random.random() < 0.3:
            self.zombies = True
            self.history.append("--- thought dead")
        else:
            launcher.outcome = Outcome(verdict=Verdict.UNKNOWN, reason="died", exit_code=137)
            self.history.append("--- died")
        if self.random.random() < 0.3:
            # The same pod starts its container again.
            self._launch(launcher.plan.engine)
        else:
            self.retry += 1
            self._launch(EngineAttempt(f"pod-{len(self.launchers)}", self.retry))

    def _answer(self, launcher: Launcher, action: Action, *, chaos: bool) -> None:
        launcher.pending.remove(action)
        if not chaos or not self.faults or self.random.random() < 0.6 or isinstance(action, Deliver):
            self._hear(launcher, self._perform(launcher, action))
            return
        self.faults -= 1
        self.disturbed += 1
        how = self.random.randrange(4)
        kind = self.random.choice(("unavailable", "unavailable", "unauthorized"))
        fault = ApiFault(action, kind, "no answer", self.random.choice((None, None, 7.0)))
        if how == 0:
            pass
        elif how == 1 and isinstance(action, Create):
            self.late.append((self.now + self.random.random() * _LATE, action))
        elif how == 2 and isinstance(action, Create):
            fault = ApiFault(action, "unavailable", "Internal error: failed calling webhook: refused")
        elif not isinstance(action, Read | Tail | Load):
            self._perform(launcher, action)
        self._hear(launcher, fault)

    def _perform(self, launcher: Launcher, action: Action) -> Input:
        if isinstance(action, Load):
            return self.memory.load(action)
        if isinstance(action, Save):
            answer = self.memory.save(action)
            self.recorded.add(self.memory.record.uid if self.memory.record else "")
            return answer
        if isinstance(action, Create):
            uid = self._create(action)
            return Done(action, uid=uid) if uid else ApiFault(action, "exists", "already exists")
        if isinstance(action, Read):
            self.reads += 1
            self._hear(launcher, Seen(self._view(action.name, self.now, complete=True)))
        if isinstance(action, Delete):
            for made in self.made:
                if made.uid == action.uid and made.deleted_at is None:
                    made.deleted_at = self.now
        return Done(action, lines=("last words",) if isinstance(action, Tail) else ())

    def _create(self, action: Create, *, late: bool = False) -> str:
        if any(made.generation == action.generation and made.there(self.now) for made in self.made):
            return ""
        script = self.scripts[min(action.generation, len(self.scripts)) - 1]
        made = Made(f"uid-{len(self.made) + 1}", action.generation, self.now, script)
        others = [one for one in self.made if one.there(self.now)]
        self.history.append(f"{self.now - START:8.1f} CREATED {made.uid} generation {made.generation}")
        self.made.append(made)
        assert self.zombies or not others, self.tale(f"two at once: {others} and {made}")
        same = [one for one in self.made if one.generation == made.generation]
        known = [one for one in same if one.uid in self.recorded]
        assert late or self.zombies or self.cancelled or not known, self.tale(
            "made again though it was recorded"
        )
        assert self.zombies or self.cancelled or self.meddled or len(same) == 1, self.tale("trained twice")
        return made.uid

    def _view(self, name: str, at: float, *, complete: bool) -> View:
        for made in self.made:
            suffix = f"-g{made.generation}" if made.generation > 1 else ""
            base = f"train-{self.plan.identity.digest[:8]}{suffix}"
            if base == name and made.there(at) and made.at <= at:
                jobset, parts = view_of(made, self.plan, at)
                return View(jobset, complete=complete, read_at=at, **parts)
        return View(None, complete=complete, read_at=at)


def _short(thing: Any) -> str:
    if isinstance(thing, Save):
        record = thing.record
        verdict = record.outcome.verdict.value if record.outcome else ""
        what = f"g{record.generation} {record.state} {record.uid} {verdict} {record.delivered_launcher}"
        return f"Save(v{thing.version} {what})"
    if isinstance(thing, Done | ApiFault):
        what = f" {thing.kind}" if isinstance(thing, ApiFault) else ""
        return f"{type(thing).__name__}({type(thing.action).__name__}{what})"
    if isinstance(thing, Seen):
        jobset = thing.view.jobset
        shown = f"{jobset.uid} {jobset.terminal_state or 'on'} r{jobset.restarts}" if jobset else "nothing"
        return f"Seen({shown} {'complete' if thing.view.complete else ''})"
    if isinstance(thing, Deliver | Finish):
        return f"{type(thing).__name__}({thing.outcome.verdict} {thing.outcome.reason} leaked={thing.outcome.leaked!r})"
    if isinstance(thing, WakeAt):
        return f"WakeAt({thing.at - START:.1f})"
    if isinstance(thing, Say):
        return f"Say({thing.progress})"
    return str(thing)
