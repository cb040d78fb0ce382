"""Makes the one JobSet of a generation, or finds that it is there: create, read back, adopt, and give way.

A create without an answer, or one that meets the name taken, is never taken for a failure or for a success: what is there is
read, and only identity, hash and generation say whose it is. Nothing of somebody else's is ever deleted.
"""

from __future__ import annotations

from jobset_steps.observed import JobSetView, View
from jobset_steps.outcome import Verdict
from jobset_steps.spec import naming
from jobset_steps.supervisor import evidence, memory, removal, verdicts
from jobset_steps.supervisor.inputs import ApiFault, Create, Done, Progress, Read
from jobset_steps.supervisor.state import Phase, Removal, Stretch, Turn

__all__ = [
    "begin",
    "create_failed",
    "created",
    "deadline",
    "discard",
    "discarded",
    "early",
    "read",
    "read_failed",
    "record",
    "recorded",
    "send",
]

# Words of a server that cannot take the create now but may later, whatever kind of fault they come with
# (API server: admission webhooks; quota admission).
_LATER = ("failed calling webhook", "exceeded quota")
# Seconds within which a lost race is cleaned up before the leak is named.
_DISCARD = 600.0


def begin(turn: Turn) -> None:
    """CREATING begins. The start-up budget counts from here."""
    state = turn.state
    turn.put(stretch=Stretch.STARTING)
    turn.after("deadline", max(0.0, state.plan.budgets.startup - state.attempt_starting))
    if state.read_back:
        turn.ask(Read(state.name))
    else:
        turn.say(Progress.STARTING, f"creating JobSet {verdicts.where(turn)}")
        send(turn)


def send(turn: Turn) -> None:
    """Send the create."""
    turn.ask(Create(turn.state.name, turn.state.generation))


def created(turn: Turn, answer: Done) -> None:
    """The JobSet was made by this launcher."""
    turn.reached("create")
    if turn.state.phase is Phase.CREATING:
        turn.go(
            Phase.RECORDING,
            uid=answer.uid,
            known_at=turn.now,
            uncounted_since=None,
            stuck=None,
        )


def create_failed(turn: Turn, fault: ApiFault) -> None:
    """The create was refused, met the name taken, or nobody knows."""
    if fault.kind == "exists":
        turn.reached("create")
        turn.put(name_taken=True)
        turn.ask(Read(turn.state.name))
    elif any(words in fault.message for words in _LATER):
        turn.reached("create")
        _later(turn, fault)
    elif fault.kind == "invalid" or "denied the request" in fault.message:
        _refused(turn, Verdict.REJECTED, "Invalid", fault.message)
    elif fault.kind == "forbidden":
        _refused(turn, Verdict.FORBIDDEN, "Forbidden", fault.message)
    elif fault.kind == "not_found":
        _refused(turn, Verdict.REJECTED, "NotFound", fault.message)
    else:
        turn.fault("create")
        turn.lost("create")
        turn.put(unanswered_at=turn.now)
        turn.after("read", turn.backoff("create", cap=60.0, retry_after=fault.retry_after))


def read(turn: Turn, view: View | None) -> None:
    """CREATING: what is there under our name was read back."""
    if view is None:
        return
    if view.jobset is None:
        # Two creates of one name cannot both succeed. But what took the name a moment ago may have been this step's, made by
        # another launcher and over by now: only the Record tells.
        if turn.state.name_taken:
            turn.go(Phase.LOADING, name_taken=False)
        else:
            send(turn)
        return
    whose, state = view.jobset, turn.state
    same_spec = whose.annotation(naming.SPEC_HASH) == state.plan.spec_hash
    if same_spec and removal.is_ours(state.plan, whose, state.generation):
        turn.say(Progress.STARTING, f"JobSet {verdicts.where(turn)} is there already: adopted")
        since = -1.0 if state.uncounted_since is None else state.uncounted_since
        turn.go(Phase.RECORDING, uid=whose.uid, known_at=turn.now, uncounted_since=since)
        return
    _refused(turn, Verdict.REJECTED, "NameTaken", _owner_of(turn, whose))


def read_failed(turn: Turn, fault: ApiFault) -> None:
    """CREATING: it could not be read back."""
    turn.fault("read")
    turn.lost("read")
    turn.after("read", turn.backoff("read", cap=60.0, retry_after=fault.retry_after))


def record(turn: Turn) -> None:
    """RECORDING begins: save the uid. From now on the JobSet is never made again."""
    found = turn.state.record
    if found is not None:
        turn.put(saved_at=turn.now)
        memory.want(turn, found.model_copy(update={"uid": turn.state.uid, "state": "created"}))


def early(turn: Turn, view: View) -> None:
    """RECORDING: a View comes before the uid is saved. It is kept, and judged once it is."""
    if view.jobset is not None and view.jobset.uid == turn.state.uid:
        suspended = view.jobset.suspended
        turn.put(early=view, traces=evidence.fold(turn.state.traces, view, suspended=suspended))


def recorded(turn: Turn) -> None:
    """The uid is saved."""
    turn.go(Phase.WAITING)


def deadline(turn: Turn) -> None:
    """CREATING: the start-up budget is spent before a JobSet was made."""
    budget = turn.state.plan.budgets.startup
    message = f"the JobSet could not be created within the start-up budget of {budget:g} s"
    if turn.state.stuck is not None:
        message += f": {turn.state.stuck[1]}"
    reason = turn.state.stuck[0] if turn.state.stuck else "StartupTimeout"
    turn.go(Phase.ENDING, outcome=verdicts.draft(turn, Verdict.STARTUP_TIMEOUT, reason, message))


def discard(turn: Turn) -> None:
    """DISCARDING begins: another launcher's JobSet is recorded, so the one made here goes."""
    state = turn.state
    turn.say(Progress.ENDING, f"another launcher made {verdicts.where(turn)} first: deleting uid {state.uid}")
    turn.put(removal=Removal(state.name, state.uid, state.generation))
    turn.after("deadline", state.plan.grace if state.cancelled else _DISCARD)
    removal.begin(turn)


def discarded(turn: Turn, *, gone: bool) -> None:
    """It is gone, or could not be confirmed gone; the Record says what to follow now."""
    leaked = "" if gone else f"{turn.state.plan.namespace}/{turn.state.name}"
    turn.go(Phase.LOADING, uid="", removal=None, leaked=leaked or turn.state.leaked)


def _later(turn: Turn, fault: ApiFault) -> None:
    turn.fault("create")
    cause = "QuotaExceeded" if "quota" in fault.message else "WebhookUnavailable"
    turn.put(stuck=(cause, fault.message))
    turn.say(Progress.STUCK, f"the JobSet cannot be created now: {fault.message}", cause)
    turn.after("create", turn.backoff("create", cap=60.0, retry_after=fault.retry_after))


def _refused(turn: Turn, verdict: Verdict, reason: str, message: str) -> None:
    turn.go(Phase.CONCLUDING, outcome=verdicts.draft(turn, verdict, reason, message))


def _owner_of(turn: Turn, jobset: JobSetView) -> str:
    marks = {
        "run": jobset.annotation(naming.RUN),
        "step": jobset.annotation(naming.STEP),
        "generation": jobset.annotation(naming.GENERATION),
        "spec hash": (jobset.annotation(naming.SPEC_HASH) or "")[:12],
    }
    whose = ", ".join(f"{name} {value}" for name, value in marks.items() if value)
    return (
        f"a JobSet {verdicts.where(turn)} exists and is not this step's: uid {jobset.uid}, "
        f"{whose or 'without any mark of jobset-steps'}. Nothing was deleted; delete it or name the step otherwise."
    )
