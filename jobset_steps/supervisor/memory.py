"""Keeps the Record: one save at a time, and what to do where somebody else has changed it.

Phases say how the Record should be (`want`) and go on once it is stored. A save without an answer is tried again; a lost
swap is settled by reading the Record and following what it says. It never decides a verdict.
"""

from __future__ import annotations

from jobset_steps.outcome import Attempt, SecondsSpent, Verdict
from jobset_steps.supervisor import evidence
from jobset_steps.supervisor.inputs import ApiFault, Done, Load, Progress, Save
from jobset_steps.supervisor.plan import Record
from jobset_steps.supervisor.state import Phase, Turn

__all__ = [
    "LIMIT",
    "fit",
    "flush",
    "keep",
    "load_failed",
    "note",
    "remembered",
    "save_failed",
    "saved",
    "settled",
    "want",
]

LIMIT = 64 * 1024
"""Bytes of a Record as JSON."""
# While a training runs well its Record is saved this often (seconds), and after a change not sooner than SOON.
EVERY, SOON = 1800.0, 60.0
# Swaps lost in a row before the next try waits: somebody else writes in a loop, or the namespace is gone.
_CONTESTED = 3


def want(turn: Turn, record: Record) -> None:
    """Let the Record be this; the phase goes on once it is stored."""
    turn.put(record=fit(record))
    if turn.state.record == turn.state.stored:
        turn.stored = True
    else:
        flush(turn)


def note(turn: Turn) -> None:
    """Something worth remembering changed while waiting: save it, at most once in SOON seconds."""
    due = turn.state.saved_at + SOON
    if due <= turn.now:
        keep(turn)
    else:
        turn.at("persist", min(due, turn.state.timers.get("persist", due)))


def keep(turn: Turn) -> None:
    """Save what was spent and seen so far."""
    if turn.state.record is not None:
        turn.after("persist", EVERY)
        turn.put(saved_at=turn.now)
        want(turn, remembered(turn, turn.state.record))


def remembered(turn: Turn, record: Record) -> Record:
    """The Record with what this launcher counted and saw."""
    state = turn.state
    return record.model_copy(
        update={
            "spent": state.spent,
            "attempts": evidence.attempts(state.traces, current=state.attempt, failed=False),
            "counted_at": turn.now,
            "attempt": state.attempt,
            "attempt_starting": state.attempt_starting,
        }
    )


def flush(turn: Turn) -> None:
    """Ask for a save where one is due and none is under way."""
    state = turn.state
    busy = state.asked & {"save", "load"} or state.timers.keys() & {"save", "load"}
    if state.record is not None and state.record != state.stored and not busy:
        turn.put(saving=state.record)
        turn.ask(Save(state.record, state.version))


def saved(turn: Turn, answer: Done) -> None:
    """A save was carried out."""
    turn.put(stored=turn.state.saving, saving=None, version=answer.version)
    _settle(turn)


def save_failed(turn: Turn, fault: ApiFault) -> None:
    """A save was refused, or nobody knows whether it took effect."""
    tries = turn.fault("save")
    if fault.kind == "conflict" and tries < _CONTESTED:
        turn.ask(Load())
        return
    turn.lost("save")
    if tries == _CONTESTED:
        turn.say(Progress.UNREACHABLE, f"the step's record cannot be saved: {fault.message}", "Record")
    turn.after(
        "load" if fault.kind == "conflict" else "save", turn.backoff("save", retry_after=fault.retry_after)
    )


def load_failed(turn: Turn, fault: ApiFault) -> None:
    """The Record could not be read."""
    tries = turn.fault("load")
    turn.lost("load")
    if tries == _CONTESTED:
        turn.say(Progress.UNREACHABLE, f"the step's record cannot be read: {fault.message}", "Record")
    turn.after("load", turn.backoff("load", retry_after=fault.retry_after))


def settled(turn: Turn, found: Record | None, version: str) -> None:
    """The Record was read after a lost swap: our own save after all, or another launcher's."""
    saving, before = turn.state.saving, turn.state.stored
    turn.put(stored=found, version=version, saving=None)
    if saving is not None and found == saving:
        _settle(turn)
    elif found is None:
        # Somebody deleted it. What it should say is known here, so it is written anew.
        flush(turn)
    else:
        _contested(turn, found, recorded=before.uid if before else "")


def _settle(turn: Turn) -> None:
    """Go on where the stored Record is the wanted one, else save again."""
    turn.reached("save")
    turn.stop("save")
    if turn.state.record == turn.state.stored:
        turn.stored = True
    else:
        flush(turn)


def _contested(turn: Turn, found: Record, *, recorded: str) -> None:
    """Another launcher of the identity has written: take its facts over, or follow it."""
    state = turn.state
    mine = state.record
    unrecorded = state.uid if state.uid != recorded else ""
    lost = unrecorded and found.uid != unrecorded and (found.uid or found.state == "ended")
    if state.phase is Phase.LEAVING:
        turn.stored = True
    elif state.phase is Phase.MARKING and mine is not None:
        # What was delivered here stands. A later launcher's mark, or a later generation, is not written over.
        same = found.generation == mine.generation and found.outcome == mine.outcome
        if same and found.delivered_retry <= mine.delivered_retry:
            want(turn, mine)
        else:
            turn.stored = True
    elif mine is None or found.spec_hash != mine.spec_hash or found.generation != mine.generation:
        turn.go(Phase.DISCARDING if unrecorded and found.uid != unrecorded else Phase.LOADING)
    elif lost or (state.uid and found.uid and found.uid != state.uid):
        turn.go(Phase.DISCARDING)
    elif found.state == "ended":
        turn.go(Phase.DELIVERING, record=found, outcome=found.outcome)
    elif found.state == "ending" and not _true_whatever_others_do(mine):
        turn.go(Phase.ENDING, record=found, outcome=found.outcome, uid=found.uid or state.uid)
    elif state.phase is Phase.INTENDING or (mine.state == "ended" and not state.uid):
        # Nothing was made here: what another launcher makes is what counts.
        turn.go(Phase.LOADING, outcome=None)
    else:
        if found.launcher != mine.launcher:
            # Another launcher is about: its create may still be under way.
            turn.put(unanswered_at=turn.now)
        want(turn, _merged(mine, found))


def fit(record: Record) -> Record:
    """The Record within LIMIT: the oldest attempts lose their log tails first, then their words, then go."""
    over = _size(record) - LIMIT
    if over <= 0:
        return record
    outcome = record.outcome
    inside = outcome is not None and bool(outcome.attempts)
    kept = list(outcome.attempts if outcome is not None and inside else record.attempts)
    for shorten in (_without_tail, _without_words):
        for at, attempt in enumerate(kept):
            if over <= 0:
                break
            kept[at] = shorten(attempt)
            over -= _size(attempt) - _size(kept[at])
    while over > 0 and kept:
        over -= _size(kept.pop(0)) + 1
    if outcome is not None and inside:
        return record.model_copy(update={"outcome": outcome.model_copy(update={"attempts": tuple(kept)})})
    return record.model_copy(update={"attempts": tuple(kept)})


def _true_whatever_others_do(mine: Record) -> bool:
    """Already ending too, or the JobSet was seen to have ended by itself."""
    by_itself = mine.outcome is not None and mine.outcome.verdict in (Verdict.SUCCEEDED, Verdict.FAILED)
    return mine.state == "ending" or (mine.state == "ended" and by_itself)


def _merged(mine: Record, found: Record) -> Record:
    seen = {attempt.number: attempt for attempt in found.attempts if not attempt.missed}
    seen.update({attempt.number: attempt for attempt in mine.attempts if not attempt.missed})
    known = {attempt.number: attempt for attempt in (*found.attempts, *mine.attempts)} | seen
    return mine.model_copy(
        update={
            "made_by_run": found.made_by_run,
            "uid": mine.uid or found.uid,
            "started_at": found.started_at,
            "spent": SecondsSpent(
                **{
                    name: max(getattr(mine.spent, name), getattr(found.spent, name))
                    for name in SecondsSpent.model_fields
                }
            ),
            "attempts": () if mine.outcome is not None else tuple(known[number] for number in sorted(known)),
            "counted_at": max(mine.counted_at or 0.0, found.counted_at or 0.0) or None,
        }
    )


def _without_tail(attempt: Attempt) -> Attempt:
    if attempt.cause is None:
        return attempt
    return attempt.model_copy(update={"cause": attempt.cause.model_copy(update={"log_tail": ()})})


def _without_words(attempt: Attempt) -> Attempt:
    if attempt.cause is None:
        return attempt
    return attempt.model_copy(update={"cause": attempt.cause.model_copy(update={"message": ""})})


def _size(part: Record | Attempt) -> int:
    return len(part.model_dump_json().encode())
