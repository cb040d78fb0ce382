"""Waits for a training: judges each View, counts the budgets, tells progress, and knows an end when it sees one.

Level-triggered: a View is judged by what it shows, never by what came before it, and one that is older than what is known
is no news. Only what is terminal ends the wait, or a budget that a fresh read shows to be spent.
"""

from __future__ import annotations

from jobset_steps.observed import JobSetView, PodView, View
from jobset_steps.outcome import Verdict
from jobset_steps.outcome.judgement import ended, metrics_in
from jobset_steps.supervisor import evidence, gathering, memory, progress, removal, verdicts
from jobset_steps.supervisor.inputs import ApiFault, Progress, Read
from jobset_steps.supervisor.state import Phase, Stretch, Turn

__all__ = ["began", "budget", "look", "read", "read_failed", "reread", "seen", "watch_failed"]

# Seconds between reads of a training that goes on well: the watch makes it fast, these make it true.
_READ = 1800.0
# Seconds before the first read with events where a start-up makes no progress; each further one waits twice as long.
_QUIET = 30.0
_LOOK = 60.0
# A budget that has less than this left is spent: sums of floats are not exact.
_SPENT = 1e-3


def began(turn: Turn) -> None:
    """WAITING begins: with a read where the JobSet was found, without one where it was just made."""
    state = turn.state
    memory.note(turn)
    if state.early is not None:
        turn.put(early=None)
        turn.after("read", _QUIET)
        seen(turn, state.early)
    elif state.uncounted_since is None and state.view is None:
        turn.put(stretch=Stretch.STARTING)
        turn.after("read", _QUIET)
    else:
        turn.ask(Read(state.name))


def seen(turn: Turn, view: View) -> None:
    """WAITING: a View came."""
    state = turn.state
    jobset = view.jobset
    if jobset is not None and jobset.name != state.name:
        # A watch that is still on the generation before.
        return
    if jobset is None or jobset.uid != state.uid:
        if not view.complete or view.read_at < state.known_at:
            turn.ask(Read(state.name))
        else:
            _gone(turn, jobset)
        return
    known = state.view.jobset if state.view is not None else None
    old = known is not None and known.uid == jobset.uid and _older(jobset, known)
    suspended = jobset.suspended or jobset.condition("Suspended") is not None
    turn.put(traces=evidence.fold(state.traces, view, suspended=suspended and not old))
    gathering.ask_tails(turn, view)
    if old:
        return
    if jobset.restarts > turn.state.attempt:
        _restarted(turn, known, jobset)
    if (metrics := metrics_in(state.plan.jobset.spec, _current(view, jobset))) is not None:
        turn.put(metrics=metrics)
    turn.put(view=view, events=view.events or turn.state.events)
    if ended(jobset) is not None:
        turn.go(Phase.GATHERING)
        return
    _count(turn, view)
    _tell(turn, view, fresh=view.complete)
    if turn.state.phase is Phase.WAITING and _beyond_cap(turn, jobset):
        return
    if turn.state.phase is Phase.WAITING and view.complete:
        _judge_budget(turn)


def read(turn: Turn, view: View | None) -> None:
    """WAITING: a read is over; its View was judged when it came. See to the next one."""
    _next_read(turn)


def reread(turn: Turn) -> None:
    """The pause before the next read is over."""
    turn.put(quiet_reads=turn.state.quiet_reads + 1)
    turn.ask(Read(turn.state.name, events=turn.state.stretch is Stretch.STARTING))


def read_failed(turn: Turn, fault: ApiFault) -> None:
    """WAITING: nothing could be read. That is never the training's failure; only the outage budget ends it."""
    tries = turn.fault("read")
    turn.lost("read")
    if tries == 2:
        turn.say(Progress.UNREACHABLE, f"the API server does not answer: {fault.message}", fault.kind)
    turn.after("read", turn.backoff("read", retry_after=fault.retry_after))


def watch_failed(turn: Turn, fault: ApiFault) -> None:
    """The watch says that it cannot keep up: read, but not more and more often."""
    turn.fault("watch")
    if turn.state.phase is Phase.WAITING and "read" not in turn.state.down:
        pause = turn.backoff("watch", retry_after=fault.retry_after)
        turn.at("read", min(turn.now + pause, turn.state.timers.get("read", turn.now + pause)))


def look(turn: Turn) -> None:
    """Time passed: what was normal a minute ago may be stuck now. Costs no request."""
    view = turn.state.view
    if view is not None:
        _tell(turn, view, fresh=False)


def budget(turn: Turn) -> None:
    """A budget is spent by our count: believe it only after a fresh read."""
    turn.ask(Read(turn.state.name))


def _gone(turn: Turn, other: JobSetView | None) -> None:
    state = turn.state
    message = f"JobSet {verdicts.where(turn)} (uid {state.uid}) was deleted by somebody else before its end was seen"
    if other is not None:
        message += f"; another one of that name is there now (uid {other.uid})"
    outcome = verdicts.draft(turn, Verdict.DELETED_EXTERNALLY, "DeletedExternally", message)
    # A create whose answer was lost may have found the name free again: what it made is in no Record.
    ours = other is not None and removal.is_ours(state.plan, other, state.generation)
    unsettled = state.unanswered_at is not None and removal.settles_at(turn) > turn.now
    turn.go(Phase.ENDING if ours or unsettled else Phase.CONCLUDING, outcome=outcome)


def _restarted(turn: Turn, known: JobSetView | None, jobset: JobSetView) -> None:
    state = turn.state
    policy = state.plan.jobset.spec.failure_policy
    turn.put(
        traces=evidence.restarted(state.traces, known, jobset, policy, turn.now),
        attempt=jobset.restarts,
        attempt_starting=0.0,
        metrics=None,
        quiet_reads=0,
        events=(),
    )
    memory.note(turn)


def _count(turn: Turn, view: View) -> None:
    """What the seconds are counted as from now on, and those that passed while no launcher lived."""
    state = turn.state
    stretch = progress.stretch_of(state.plan.jobset, view)
    if state.uncounted_since is not None and view.jobset is not None:
        since = view.jobset.created_at if state.uncounted_since < 0 else state.uncounted_since
        begin = progress.began(stretch, view)
        gap = max(0.0, turn.now - max(since if since is not None else turn.now, begin or 0.0))
        turn.put(uncounted_since=None, stretch=stretch)
        _spend(turn, stretch, gap)
    if stretch is not turn.state.stretch:
        turn.put(stretch=stretch, quiet_reads=0)
        if stretch is Stretch.QUEUED:
            turn.put(attempt_starting=0.0)
        if stretch is not Stretch.STARTING:
            turn.put(events=())
        memory.note(turn)
        _next_read(turn)
    turn.after("budget", max(0.0, _limit(turn) - _used(turn)))


def _spend(turn: Turn, stretch: Stretch, seconds: float) -> None:
    field, spent = stretch.value, turn.state.spent
    turn.put(spent=spent.model_copy(update={field: getattr(spent, field) + seconds}))
    if stretch is Stretch.STARTING:
        turn.put(attempt_starting=turn.state.attempt_starting + seconds)


def _limit(turn: Turn) -> float:
    budgets = turn.state.plan.budgets
    return {Stretch.QUEUED: budgets.queue, Stretch.STARTING: budgets.startup}.get(
        turn.state.stretch or Stretch.STARTING, budgets.run
    )


def _used(turn: Turn) -> float:
    state = turn.state
    if state.stretch is Stretch.STARTING:
        return state.attempt_starting
    return state.spent.queued if state.stretch is Stretch.QUEUED else state.spent.running


def _judge_budget(turn: Turn) -> None:
    state = turn.state
    if _used(turn) < _limit(turn) - _SPENT:
        return
    verdict, words = {
        Stretch.QUEUED: (Verdict.QUEUE_TIMEOUT, "queued"),
        Stretch.STARTING: (Verdict.STARTUP_TIMEOUT, f"starting attempt {state.attempt}"),
        Stretch.RUNNING: (Verdict.RUN_TIMEOUT, "running"),
    }[state.stretch or Stretch.STARTING]
    message = f"{words} for {_used(turn):.0f} s, the budget is {_limit(turn):g} s"
    reason = verdict.value
    if state.stuck is not None and state.stretch is not Stretch.RUNNING:
        reason, message = state.stuck[0], f"{message}: {state.stuck[1]}"
    turn.go(Phase.ENDING, outcome=verdicts.draft(turn, verdict, reason, message))


def _beyond_cap(turn: Turn, jobset: JobSetView) -> bool:
    cap = turn.state.plan.free_restarts_cap
    free = jobset.restarts - jobset.restarts_counted
    if free <= cap:
        return False
    message = (
        f"{free} restarts that do not count towards maxRestarts: more than the {cap} that the step allows"
    )
    outcome = verdicts.draft(turn, Verdict.FAILED, "FreeRestartsCap", message, retryable=True)
    turn.go(Phase.ENDING, outcome=outcome)
    return True


def _tell(turn: Turn, view: View, *, fresh: bool) -> None:
    """Tell people how it goes; end it where a fresh read says that waiting cannot help."""
    state = turn.state
    plan, jobset, stretch = state.plan, view.jobset, state.stretch
    if jobset is None:
        return
    if progress.in_question(stretch or Stretch.STARTING, view):
        turn.after("look", _LOOK)
    if stretch is Stretch.QUEUED:
        cause, words = progress.queue_cause(view)
        turn.put(stuck=None)
        turn.say(Progress.QUEUED, words, cause)
        return
    stuck = progress.stuck_on(plan.jobset, view, state.events, turn.now)
    turn.put(stuck=(stuck.cause, stuck.message) if stuck else None)
    if stuck is not None and stuck.hopeless and fresh:
        turn.go(Phase.ENDING, outcome=verdicts.draft(turn, Verdict.STUCK, stuck.cause, stuck.message))
    elif stuck is not None:
        turn.say(Progress.STUCK, stuck.message, stuck.cause)
        if stuck.hopeless:
            turn.ask(Read(state.name, events=True))
    elif jobset.deleting_since is not None:
        turn.say(Progress.ENDING, f"somebody is deleting JobSet {verdicts.where(turn)}")
    elif stretch is Stretch.RUNNING:
        turn.say(Progress.RUNNING, f"attempt {jobset.restarts} is running")
    elif jobset.restarts:
        turn.say(Progress.RESTARTING, f"attempt {jobset.restarts} is starting")
    else:
        turn.say(Progress.STARTING, "starting")


def _next_read(turn: Turn) -> None:
    """In a start-up ever rarer, with events; else at the quiet rate. A read that a fault made due stays due."""
    if turn.state.down:
        return
    pause = _READ
    if turn.state.stretch is Stretch.STARTING:
        pause = min(_QUIET * 2.0 ** min(turn.state.quiet_reads, 10), _READ)
    turn.after("read", pause)


def _current(view: View, jobset: JobSetView) -> list[PodView]:
    return [pod for pod in view.pods if pod.attempt == jobset.restarts]


def _older(jobset: JobSetView, known: JobSetView) -> bool:
    """Whether a View of a JobSet is older than the known one: counts and versions only grow (watches replay)."""
    if jobset.restarts < known.restarts or jobset.restarts_counted < known.restarts_counted:
        return True
    mine, theirs = jobset.resource_version, known.resource_version
    return mine.isdigit() and theirs.isdigit() and int(mine) < int(theirs)
