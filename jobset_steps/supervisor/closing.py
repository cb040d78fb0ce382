"""The last steps of a step: save the outcome, hand it to the engine, save that it was handed over, finish.

In this order, so that whoever comes next finds either an undelivered outcome or a delivered one. Nothing is decided here.
"""

from __future__ import annotations

from jobset_steps.outcome import Verdict
from jobset_steps.supervisor import life, memory, verdicts
from jobset_steps.supervisor.inputs import ApiFault, Deliver, EndCause
from jobset_steps.supervisor.state import Phase, Turn

__all__ = [
    "conclude",
    "concluded",
    "deadline",
    "deliver",
    "delivered",
    "hurry",
    "mark",
    "marked",
    "out_of_reach",
    "undelivered",
]

# Seconds to save the mark of a delivery, after which the step ends without: the next launcher then delivers once more.
_MARK = 60.0
# Seconds that a launcher which is asked to end still takes for its outcome.
_HURRY = 10.0
_DELIVERIES = 5


def conclude(turn: Turn) -> None:
    """CONCLUDING begins: save the outcome."""
    record, outcome = turn.state.record, turn.state.outcome
    if record is None or outcome is None:
        turn.go(Phase.DELIVERING, unsaved=True)
        return
    if turn.state.end is not None:
        turn.after("deadline", _HURRY)
    ended = memory.remembered(turn, record).model_copy(
        update={"state": "ended", "outcome": outcome, "attempts": (), "uid": turn.state.uid or record.uid}
    )
    memory.want(turn, ended)


def concluded(turn: Turn) -> None:
    """The outcome is saved."""
    state = turn.state
    if state.resumed_ending:
        # A deletion that another launcher began is over. What comes now is decided as if this one had just come, from
        # the Record as it was then: a later mark may be that of a launcher which came after this one.
        turn.put(resumed_ending=False, generation=0, outcome=None)
        life.loaded(turn, state.record, state.version)
        return
    turn.go(Phase.DELIVERING, outcome=state.record.outcome if state.record else state.outcome)


def deliver(turn: Turn) -> None:
    """DELIVERING begins: hand the outcome over."""
    outcome = turn.state.outcome
    if outcome is None:
        turn.finish(verdicts.draft(turn, Verdict.UNKNOWN, "InternalError", "an outcome was lost"))
        return
    if turn.state.end is not None:
        turn.after("deadline", _HURRY)
    turn.ask(Deliver(outcome))


def delivered(turn: Turn) -> None:
    """The engine has it."""
    if turn.state.phase is Phase.DELIVERING:
        turn.go(Phase.MARKING)


def undelivered(turn: Turn, fault: ApiFault) -> None:
    """The outputs could not be written."""
    if turn.fault("deliver") < _DELIVERIES:
        turn.after("deliver", turn.backoff("deliver", cap=10.0))
        return
    message = f"the outputs cannot be written: {fault.message}"
    turn.finish(verdicts.draft(turn, Verdict.UNKNOWN, "InternalError", message))


def mark(turn: Turn) -> None:
    """MARKING begins: save that this launcher delivered it."""
    state = turn.state
    record, plan = state.record, state.plan
    others = bool(plan.identity.slot) and record is not None and record.made_by_run != plan.identity.run
    if record is None or state.unsaved or others:
        # Of a slot that another run trains, only that run's launchers count: they alone may train it again.
        marked(turn)
        return
    turn.after("deadline", _MARK if state.end is None else _HURRY)
    by_me = {"delivered_launcher": plan.engine.launcher, "delivered_retry": plan.engine.retry}
    if record.delivered_launcher == plan.engine.launcher:
        by_me = {}
    memory.want(turn, record.model_copy(update=by_me))


def marked(turn: Turn) -> None:
    """The mark is saved, or is given up."""
    if turn.state.outcome is not None:
        turn.finish(turn.state.outcome)


def hurry(turn: Turn) -> None:
    """The launcher is asked to end while it is closing: it goes on, but not for long."""
    turn.at("deadline", min(turn.now + _HURRY, turn.state.timers.get("deadline", turn.now + _HURRY)))


def deadline(turn: Turn) -> None:
    """The time for this phase is spent."""
    state = turn.state
    if state.phase is Phase.CONCLUDING:
        if state.end is not None and state.end.cause is EndCause.CANCEL:
            turn.go(Phase.DELIVERING, unsaved=True)
        else:
            message = (
                f"asked to end before the outcome could be saved; {verdicts.where(turn)} is left as it is"
            )
            turn.finish(verdicts.draft(turn, Verdict.UNKNOWN, "LauncherEvicted", message))
    else:
        marked(turn)


def out_of_reach(turn: Turn) -> None:
    """The outage budget is spent: end without a verdict, and leave the JobSet as it is."""
    budget = turn.state.plan.budgets.outage
    left = f"; {verdicts.where(turn)} is left running" if turn.state.uid else ""
    message = f"the API server could not be reached for {budget:g} s{left}"
    turn.finish(verdicts.draft(turn, Verdict.UNKNOWN, "ApiUnavailable", message))
