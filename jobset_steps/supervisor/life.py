"""How a launcher finds its place: what the Record says, what is left of the generation before, and the intent.

`decide` is the whole table of "never train twice". Nothing is created here: that comes after the intent is stored.
"""

from __future__ import annotations

from enum import StrEnum

from jobset_steps.outcome import Verdict
from jobset_steps.spec.naming import step_name
from jobset_steps.supervisor import evidence, memory, removal, verdicts
from jobset_steps.supervisor.inputs import ApiFault, Load, Progress
from jobset_steps.supervisor.plan import Record, StepPlan
from jobset_steps.supervisor.state import Phase, Removal, Turn

__all__ = [
    "Found",
    "clear",
    "cleared",
    "deadline",
    "decide",
    "intend",
    "intended",
    "load",
    "load_failed",
    "loaded",
    "save_failed",
]


class Found(StrEnum):
    """What a Record means for a launcher that has just read it."""

    FRESH = "nobody was here: begin generation 1"
    RESUME = "a create may have been sent: read back before another"
    FOLLOW = "a JobSet was made: wait for it, never make another"
    FINISH_ENDING = "a deletion was begun: finish it first"
    REPLAY = "it has ended: deliver the recorded outcome"
    AGAIN = "it has failed and a new generation is due"
    REFUSE = "the identity is another spec's"
    SUPERSEDED = "a later generation was begun: this launcher is too late"


def decide(plan: StepPlan, record: Record | None, *, following: int = 0) -> Found:
    """What to do with a Record. `following` is the generation this launcher already follows, 0 for none.

    A new generation needs a failure that was delivered to another launcher, and either the engine's own retry (a higher
    index) of a retryable one, or a person's (no higher index). In a slot only the run that made it trains again.
    """
    if record is None:
        return Found.FRESH
    if record.spec_hash != plan.spec_hash:
        return Found.REFUSE
    if following and record.generation > following:
        return Found.SUPERSEDED
    if record.outcome is None or record.state != "ended":
        return {"intent": Found.RESUME, "ending": Found.FINISH_ENDING}.get(record.state, Found.FOLLOW)
    another = bool(plan.identity.slot) and record.made_by_run != plan.identity.run
    replay = (
        following == record.generation
        or record.delivered_launcher in ("", plan.engine.launcher)
        or record.outcome.verdict is Verdict.SUCCEEDED
        or another
        or (plan.engine.retry > record.delivered_retry and not record.outcome.retryable)
    )
    return Found.REPLAY if replay else Found.AGAIN


def load(turn: Turn) -> None:
    """LOADING begins: read the Record."""
    if turn.state.end is not None:
        turn.after("deadline", turn.state.plan.grace)
    turn.ask(Load())


def load_failed(turn: Turn, fault: ApiFault) -> None:
    """The Record cannot be read."""
    if fault.kind == "forbidden" and turn.state.generation == 0:
        _refuse(turn, Verdict.FORBIDDEN, "Forbidden", f"the step's record may not be read: {fault.message}")
    else:
        memory.load_failed(turn, fault)


def loaded(turn: Turn, record: Record | None, version: str) -> None:
    """The Record was read for the first time, or anew after somebody else changed it."""
    plan = turn.state.plan
    following = turn.state.generation
    turn.put(record=record, stored=record, version=version, saving=None, saved_at=turn.now)
    found = decide(plan, record, following=following)
    if record is None:
        turn.go(Phase.INTENDING, read_back=False)
    elif found is Found.REFUSE:
        _refuse(turn, Verdict.REJECTED, "SpecChanged", _another_spec(plan, record))
    elif found is Found.SUPERSEDED:
        message = f"another launcher has begun generation {record.generation} of this step"
        turn.finish(verdicts.draft(turn, Verdict.UNKNOWN, "Superseded", message))
    elif found is Found.AGAIN:
        left = Removal(record.jobset, record.uid, record.generation)
        turn.go(Phase.CLEARING, removal=left, name=record.jobset)
    else:
        _take_over(turn, record)
        _go_on(turn, record, found)


def clear(turn: Turn) -> None:
    """CLEARING begins: nothing may be left of the generation before, they share a checkpoint directory."""
    state = turn.state
    generation = state.record.generation if state.record else 0
    turn.say(Progress.STARTING, f"removing what is left of generation {generation} before training again")
    turn.after("deadline", state.plan.grace if state.cancelled else state.plan.budgets.startup)
    removal.begin(turn)


def cleared(turn: Turn) -> None:
    """Nothing is left."""
    turn.go(Phase.INTENDING, removal=None, read_back=False)


def intend(turn: Turn) -> None:
    """INTENDING begins: save what is about to be created, or claim what another launcher intended."""
    before = turn.state.record
    if turn.state.read_back and before is not None:
        memory.want(turn, before.model_copy(update={"launcher": turn.state.plan.engine.launcher}))
        return
    record = _intent(turn, before.generation + 1 if before else 1)
    turn.put(
        name=record.jobset,
        uid="",
        spent=record.spent,
        attempt=0,
        attempt_starting=0.0,
        traces=(),
        metrics=None,
        view=None,
        leaked="",
    )
    if turn.state.cancelled:
        _cancelled_before(turn, record)
    else:
        memory.want(turn, record)


def intended(turn: Turn) -> None:
    """The intent is stored: from here on this launcher follows its generation."""
    record = turn.state.record
    if record is None:
        return
    if turn.state.read_back:
        if turn.state.cancelled:
            turn.go(Phase.ENDING, outcome=None, unanswered_at=turn.now)
        else:
            turn.go(Phase.CREATING)
        return
    turn.put(generation=record.generation, made_here=True)
    if turn.state.cancelled:
        _cancelled_before(turn, record)
    else:
        turn.go(Phase.CREATING)


def save_failed(turn: Turn, fault: ApiFault) -> None:
    """The intent cannot be saved."""
    if fault.kind in ("forbidden", "invalid"):
        verdict, reason = (
            (Verdict.FORBIDDEN, "Forbidden")
            if fault.kind == "forbidden"
            else (Verdict.REJECTED, "RecordRefused")
        )
        _refuse(turn, verdict, reason, f"the step's record may not be saved: {fault.message}")
    else:
        memory.save_failed(turn, fault)


def deadline(turn: Turn) -> None:
    """Time is up before anything was created in this generation."""
    state = turn.state
    if state.phase is Phase.CLEARING and not state.cancelled:
        left = f"{state.plan.namespace}/{state.name}"
        message = (
            f"the generation before could not be removed within the start-up budget: {left} is still there"
        )
        if state.record is not None:
            turn.put(record=_intent(turn, state.record.generation + 1), attempt=0, traces=(), uid="")
        outcome = verdicts.draft(turn, Verdict.STARTUP_TIMEOUT, "GenerationBeforeLeft", message, leaked=left)
        turn.go(Phase.CONCLUDING, outcome=outcome)
        return
    name = state.name or step_name(state.plan.jobset, state.plan.identity.digest, 1)
    leaked = f"{state.plan.namespace}/{name}" if state.phase is not Phase.INTENDING else ""
    message = "cancelled, but the step's record could not be reached: nothing could be deleted or confirmed"
    outcome = verdicts.draft(turn, Verdict.CANCELLED, "Cancelled", message, leaked=leaked)
    turn.go(Phase.DELIVERING, outcome=outcome, unsaved=True)


def _take_over(turn: Turn, record: Record) -> None:
    """Count on from where the launcher before stopped."""
    same = turn.state.generation == record.generation
    turn.put(generation=record.generation, name=record.jobset, uid=record.uid)
    if not same:
        turn.put(
            spent=record.spent,
            attempt=record.attempt,
            attempt_starting=record.attempt_starting,
            traces=evidence.recall(record.attempts),
            uncounted_since=record.counted_at if record.counted_at is not None else -1.0,
        )


def _go_on(turn: Turn, record: Record, found: Found) -> None:
    if found is Found.REPLAY:
        turn.go(Phase.DELIVERING, outcome=record.outcome)
    elif found is Found.FINISH_ENDING:
        unknown = turn.now if not record.uid else None
        turn.go(Phase.ENDING, outcome=record.outcome, resumed_ending=True, unanswered_at=unknown)
    elif turn.state.cancelled:
        turn.go(Phase.ENDING, outcome=None, unanswered_at=turn.now if found is Found.RESUME else None)
    elif found is Found.FOLLOW:
        turn.go(Phase.WAITING, known_at=turn.now)
    else:
        turn.go(Phase.INTENDING, read_back=True)


def _intent(turn: Turn, generation: int) -> Record:
    plan, before = turn.state.plan, turn.state.record
    identity = plan.identity
    return Record(
        run=identity.run,
        step=identity.step,
        slot=identity.slot,
        made_by_run=before.made_by_run if before else identity.run,
        spec_hash=plan.spec_hash,
        generation=generation,
        jobset=step_name(plan.jobset, identity.digest, generation),
        launcher=plan.engine.launcher,
        started_at=turn.now,
    )


def _cancelled_before(turn: Turn, record: Record) -> None:
    """Cancelled with nothing created in this generation: record it, so that no launcher resumes it."""
    turn.put(record=record, name=record.jobset, removal=None)
    outcome = verdicts.draft(turn, Verdict.CANCELLED, "Cancelled", "cancelled before anything was created")
    turn.go(Phase.CONCLUDING, outcome=outcome)


def _refuse(turn: Turn, verdict: Verdict, reason: str, message: str) -> None:
    turn.go(Phase.DELIVERING, outcome=verdicts.draft(turn, verdict, reason, message), unsaved=True)


def _another_spec(plan: StepPlan, record: Record) -> str:
    if plan.identity.slot:
        whose = f"slot {plan.identity.slot!r}, step {plan.identity.step!r}, was begun by run {record.made_by_run!r}"
    else:
        whose = f"run {plan.identity.run!r}, step {plan.identity.step!r}, was begun"
    return (
        f"{whose} with another spec (hash {record.spec_hash[:12]}, now {plan.spec_hash[:12]}); "
        "a changed spec is another training: give it another run or step name. Nothing was changed."
    )
