"""Remembers why each attempt failed before a restart deletes it, and builds the Attempts of an Outcome. Pure.

Every View is folded in at once, pods that are gone included. It keeps a handful of candidates an attempt and decides
which began the failure only when asked, since the first failed Job may become known later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobset_steps.observed import JobSetView, JobView, PodView, View
from jobset_steps.outcome import Attempt, Cause
from jobset_steps.outcome.causes import cut_lines, first, of_pod, refined, when
from jobset_steps.outcome.judgement import answered_by
from jobset_steps.spec.jobset import FailurePolicy

__all__ = ["Trace", "attempts", "fold", "recall", "restarted", "tails_wanted", "trace_of", "with_tail"]

# Candidates kept of one attempt: of a thousand pods that a teardown kills, the first few are the failure.
_CANDIDATES = 8
_FAILED_JOBS = 64
# Attempts told of in an Outcome, the newest; the count of restarts is told in full.
_ATTEMPTS = 500
TAILS = 3
"""Pods of one attempt whose log is asked for."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What is known of one attempt."""

    number: int
    started_at: float | None = None
    ended_at: float | None = None
    causes: tuple[Cause, ...] = ()
    failed: tuple[JobView, ...] = ()
    rule: str = ""
    action: str = ""
    counted: bool = False


def fold(traces: tuple[Trace, ...], view: View, *, suspended: bool) -> tuple[Trace, ...]:
    """The traces with all that this View shows.

    While the JobSet is `suspended`, and for pods made before it was resumed, an end is the suspension's doing and no
    failure: what was taken for one is forgotten.
    """
    known = {trace.number: trace for trace in traces}
    resumed = _resumed_at(view.jobset)
    for pod in view.pods:
        trace = known.get(pod.attempt) or Trace(pod.attempt)
        if pod.created_at is not None and (trace.started_at is None or pod.created_at < trace.started_at):
            trace = replace(trace, started_at=pod.created_at)
        before = resumed is not None and pod.created_at is not None and pod.created_at < resumed
        if not suspended and not before:
            trace = _with_causes(trace, of_pod(pod))
        known[pod.attempt] = trace
    for job in view.jobs:
        if job.is_failed:
            trace = known.get(job.attempt) or Trace(job.attempt)
            known[job.attempt] = _with_failed(trace, job)
    if suspended and view.jobset is not None and view.jobset.restarts in known:
        current = known[view.jobset.restarts]
        known[view.jobset.restarts] = replace(current, causes=(), failed=())
    return tuple(known[number] for number in sorted(known))


def restarted(
    traces: tuple[Trace, ...],
    before: JobSetView | None,
    after: JobSetView,
    policy: FailurePolicy | None,
    now: float,
) -> tuple[Trace, ...]:
    """The traces after the JobSet went from one attempt to a later one: the old one has ended, by this rule.

    Where more than one restart went by unseen, which of them counted is not known: only the last seen one is told.
    """
    number = before.restarts if before is not None else after.restarts - 1
    if before is None or number >= after.restarts:
        return traces
    trace = trace_of(traces, number)
    alone = after.restarts == number + 1
    counted = after.restarts_counted > before.restarts_counted
    decision = (
        answered_by(policy, trace.failed, restarts_counted=before.restarts_counted, counted=counted)
        if alone
        else None
    )
    action = "RestartJobSet" if counted else "RestartJobSetAndIgnoreMaxRestarts"
    ended = replace(
        trace,
        ended_at=_failed_at(trace) or now,
        rule=decision.rule if decision else "",
        action=action if alone else "",
        counted=counted if alone else False,
    )
    # Late terminations still find their attempt; older ones keep only what began their failure.
    others = (_settled(t) if t.number < number else t for t in traces if t.number != number)
    return tuple(sorted((*others, ended), key=lambda t: t.number))


def attempts(
    traces: Sequence[Trace], *, current: int, failed: bool, first_failed_job: str = ""
) -> tuple[Attempt, ...]:
    """One Attempt per restart and one for the `current`: what nobody saw is `missed`.

    `failed` says that the current attempt ended in failure, `first_failed_job` the Job that the JobSet named for it.
    """
    known = {trace.number: trace for trace in traces}
    newest = max((current, *known), default=current)
    return tuple(
        _attempt(
            known.get(number),
            number,
            failed=failed or number < newest,
            named=first_failed_job if number == newest else "",
        )
        for number in range(max(0, newest - _ATTEMPTS + 1), newest + 1)
    )


def recall(recorded: Sequence[Attempt]) -> tuple[Trace, ...]:
    """The traces that a Record remembers."""
    return tuple(
        Trace(
            number=attempt.number,
            started_at=attempt.started_at,
            ended_at=attempt.ended_at,
            causes=(attempt.cause,) if attempt.cause else (),
            rule=attempt.rule,
            action=attempt.action,
            counted=attempt.counted,
        )
        for attempt in recorded
        if not attempt.missed
    )


def trace_of(traces: Sequence[Trace], number: int) -> Trace:
    """The trace of an attempt, empty where nothing is known."""
    return next((trace for trace in traces if trace.number == number), Trace(number))


def tails_wanted(traces: Sequence[Trace], pods: Sequence[PodView]) -> tuple[tuple[str, str, int], ...]:
    """(pod, container, attempt) of the failures whose logs can still be read, at most TAILS an attempt."""
    there = {pod.name for pod in pods if not pod.gone}
    return tuple(
        (cause.pod, cause.container, trace.number)
        for trace in traces
        for cause in trace.causes[:TAILS]
        if cause.container and cause.pod in there
    )


def with_tail(
    traces: Sequence[Trace],
    pod: str,
    container: str,
    attempt: int,
    lines: Sequence[str],
    written_at: float | None = None,
) -> tuple[Trace, ...]:
    """The traces with a container's last log lines: they say more than its termination message, unless empty.

    Kubernetes tells ends in whole seconds, and one crash ends the whole set within one. A line `written_at` some moment of a
    container's last second says that it lived so long: what fell silent first is told from what complained of it.
    """
    kept = cut_lines(lines)

    def written(cause: Cause) -> Cause:
        if (cause.pod, cause.container) != (pod, container):
            return cause
        finer = (
            {"at": refined(cause.at, written_at)} if cause.at is not None and written_at is not None else {}
        )
        return cause.model_copy(update={**({"log_tail": kept} if kept else {}), **finer})

    return tuple(
        replace(trace, causes=tuple(map(written, trace.causes))) if trace.number == attempt else trace
        for trace in traces
    )


def _attempt(trace: Trace | None, number: int, *, failed: bool, named: str) -> Attempt:
    if trace is None:
        return Attempt(number=number, missed=failed)
    cause = first(trace.causes, trace.failed, named) if failed else None
    return Attempt(
        number=number,
        started_at=trace.started_at,
        ended_at=trace.ended_at,
        cause=cause,
        rule=trace.rule,
        action=trace.action,
        counted=trace.counted,
        missed=failed and cause is None,
    )


def _with_causes(trace: Trace, causes: Sequence[Cause]) -> Trace:
    known = set(map(_ending, trace.causes))
    new = [cause for cause in causes if _ending(cause) not in known]
    if not new:
        return trace
    # How a container ended says more than that its pod was deleted or evicted.
    told = {cause.pod for cause in (*trace.causes, *new) if cause.container}
    all_ = [cause for cause in (*trace.causes, *new) if cause.container or cause.pod not in told]
    failed = {job.name for job in trace.failed}
    all_.sort(key=lambda cause: (when(cause), cause.deleted, cause.job not in failed, cause.pod))
    return replace(trace, causes=tuple(all_[:_CANDIDATES]))


def _ending(cause: Cause) -> tuple[str, str, int | None]:
    """What tells one end of a container from another: its log may have told the time of day more finely since."""
    return cause.pod, cause.container, None if cause.at is None else int(cause.at)


def _with_failed(trace: Trace, job: JobView) -> Trace:
    if any(known.name == job.name for known in trace.failed) or len(trace.failed) >= _FAILED_JOBS:
        return trace
    return replace(trace, failed=(*trace.failed, job))


def _settled(trace: Trace) -> Trace:
    if not trace.failed and len(trace.causes) < 2:
        return trace
    cause = first(trace.causes, trace.failed)
    return replace(trace, causes=(cause,) if cause else (), failed=())


def _failed_at(trace: Trace) -> float | None:
    times = [c.since for job in trace.failed if (c := job.condition("Failed")) and c.since is not None]
    return min(times, default=None)


def _resumed_at(jobset: JobSetView | None) -> float | None:
    if jobset is None:
        return None
    lifted = [c.since for c in jobset.conditions if c.type == "Suspended" and c.status == "False"]
    return lifted[0] if lifted else None
