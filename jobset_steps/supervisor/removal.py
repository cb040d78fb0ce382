"""Deletes a JobSet and does not believe it gone before a complete View shows nothing of it.

One machine for a cancel, a time-out, a lost race and the generation before. A delete that fails is sent again; only the
phase's deadline ends the tries, and then the leak is named. It deletes only by uid, and only what carries our identity.
"""

from __future__ import annotations

from dataclasses import replace

from jobset_steps.observed import JobSetView, View
from jobset_steps.spec import naming
from jobset_steps.supervisor.inputs import ApiFault, Delete, Read
from jobset_steps.supervisor.plan import StepPlan
from jobset_steps.supervisor.state import Turn

__all__ = [
    "accepted",
    "again",
    "begin",
    "delete_failed",
    "is_ours",
    "look",
    "look_failed",
    "looked",
    "seen",
    "settles_at",
]

# Looks at what is left: often at first, then about twice a minute; every fourth sends the delete once more.
_LOOKS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_REPEAT = 4
# Seconds after a create without an answer in which it may still take effect (the API server's own request timeout
# is longer, but it gives up a request whose client has gone).
_SETTLE = 10.0


def is_ours(plan: StepPlan, jobset: JobSetView, generation: int) -> bool:
    """Whether a JobSet was made for this identity and generation."""
    return jobset.label(naming.IDENTITY) == plan.identity.digest and jobset.annotation(
        naming.GENERATION
    ) == str(generation)


def settles_at(turn: Turn) -> float:
    """From when on absence proves something: until then a create without an answer may still take effect."""
    state = turn.state
    unanswered = [state.unanswered_at] if state.unanswered_at is not None else []
    if state.record is not None and state.record.started_at is not None and not state.made_here:
        # The launcher before may have left a create without an answer.
        unanswered.append(state.record.started_at)
    return max(unanswered, default=turn.now - _SETTLE) + _SETTLE


def begin(turn: Turn) -> None:
    """Delete `state.removal`, or read first where its uid is not known."""
    removal = turn.state.removal
    if removal is None:
        return
    if removal.uid:
        turn.ask(Delete(removal.name, removal.uid))
    else:
        turn.ask(Read(removal.name))


def again(turn: Turn) -> None:
    """Send the delete at once, whatever pause was due."""
    turn.stop("delete", "read")
    begin(turn)


def accepted(turn: Turn) -> None:
    """The server took the delete; now see it gone."""
    removal = turn.state.removal
    turn.reached("delete")
    if removal is not None:
        turn.put(removal=replace(removal, accepted=True))
        turn.ask(Read(removal.name))


def delete_failed(turn: Turn, fault: ApiFault) -> None:
    """The delete was refused, or had no answer: again, soon."""
    if fault.kind in ("not_found", "conflict"):
        accepted(turn)
        return
    turn.fault("delete")
    turn.after("delete", turn.backoff("delete", cap=15.0, retry_after=fault.retry_after))


def look(turn: Turn) -> None:
    """The pause between two looks is over."""
    removal = turn.state.removal
    if removal is None:
        return
    turn.put(removal=replace(removal, looks=removal.looks + 1))
    if removal.uid and (removal.looks + 1) % _REPEAT == 0:
        turn.ask(Delete(removal.name, removal.uid))
    turn.ask(Read(removal.name))


def looked(turn: Turn, view: View | None) -> None:
    """A read is over; its View was judged when it came."""
    if "read" not in turn.state.timers:
        turn.after("read", _LOOKS[1])


def look_failed(turn: Turn, fault: ApiFault) -> None:
    """Nothing could be read: again, soon."""
    turn.fault("read")
    turn.after("read", turn.backoff("read", cap=15.0, retry_after=fault.retry_after))


def seen(turn: Turn, view: View) -> bool:
    """Whether a View shows that nothing is left. Otherwise sees to it that there will be another look."""
    state = turn.state
    removal = state.removal
    if removal is None:
        return False
    jobset = view.jobset
    ours = jobset is not None and is_ours(state.plan, jobset, removal.generation)
    if not view.complete:
        if jobset is None or jobset.uid != removal.uid:
            turn.ask(Read(removal.name))
        return False
    if jobset is not None and ours and jobset.uid != removal.uid:
        # Ours too, under a uid that no Record knows: a create whose answer was lost.
        turn.put(removal=replace(removal, uid=jobset.uid, accepted=False))
        turn.stop("delete")
        turn.ask(Delete(removal.name, jobset.uid))
        return False
    # A JobSet of somebody else under our name is none of our business.
    theirs = jobset is not None and not ours and jobset.uid != removal.uid
    left = jobset is not None or bool(view.jobs) or any(not pod.gone for pod in view.pods)
    if (theirs or not left) and turn.now >= removal.settle_until:
        turn.stop("delete", "read")
        return True
    turn.after("read", _LOOKS[min(removal.looks, len(_LOOKS) - 1)])
    return False
