"""A few plain lines for a terminal or a log: the verdict, the attempts, where the time went, what to do."""

from __future__ import annotations

from jobset_steps.outcome import Attempt, Outcome, Verdict
from jobset_steps.report.advice import advice, last_failure
from jobset_steps.report.causes import alike, answer, ending, reason, restarts, who
from jobset_steps.report.explain import times
from jobset_steps.report.text import clean, duration, plural, tail
from jobset_steps.report.timeline import STATES, state

__all__ = ["lines"]

_TAIL = 5


def lines(outcome: Outcome) -> list[str]:
    """At most about thirty lines without colour: attempts in a row that ended alike are one line."""
    why = f": {reason(outcome)}" if reason(outcome) else ""
    named = f"  {outcome.namespace}/{outcome.jobset}" if outcome.jobset else ""
    said = [f"{outcome.verdict.value}{why}, exit code {outcome.exit_code}{named}"]
    if outcome.message and outcome.verdict is not Verdict.SUCCEEDED:
        said.extend(f"  {clean(part)}" for part in outcome.message.splitlines())
    groups = alike(outcome)
    if len(groups) > 12:
        hidden = sum(len(group) for group in groups[5:-5])
        shown = [_group(outcome, group) for group in groups]
        said += [*shown[:5], f"  ... {plural(hidden, 'more attempt')} ...", *shown[-5:]]
    else:
        said += [_group(outcome, group) for group in groups]
    said.append(f"  restarts: {restarts(outcome.restarts)}")
    said.append(f"  time: {times(outcome)}")
    if outcome.metrics:
        said.append(
            "  metrics: " + ", ".join(f"{clean(k)} {clean(str(v))}" for k, v in outcome.metrics.items())
        )
    failed = last_failure(outcome)
    if outcome.verdict is not Verdict.SUCCEEDED and failed and failed.cause and failed.cause.log_tail:
        said.append(f"  last lines of {who(failed.cause)}:")
        said.extend(f"    {line}".rstrip() for line in tail(failed.cause.log_tail, _TAIL))
    if outcome.verdict is not Verdict.SUCCEEDED or outcome.leaked:
        said.append(f"  what to do: {advice(outcome)}")
    return said


def _group(outcome: Outcome, group: list[Attempt]) -> str:
    first, last = group[0], group[-1]
    name = f"attempt {first.number}" if first is last else f"attempts {first.number} to {last.number}"
    seconds = sum(
        a.ended_at - a.started_at for a in group if a.ended_at is not None and a.started_at is not None
    )
    lasted = f" ({duration(seconds)}{'' if first is last else ' in all'})" if seconds else ""
    if first.cause is None:
        return f"  {name}{lasted}: {STATES[state(outcome, last)]}"
    reply = f" -> {answer(last)}" if answer(last) else ""
    return f"  {name}{lasted}: {who(first.cause)} {ending(first.cause)}{reply}"
