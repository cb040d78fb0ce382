"""The report as Markdown: for a pull request, a notebook, or the report artifact of a pipeline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape

from jobset_steps.outcome import Attempt, Outcome, Verdict
from jobset_steps.report.advice import advice, headline, last_failure, worth_a_retry
from jobset_steps.report.causes import answer, ending, reason, restarts, who
from jobset_steps.report.explain import decision, failure, history, times
from jobset_steps.report.text import clean, duration, moment, plural, tail
from jobset_steps.report.timeline import STATES, Timeline, state, timeline

__all__ = ["markdown"]

_WIDTH = 48
_SHOWN = 60
_MARKS = {"succeeded": "✓", "failed": "✗", "counted": "✗", "free": "↻", "ended": "■", "missed": "?"}


def markdown(outcome: Outcome) -> str:
    """A complete document. Everything that came from outside is escaped; log lines are fenced."""
    title = outcome.step or outcome.jobset or "step"
    parts = [f"# {_escape(title)}: {outcome.verdict.value}", _summary(outcome)]
    drawn = timeline(outcome)
    if drawn and drawn.bars:
        parts += ["## Attempts", _fenced(_picture(drawn))]
    if outcome.attempts:
        parts += ([] if drawn and drawn.bars else ["## Attempts"]) + [_table(outcome)]
    if outcome.metrics:
        parts += ["## Metrics", _metrics(outcome)]
    failed = last_failure(outcome)
    said = tail(failed.cause.log_tail) if failed and failed.cause else []
    if failed and failed.cause and said and outcome.verdict is not Verdict.SUCCEEDED:
        parts += [f"## Last lines of {_escape(who(failed.cause))}, attempt {failed.number}", _fenced(said)]
    parts += ["## Facts", _facts(outcome)]
    return "\n\n".join(parts) + "\n"


def _summary(outcome: Outcome) -> str:
    why = f" Reason: {_escape(reason(outcome))}." if reason(outcome) else ""
    said = [f"**{headline(outcome)}**{why}"]
    if outcome.message:
        said.append("\n".join(f"> {_escape(part)}" for part in outcome.message.splitlines()))
    failed = last_failure(outcome)
    points = []
    if failed:
        points.append(
            ("Cause" if outcome.verdict is not Verdict.SUCCEEDED else "Last failure", failure(failed))
        )
    if outcome.verdict is not Verdict.SUCCEEDED:
        points += [("Decided by", decision(outcome)), ("Attempts", history(outcome))]
        points += [("Worth a retry", worth_a_retry(outcome)), ("What to do", advice(outcome))]
    elif outcome.leaked:
        points.append(("What to do", advice(outcome)))
    said.append("\n".join(f"- {label}: {_escape(text)}" for label, text in points if text))
    return "\n\n".join(part for part in said if part)


def _picture(drawn: Timeline) -> list[str]:
    """Attempts as bars of text on one time axis."""
    rows = [(stretch.kind, "░", stretch.begin, stretch.end, "") for stretch in drawn.stretches]
    skipped = len(drawn.bars) - _SHOWN
    for number, bar in enumerate(drawn.bars):
        if skipped > 0 and _SHOWN // 2 <= number < _SHOWN // 2 + skipped:
            if number == _SHOWN // 2:
                rows.append(("...", " ", 0.0, 0.0, plural(skipped, "attempt")))
            continue
        fill = "▒" if bar.guessed else "█"
        rows.append(
            (
                f"attempt {bar.attempt.number}",
                fill,
                bar.begin,
                bar.end,
                f"{_MARKS[bar.state]} {duration(bar.seconds)}",
            )
        )
    name = max(len(row[0]) for row in rows)
    said = []
    for label, fill, begin, end, note in rows:
        first = min(round(begin * _WIDTH), _WIDTH - 1)
        length = max(round(end * _WIDTH) - first, 1)
        said.append(f"{label:<{name}} {' ' * first}{fill * length}{' ' + note if note else ''}".rstrip())
    said.append(f"{'':<{name}} 0{duration(drawn.seconds):>{_WIDTH - 1}}")
    return said


def _table(outcome: Outcome) -> str:
    rows = ["| attempt | ended | first failure | answer |", "|---|---|---|---|"]
    middle = len(outcome.attempts) - _SHOWN
    for number, attempt in enumerate(outcome.attempts):
        if middle > 0 and _SHOWN // 2 <= number < _SHOWN // 2 + middle:
            if number == _SHOWN // 2:
                rows.append(f"| ... | {plural(middle, 'more attempt')} | | |")
            continue
        cells = (str(attempt.number), STATES[state(outcome, attempt)], _first(attempt), answer(attempt))
        rows.append(f"| {' | '.join(_escape(cell) for cell in cells)} |")
    return "\n".join(rows)


def _first(attempt: Attempt) -> str:
    cause = attempt.cause
    if cause is None:
        return ""
    return f"{who(cause)}: {ending(cause)}" + (f", on {clean(cause.node)}" if cause.node else "")


def _metrics(outcome: Outcome) -> str:
    rows = ["| metric | value |", "|---|---|"]
    for name, value in outcome.metrics.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        rows.append(f"| {_escape(clean(name))} | {_escape(clean(text))} |")
    return "\n".join(rows)


def _facts(outcome: Outcome) -> str:
    facts = [
        ("exit code", str(outcome.exit_code)),
        ("restarts", restarts(outcome.restarts)),
        ("time", times(outcome)),
        ("JobSet", f"{outcome.namespace}/{outcome.jobset}" if outcome.jobset else ""),
        ("run", outcome.run),
        ("step", outcome.step),
        ("slot", outcome.slot),
        ("generation", str(outcome.generation)),
        ("started", moment(outcome.started_at)),
        ("finished", moment(outcome.finished_at)),
        ("left behind", outcome.leaked),
    ]
    return "\n".join(
        ["| | |", "|---|---|", *(f"| {name} | {_escape(clean(text))} |" for name, text in facts if text)]
    )


def _escape(text: str) -> str:
    """Text as Markdown shows it literally: no HTML, no emphasis, no links."""
    plain = escape(clean(text.replace("\n", " ")), quote=False)
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", plain)


def _fenced(lines: Iterable[str]) -> str:
    text = "\n".join(lines)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
