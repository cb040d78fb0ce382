"""Ends a training before its time: a cancel, a time-out, or nothing that can help. And leaves one that shall go on.

The tombstone comes first, so that whoever finds the Record finishes the deletion; then a create still under way is awaited;
then the delete is repeated until nothing is left or the time is up and the leak is named. A slot's training is ended
only by the run that made it.
"""

from __future__ import annotations

from jobset_steps.observed import View
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.outcome.judgement import ended
from jobset_steps.supervisor import closing, evidence, gathering, memory, removal, verdicts
from jobset_steps.supervisor.inputs import ApiFault, Done, EndCause, EndRequest, Progress
from jobset_steps.supervisor.plan import Record
from jobset_steps.supervisor.state import Phase, Removal, Turn

__all__ = [
    "begin",
    "created",
    "deadline",
    "gone",
    "leave",
    "left",
    "proceed",
    "requested",
    "seen",
    "tombstone_failed",
]

# Seconds in which a deletion that nobody waits for impatiently is confirmed before the leak is named.
_CONFIRM = 600.0
_LEAVE = 5.0
_UNRECORDED = 60.0
_IMPATIENT = 3


def requested(turn: Turn, request: EndRequest) -> None:
    """The launcher is asked to end. A cancel beats an eviction; a second cancel hurries, a third gives up."""
    state = turn.state
    times = state.end_requests + 1
    cancelled = state.cancelled
    turn.put(end_requests=times)
    if not cancelled:
        turn.put(end=request)
    if state.phase in (Phase.CONCLUDING, Phase.DELIVERING, Phase.MARKING):
        closing.hurry(turn)
    elif request.cause is EndCause.CANCEL:
        _hurry(turn, times) if cancelled else _cancel(turn, request)
    elif not cancelled and state.phase is not Phase.LEAVING:
        _leave(turn)


def begin(turn: Turn) -> None:
    """ENDING begins: the tombstone is saved first. `outcome` is what the step is to end with, None for a cancel."""
    state = turn.state
    record = state.record
    if state.outcome is None:
        message = "cancelled" + (f": {state.end.message}" if state.end and state.end.message else "")
        turn.put(outcome=verdicts.draft(turn, Verdict.CANCELLED, "Cancelled", message))
    outcome = turn.state.outcome
    if record is None or outcome is None:
        turn.go(Phase.CONCLUDING)
        return
    if (
        state.plan.identity.slot
        and record.made_by_run != state.plan.identity.run
        and record.state != "ending"
    ):
        note = f"the training belongs to run {record.made_by_run!r} of this slot and goes on"
        turn.go(Phase.DELIVERING, unsaved=True, outcome=_noted(outcome, note))
        return
    turn.say(Progress.ENDING, f"deleting JobSet {verdicts.where(turn)}: {outcome.message or outcome.reason}")
    turn.put(removal=None, stretch=None)
    turn.after("deadline", state.plan.grace if state.cancelled else _CONFIRM)
    memory.want(turn, _tombstone(turn, record, outcome))


def tombstone_failed(turn: Turn, fault: ApiFault) -> None:
    """The tombstone could not be saved yet. Where the uid is known a cancel does not wait for it, a time-out a minute:
    without it the next launcher finds the JobSet gone, and no longer knows why.
    """
    memory.save_failed(turn, fault)
    state = turn.state
    waited = turn.now - state.down.get("save", turn.now)
    if state.uid and fault.kind != "conflict" and (state.cancelled or waited >= _UNRECORDED):
        proceed(turn)


def proceed(turn: Turn) -> None:
    """ENDING: delete, as soon as it is known whether a create still under way took effect."""
    state = turn.state
    if state.phase is not Phase.ENDING or state.removal is not None or "create" in state.asked:
        return
    generation = state.record.generation if state.record else state.generation
    settle = removal.settles_at(turn)
    turn.put(removal=Removal(state.name, state.uid, generation, settle_until=settle))
    removal.begin(turn)


def created(turn: Turn, answer: Done | ApiFault) -> None:
    """ENDING or LEAVING: the create that was under way has been answered."""
    if isinstance(answer, Done):
        turn.put(uid=answer.uid)
    elif answer.kind in ("unavailable", "unauthorized"):
        turn.put(unanswered_at=turn.now)
    if turn.state.phase is Phase.LEAVING:
        _save_and_leave(turn)
    elif turn.state.record == turn.state.stored or turn.state.uid:
        proceed(turn)


def seen(turn: Turn, view: View) -> None:
    """ENDING: a View came. One that shows the JobSet at its own end before the delete was sent tells the truth."""
    state = turn.state
    outcome = state.outcome
    timed_out = outcome is not None and outcome.verdict is not Verdict.CANCELLED and not state.cancelled
    ours = view.jobset is not None and view.jobset.uid == state.uid
    if state.removal is None:
        if timed_out and ours and view.jobset is not None and ended(view.jobset) is not None:
            traces = evidence.fold(state.traces, view, suspended=False)
            attempt = max(state.attempt, view.jobset.restarts)
            turn.go(Phase.GATHERING, outcome=None, view=view, traces=traces, attempt=attempt)
        return
    if removal.seen(turn, view):
        gone(turn, confirmed=True)


def gone(turn: Turn, *, confirmed: bool) -> None:
    """Nothing is left, or that could not be confirmed in time."""
    state = turn.state
    outcome = state.outcome
    turn.put(removal=None)
    if outcome is None:
        turn.go(Phase.CONCLUDING)
        return
    known = verdicts.draft(turn, outcome.verdict, outcome.reason, outcome.message)
    changes: dict[str, object] = {"retryable": outcome.retryable, "exit_code": outcome.exit_code}
    if state.resumed_ending:
        changes |= {"attempts": known.attempts or outcome.attempts, "restarts": outcome.restarts}
    final = known.model_copy(update=changes)
    if not confirmed:
        leaked = verdicts.where(turn)
        note = f"LEAK: {leaked} could not be confirmed deleted"
        final = _noted(final, note).model_copy(update={"leaked": leaked})
    turn.go(Phase.CONCLUDING, outcome=final)


def deadline(turn: Turn) -> None:
    """ENDING: the time for it is spent."""
    gone(turn, confirmed=False)


def leave(turn: Turn) -> None:
    """LEAVING begins: save what was counted and seen, then go."""
    turn.after("deadline", _LEAVE)
    if "create" not in turn.state.asked:
        _save_and_leave(turn)


def left(turn: Turn) -> None:
    """The launcher goes; the JobSet stays for the next one."""
    end = turn.state.end
    why = end.message if end is not None and end.message else "the launcher was asked to end"
    stays = f"{verdicts.where(turn)} is left running" if turn.state.uid else "no JobSet was made yet"
    if end is not None and end.cause is EndCause.UNKNOWN:
        why = f"cannot tell whether the run is over or only the launcher goes ({why})"
    turn.finish(verdicts.draft(turn, Verdict.UNKNOWN, "LauncherEvicted", f"{why}; {stays}"))


def _cancel(turn: Turn, request: EndRequest) -> None:
    state = turn.state
    grace = state.plan.grace
    if state.phase in (Phase.LOADING, Phase.CLEARING, Phase.INTENDING, Phase.DISCARDING):
        # What is there is not known yet, or something is being deleted: each goes on, and then sees that it is over.
        turn.at("deadline", min(turn.now + grace, state.timers.get("deadline", turn.now + grace)))
    elif state.phase is Phase.ENDING:
        turn.at("deadline", min(turn.now + grace, state.timers.get("deadline", turn.now + grace)))
        if state.removal is not None:
            removal.again(turn)
    elif state.phase is Phase.GATHERING:
        gathering.conclude(turn)
    else:
        created_by_another = state.read_back and not state.uid and state.unanswered_at is None
        turn.go(
            Phase.ENDING,
            outcome=None,
            unanswered_at=turn.now if created_by_another else state.unanswered_at,
        )


def _hurry(turn: Turn, times: int) -> None:
    if turn.state.phase is not Phase.ENDING:
        return
    if times >= _IMPATIENT:
        gone(turn, confirmed=False)
    elif turn.state.removal is not None:
        removal.again(turn)


def _leave(turn: Turn) -> None:
    phase = turn.state.phase
    if phase is Phase.GATHERING:
        gathering.conclude(turn)
    elif phase in (Phase.LOADING, Phase.CLEARING, Phase.INTENDING, Phase.DISCARDING):
        left(turn)
    else:
        turn.go(Phase.LEAVING)


def _save_and_leave(turn: Turn) -> None:
    state = turn.state
    record = state.record
    if record is None:
        left(turn)
        return
    if record.state == "intent" and state.uid:
        record = record.model_copy(update={"state": "created", "uid": state.uid})
    if record.state == "intent":
        left(turn)
    else:
        memory.want(turn, memory.remembered(turn, record) if record.state == "created" else record)


def _tombstone(turn: Turn, record: Record, outcome: Outcome) -> Record:
    plan = turn.state.plan
    if turn.state.resumed_ending or record.state == "ending":
        return record
    changes: dict[str, object] = {
        "state": "ending",
        "uid": turn.state.uid or record.uid,
        "outcome": outcome.model_copy(update={"attempts": ()}),
    }
    if outcome.verdict is Verdict.CANCELLED:
        # A run that was shut down launches nobody, except for a person's retry, and that one trains again.
        changes |= {"delivered_launcher": plan.engine.launcher, "delivered_retry": plan.engine.retry}
    return memory.remembered(turn, record).model_copy(update=changes)


def _noted(outcome: Outcome, note: str) -> Outcome:
    return outcome.model_copy(update={"message": f"{outcome.message}; {note}" if outcome.message else note})
