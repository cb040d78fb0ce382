"""Writes an Outcome out of what a step knows. It decides no verdict: whoever calls it does."""

from __future__ import annotations

from typing import Any

from jobset_steps.outcome import Attempt, Outcome, Restarts, Verdict, exit_code
from jobset_steps.outcome.judgement import Ended, ruled, worth_a_retry
from jobset_steps.supervisor import evidence
from jobset_steps.supervisor.plan import Record
from jobset_steps.supervisor.state import Turn

__all__ = ["draft", "of_terminal", "where"]

# Characters of a message kept: the server may answer with a page for each of a hundred replicated jobs.
_MESSAGE = 4000


def where(turn: Turn) -> str:
    """namespace/name of the JobSet."""
    return f"{turn.state.plan.namespace}/{turn.state.name}"


def draft(turn: Turn, verdict: Verdict, reason: str, message: str, **more: Any) -> Outcome:
    """An Outcome with this verdict and all that was counted and seen. `more` are fields of Outcome."""
    state = turn.state
    plan, record = state.plan, state.record
    failed = verdict is not Verdict.SUCCEEDED and bool(more.get("first_failed_job"))
    retryable = bool(more.get("retryable", False))
    fields: dict[str, Any] = {
        "restarts": _restarts(turn),
        "attempts": _attempts(turn, failed=failed, named=more.get("first_failed_job", "")),
        "seconds": state.spent,
        "exit_code": exit_code(verdict, retryable=retryable, reason=reason),
        "leaked": state.leaked,
        "run": plan.identity.run,
        "step": plan.identity.step,
        "slot": plan.identity.slot,
        "generation": record.generation if record else max(1, state.generation),
        "namespace": plan.namespace,
        "jobset": state.name,
        "uid": state.uid,
        "started_at": _started_at(record),
        "finished_at": turn.now,
        **more,
    }
    return Outcome(verdict=verdict, reason=reason, message=message[:_MESSAGE], **fields)


def of_terminal(turn: Turn, end: Ended) -> Outcome:
    """The Outcome of a JobSet that ended by itself."""
    state = turn.state
    if end.verdict is Verdict.SUCCEEDED:
        return draft(turn, end.verdict, end.reason, end.message, metrics=dict(state.metrics or {}))
    trace = evidence.trace_of(state.traces, state.attempt)
    counted = state.view.jobset.restarts_counted if state.view and state.view.jobset else 0
    policy = state.plan.jobset.spec.failure_policy
    rule, action = ruled(policy, trace.failed, restarts_counted=counted, end=end)
    attempts = list(_attempts(turn, failed=True, named=end.first_failed_job))
    attempts[-1] = attempts[-1].model_copy(update={"rule": rule, "action": action})
    return draft(
        turn,
        end.verdict,
        end.reason,
        end.message,
        rule=rule,
        action=action,
        first_failed_job=end.first_failed_job,
        attempts=tuple(attempts),
        retryable=worth_a_retry(attempts[-1]),
    )


def _attempts(turn: Turn, *, failed: bool, named: str) -> tuple[Attempt, ...]:
    state = turn.state
    if state.uid == "" and not state.traces:
        return ()
    *before, last = evidence.attempts(
        state.traces, current=state.attempt, failed=failed, first_failed_job=named
    )
    return (*before, last.model_copy(update={"ended_at": last.ended_at or turn.now}))


def _restarts(turn: Turn) -> Restarts:
    state = turn.state
    policy = state.plan.jobset.spec.failure_policy
    jobset = state.view.jobset if state.view else None
    return Restarts(
        total=max(state.attempt, jobset.restarts if jobset else 0),
        counted=jobset.restarts_counted if jobset else 0,
        maximum=(policy.max_restarts or 0) if policy else None,
    )


def _started_at(record: Record | None) -> float | None:
    return record.started_at if record else None
