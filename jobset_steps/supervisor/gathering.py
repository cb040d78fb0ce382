"""The end of a training is known: wait a few seconds for what tells why, then write the Outcome.

Logs are best effort and at most three pods an attempt; a View that comes late still counts for its pods and Jobs. What
the verdict is was decided before and does not change here.
"""

from __future__ import annotations

from jobset_steps.observed import View
from jobset_steps.outcome import Verdict
from jobset_steps.outcome.judgement import ended, metrics_in
from jobset_steps.supervisor import evidence, verdicts
from jobset_steps.supervisor.inputs import ApiFault, Done, Read, Tail
from jobset_steps.supervisor.state import Phase, Turn

__all__ = ["ask_tails", "begin", "conclude", "heard", "late", "tail"]

# Seconds in which the last evidence of an ended training is awaited.
_GATHER = 5.0


def begin(turn: Turn) -> None:
    """GATHERING begins: the end is known; wait seconds for what tells why."""
    turn.after("deadline", _GATHER)
    if not _enough(turn):
        if turn.state.view is not None and not turn.state.view.complete:
            turn.ask(Read(turn.state.name))
        if not turn.state.asked & {"read"} and not turn.state.tails_awaited:
            conclude(turn)
    else:
        conclude(turn)


def late(turn: Turn, view: View) -> None:
    """GATHERING: one more View came; what it shows of pods and Jobs counts, the end is known already."""
    state = turn.state
    if view.jobset is not None and view.jobset.uid != state.uid:
        return
    turn.put(traces=evidence.fold(state.traces, view, suspended=False))
    ask_tails(turn, view)
    pods = [pod for pod in view.pods if pod.attempt == state.attempt]
    if (metrics := metrics_in(state.plan.jobset.spec, pods)) is not None:
        turn.put(metrics=metrics)
    if view.jobset is not None and ended(view.jobset) is not None:
        turn.put(view=view)
    heard(turn)


def heard(turn: Turn) -> None:
    """Something came in: is it enough?"""
    if _enough(turn) or not (turn.state.asked & {"read"} or turn.state.tails_awaited):
        conclude(turn)


def conclude(turn: Turn) -> None:
    """Conclude with what there is."""
    view = turn.state.view
    end = ended(view.jobset) if view is not None and view.jobset is not None else None
    if end is not None:
        turn.go(Phase.CONCLUDING, outcome=verdicts.of_terminal(turn, end))


def ask_tails(turn: Turn, view: View) -> None:
    """Ask for the last log lines of what failed, while its pod is there."""
    state = turn.state
    for key in evidence.tails_wanted(state.traces, view.pods):
        asked = [known for known in turn.state.tails if known[2] == key[2]]
        if key not in asked and len(asked) < evidence.TAILS:
            turn.put(tails=turn.state.tails | {key}, tails_awaited=turn.state.tails_awaited | {key})
            turn.actions.append(Tail(*key))


def tail(turn: Turn, action: Tail, answer: Done | ApiFault) -> None:
    """The last lines of a container came, or are lost."""
    key = (action.pod, action.container, action.attempt)
    turn.put(tails_awaited=turn.state.tails_awaited - {key})
    if isinstance(answer, Done):
        turn.put(traces=evidence.with_tail(turn.state.traces, *key, answer.lines, answer.written_at))


def _enough(turn: Turn) -> bool:
    state = turn.state
    view = state.view
    if view is None or view.jobset is None:
        return True
    end = ended(view.jobset)
    if end is None or end.verdict is Verdict.SUCCEEDED:
        finished = any(pod.finished and pod.attempt == state.attempt for pod in view.pods)
        return state.metrics is not None or view.complete or finished
    last = evidence.attempts(
        state.traces, current=state.attempt, failed=True, first_failed_job=end.first_failed_job
    )[-1]
    # The JobSet's end can be told before that of the Job that caused it, which says by which rule.
    failed = evidence.trace_of(state.traces, state.attempt).failed
    if last.cause is None or not (view.complete or (last.cause.pod and failed)):
        return False
    return bool(last.cause.log_tail) or not state.tails_awaited
