"""What happened, in the words of someone who was there: how it ended, why, who decided, and what to do now."""

from __future__ import annotations

from jobset_steps.outcome import Attempt, Outcome, Verdict
from jobset_steps.report.advice import advice, headline, last_failure, worth_a_retry
from jobset_steps.report.causes import ending, reason, restarts, sense, who
from jobset_steps.report.text import clean, duration, tail

__all__ = ["decision", "explain", "failure", "history", "times"]


def explain(outcome: Outcome) -> str:
    """Paragraphs with a label each; the last log lines of the pod that failed last come at the end."""
    why = f" ({reason(outcome)})" if reason(outcome) else ""
    parts = [("Verdict", f"{outcome.verdict.value}{why}. {headline(outcome)}")]
    if outcome.message:
        parts.append(("Message", clean(outcome.message.replace("\n", " "))))
    failed = last_failure(outcome)
    ended_badly = outcome.verdict is not Verdict.SUCCEEDED
    if failed:
        parts.append(("Cause" if ended_badly else "Last failure", failure(failed)))
    if ended_badly and decision(outcome):
        parts.append(("Decided by", decision(outcome)))
    parts.append(("Restarts", restarts(outcome.restarts)))
    if history(outcome):
        parts.append(("Attempts", history(outcome)))
    parts.append(("Time", times(outcome)))
    if ended_badly:
        parts.append(("Worth a retry", worth_a_retry(outcome)))
        parts.append(("What to do", advice(outcome)))
    elif outcome.leaked:
        parts.append(("What to do", advice(outcome)))
    text = "\n".join(f"{label + ':':<15}{said}" for label, said in parts)
    lines = tail(failed.cause.log_tail) if failed and failed.cause and ended_badly else []
    if failed and failed.cause and lines:
        text += f"\n\nLast lines of {who(failed.cause)}:\n" + "\n".join(
            f"  {line}".rstrip() for line in lines
        )
    return text + "\n"


def failure(attempt: Attempt) -> str:
    """The pod that failed first in an attempt, how, and what that means."""
    cause = attempt.cause
    if cause is None:
        return ""
    where = f" on node {clean(cause.node)}" if cause.node else ""
    container = f", container {clean(cause.container)}" if cause.container else ""
    said = f"in attempt {attempt.number}, {who(cause)}{container}{where} failed first: {ending(cause)}"
    if sense(cause):
        said += f" ({sense(cause)})"
    if cause.disrupted:
        said += "; the node or the scheduler took it away, it is not the training's fault"
    if cause.message and cause.message != cause.reason:
        said += f". {clean(cause.message.splitlines()[-1])}"
    return said


def decision(outcome: Outcome) -> str:
    """Which rule of the failure policy decided, and what it did; "" where none did."""
    if not outcome.action:
        return ""
    by = (
        f"failure-policy rule {outcome.rule}"
        if outcome.rule
        else "the default action, no failure-policy rule matched"
    )
    if outcome.reason == "ReachedMaxRestarts":
        return f"{by}: {outcome.action}, but all {outcome.restarts.maximum} counted restarts were used"
    return f"{by}: {outcome.action}"


def history(outcome: Outcome) -> str:
    """The attempts in one sentence, where there was more than one."""
    seen = [attempt for attempt in outcome.attempts if attempt.cause is not None]
    missed = sum(attempt.missed for attempt in outcome.attempts)
    said = []
    if len(seen) > 1:
        causes = [attempt.cause for attempt in seen if attempt.cause]
        places = {(cause.replicated_job, cause.job_index, cause.index) for cause in causes}
        ways = {ending(cause) for cause in causes}
        if len(ways) == 1 and len(places) == 1:
            said.append(f"the same pod failed in the same way in all {len(seen)} that failed")
        elif len(ways) == 1:
            said.append(f"all {len(seen)} that failed ended in the same way, in {len(places)} different pods")
        else:
            said.append(f"{len(seen)} failed, in {len(ways)} different ways")
    if missed:
        said.append(f"{missed} passed while no launcher lived to see it")
    return "; ".join(said)


def times(outcome: Outcome) -> str:
    """Where the seconds went."""
    spent = outcome.seconds
    said = f"queued {duration(spent.queued)}, starting {duration(spent.starting)}, running {duration(spent.running)}"
    return said + (f", API out of reach {duration(spent.outage)}" if spent.outage else "")
