"""`step(state, input, now) -> (state, actions)`: which part of a step's life hears which input.

Pure and total: no clock, no I/O, no random, and no fault of the world raises. Each phase has its file; this one counts the
time, hands each input to the phase's functions, lets timers that are due speak, and asks to be woken for the next.
"""

from __future__ import annotations

from collections.abc import Callable

from jobset_steps.observed import View
from jobset_steps.supervisor import closing, ending, gathering, life, making, memory, removal, waiting
from jobset_steps.supervisor.inputs import (
    Action,
    ApiFault,
    Create,
    Delete,
    Deliver,
    Done,
    EndRequest,
    Input,
    Load,
    Read,
    Save,
    Seen,
    Tail,
)
from jobset_steps.supervisor.state import Phase, StepState, Stretch, Turn

__all__ = ["step"]

_REMOVING = (Phase.CLEARING, Phase.DISCARDING, Phase.ENDING)
# Which kinds of action a phase cannot do without: only for these does the outage budget end a step.
_NEEDS: dict[Phase, tuple[str, ...]] = {
    Phase.LOADING: ("load",),
    Phase.INTENDING: ("save", "load"),
    Phase.CREATING: ("create", "read"),
    Phase.RECORDING: ("save", "load"),
    Phase.WAITING: ("read",),
    Phase.CONCLUDING: ("save", "load"),
}
_COUNTING = (Phase.CREATING, Phase.RECORDING, Phase.WAITING)

Handler = Callable[[Turn], None]


def step(state: StepState, heard: Input, now: float) -> tuple[StepState, tuple[Action, ...]]:
    """The state after one input at `now` (POSIX seconds), and what is to be done now.

    The first input of all is a Tick. Every action but Say, WakeAt and Finish is to be answered once; after Finish
    nothing more is asked and every input is ignored.
    """
    if state.phase is Phase.DONE:
        return state, ()
    turn = Turn(state, now)
    _count(turn)
    if state.clock is None:
        turn.entering = True
        _settle(turn)
    _hear(turn, heard)
    _settle(turn)
    _due(turn)
    turn.set_wake()
    return turn.state, tuple(turn.actions)


def _count(turn: Turn) -> None:
    """Spend the time since the last input on what was going on."""
    state = turn.state
    turn.put(clock=turn.now)
    if state.wake is not None and state.wake <= turn.now:
        turn.put(wake=None)
    seconds = turn.now - state.clock if state.clock is not None else 0.0
    if seconds <= 0:
        return
    changes = {}
    if state.stretch is not None and state.phase in _COUNTING and state.uncounted_since is None:
        changes[state.stretch.value] = getattr(state.spent, state.stretch.value) + seconds
        if state.stretch is Stretch.STARTING:
            turn.put(attempt_starting=state.attempt_starting + seconds)
    if any(kind in state.down for kind in _NEEDS.get(state.phase, ())):
        changes["outage"] = state.spent.outage + seconds
    if changes:
        turn.put(spent=state.spent.model_copy(update=changes))


def _settle(turn: Turn) -> None:
    """Carry out what the last change began: a phase's entry, or its going on once the Record is stored."""
    while turn.entering or turn.stored:
        table = _ENTER if turn.entering else _STORED
        if turn.entering:
            turn.entering = False
        else:
            turn.stored = False
        if (go_on := table.get(turn.state.phase)) is not None:
            go_on(turn)


def _due(turn: Turn) -> None:
    """Let every timer that is due speak, the earliest first, each at most once."""
    due = sorted((at, name) for name, at in turn.state.timers.items() if at <= turn.now)
    for at, name in due:
        if turn.state.timers.get(name) == at:
            turn.stop(name)
            _DUE[name](turn)
            _settle(turn)


def _hear(turn: Turn, heard: Input) -> None:
    if isinstance(heard, Seen):
        _seen(turn, heard.view)
    elif isinstance(heard, EndRequest):
        ending.requested(turn, heard)
    elif isinstance(heard, ApiFault) and heard.action is None:
        waiting.watch_failed(turn, heard)
    elif isinstance(heard, Done | ApiFault) and heard.action is not None:
        _answered(turn, heard.action, heard)


def _answered(turn: Turn, action: Action, answer: Done | ApiFault) -> None:
    kind = turn.answered(action)
    if isinstance(answer, Done) and kind in ("load", "read", "delete"):
        turn.reached(kind)
    if isinstance(action, Load):
        _loaded(turn, answer)
    elif isinstance(action, Save):
        _saved(turn, answer)
    elif isinstance(action, Create):
        _created(turn, action, answer)
    elif isinstance(action, Read):
        _read(turn, answer)
    elif isinstance(action, Delete):
        if turn.state.phase in _REMOVING:
            removal.accepted(turn) if isinstance(answer, Done) else removal.delete_failed(turn, answer)
    elif isinstance(action, Tail):
        gathering.tail(turn, action, answer)
        if turn.state.phase is Phase.GATHERING:
            gathering.heard(turn)
    elif isinstance(action, Deliver):
        closing.delivered(turn) if isinstance(answer, Done) else closing.undelivered(turn, answer)


def _loaded(turn: Turn, answer: Done | ApiFault) -> None:
    loading = turn.state.phase is Phase.LOADING
    if isinstance(answer, ApiFault):
        life.load_failed(turn, answer) if loading else memory.load_failed(turn, answer)
    elif loading:
        life.loaded(turn, answer.record, answer.version)
    else:
        memory.settled(turn, answer.record, answer.version)


def _saved(turn: Turn, answer: Done | ApiFault) -> None:
    phase = turn.state.phase
    if isinstance(answer, Done):
        memory.saved(turn, answer)
    elif phase is Phase.LEAVING:
        ending.left(turn)
    elif phase is Phase.INTENDING:
        life.save_failed(turn, answer)
    elif phase is Phase.ENDING:
        ending.tombstone_failed(turn, answer)
    else:
        memory.save_failed(turn, answer)


def _created(turn: Turn, action: Create, answer: Done | ApiFault) -> None:
    phase = turn.state.phase
    if phase is Phase.CREATING:
        making.created(turn, answer) if isinstance(answer, Done) else making.create_failed(turn, answer)
    elif phase in (Phase.ENDING, Phase.LEAVING):
        ending.created(turn, answer)
    elif isinstance(answer, Done):
        # Too late for anybody to follow it.
        turn.ask(Delete(action.name, answer.uid))


def _read(turn: Turn, answer: Done | ApiFault) -> None:
    phase, view = turn.state.phase, turn.state.answer
    if phase is Phase.GATHERING:
        gathering.heard(turn)
    elif isinstance(answer, ApiFault):
        if phase in _READ_FAILED:
            _READ_FAILED[phase](turn, answer)
    elif phase in _READ:
        _READ[phase](turn, view)


def _seen(turn: Turn, view: View) -> None:
    phase = turn.state.phase
    turn.reached("read")
    if not view.complete:
        turn.reached("watch")
    if view.complete and "read" in turn.state.asked:
        turn.put(answer=view)
    if phase is Phase.WAITING:
        waiting.seen(turn, view)
    elif phase is Phase.RECORDING:
        making.early(turn, view)
    elif phase is Phase.GATHERING:
        gathering.late(turn, view)
    elif phase is Phase.ENDING:
        ending.seen(turn, view)
    elif phase in (Phase.CLEARING, Phase.DISCARDING) and removal.seen(turn, view):
        life.cleared(turn) if phase is Phase.CLEARING else making.discarded(turn, gone=True)


def _read_again(turn: Turn) -> None:
    phase = turn.state.phase
    if phase is Phase.CREATING:
        turn.ask(Read(turn.state.name))
    elif phase is Phase.WAITING:
        waiting.reread(turn)
    elif phase in _REMOVING:
        removal.look(turn)


def _deadline(turn: Turn) -> None:
    if (say_so := _DEADLINE.get(turn.state.phase)) is not None:
        say_so(turn)


def _outage(turn: Turn) -> None:
    """Some kind of action has had no answer for the whole budget: does this phase need it?"""
    state = turn.state
    budget = state.plan.budgets.outage
    ends = [state.down[kind] + budget for kind in _NEEDS.get(state.phase, ()) if kind in state.down]
    if ends and min(ends) <= turn.now:
        closing.out_of_reach(turn)
    elif ends:
        turn.at("outage", min(ends))


def _while_waiting(handler: Handler) -> Handler:
    def go_on(turn: Turn) -> None:
        if turn.state.phase is Phase.WAITING:
            handler(turn)

    return go_on


_ENTER: dict[Phase, Handler] = {
    Phase.LOADING: life.load,
    Phase.CLEARING: life.clear,
    Phase.INTENDING: life.intend,
    Phase.CREATING: making.begin,
    Phase.RECORDING: making.record,
    Phase.WAITING: waiting.began,
    Phase.GATHERING: gathering.begin,
    Phase.DISCARDING: making.discard,
    Phase.ENDING: ending.begin,
    Phase.LEAVING: ending.leave,
    Phase.CONCLUDING: closing.conclude,
    Phase.DELIVERING: closing.deliver,
    Phase.MARKING: closing.mark,
}
_STORED: dict[Phase, Handler] = {
    Phase.INTENDING: life.intended,
    Phase.RECORDING: making.recorded,
    Phase.ENDING: ending.proceed,
    Phase.LEAVING: ending.left,
    Phase.CONCLUDING: closing.concluded,
    Phase.MARKING: closing.marked,
}
_READ: dict[Phase, Callable[[Turn, View | None], None]] = {
    Phase.CREATING: making.read,
    Phase.WAITING: waiting.read,
    Phase.CLEARING: removal.looked,
    Phase.DISCARDING: removal.looked,
    Phase.ENDING: removal.looked,
}
_READ_FAILED: dict[Phase, Callable[[Turn, ApiFault], None]] = {
    Phase.CREATING: making.read_failed,
    Phase.WAITING: waiting.read_failed,
    Phase.CLEARING: removal.look_failed,
    Phase.DISCARDING: removal.look_failed,
    Phase.ENDING: removal.look_failed,
}
_DEADLINE: dict[Phase, Handler] = {
    Phase.LOADING: life.deadline,
    Phase.CLEARING: life.deadline,
    Phase.INTENDING: life.deadline,
    Phase.CREATING: making.deadline,
    Phase.GATHERING: gathering.conclude,
    Phase.DISCARDING: lambda turn: making.discarded(turn, gone=False),
    Phase.ENDING: ending.deadline,
    Phase.LEAVING: ending.left,
    Phase.CONCLUDING: closing.deadline,
    Phase.DELIVERING: closing.deadline,
    Phase.MARKING: closing.deadline,
}
_DUE: dict[str, Handler] = {
    "load": lambda turn: turn.ask(Load()),
    "save": memory.flush,
    "create": making.send,
    "read": _read_again,
    "delete": removal.begin,
    "deliver": closing.deliver,
    "deadline": _deadline,
    "outage": _outage,
    "persist": _while_waiting(memory.keep),
    "budget": _while_waiting(waiting.budget),
    "look": _while_waiting(waiting.look),
}
