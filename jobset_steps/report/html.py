"""The report as one HTML page: nothing is loaded, nothing runs, and whatever the training printed is only text in it.

It reads on a phone and on a wide screen, in light and dark, and a screen reader gets the picture in words.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from jobset_steps.outcome import Attempt, Outcome, Verdict
from jobset_steps.report.advice import advice, headline, last_failure, worth_a_retry
from jobset_steps.report.causes import alike, answer, ending, reason, restarts, sense, who
from jobset_steps.report.explain import decision, failure, history, times
from jobset_steps.report.svg import bar, strip
from jobset_steps.report.text import clean, duration, moment, tail
from jobset_steps.report.timeline import STATES, Timeline, state, timeline

__all__ = ["html"]

_STYLE = Path(__file__).with_name("page.css")
_TONE = {Verdict.SUCCEEDED: "good", Verdict.UNKNOWN: "open", Verdict.CANCELLED: "open"}
_ALIKE = 3
"""So many neighbours that ended alike are shown one by one; more are folded."""


def html(outcome: Outcome) -> str:
    """A complete page. It forbids scripts and anything from outside by its own content security policy."""
    name = _text(outcome.step or outcome.jobset or "Training step")
    drawn = timeline(outcome)
    body = [_head(outcome, name), _why(outcome)]
    if outcome.attempts or drawn:
        body.append(
            f"<section><h2>Attempts</h2>{_picture(outcome, drawn)}{_attempts(outcome, drawn)}</section>"
        )
    body += [_last_lines(outcome), _metrics(outcome), _facts(outcome)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{name}: {outcome.verdict.value}</title>\n<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n</head>\n"
        "<body>\n<main>\n" + "\n".join(part for part in body if part) + "\n</main>\n</body>\n</html>\n"
    )


def _text(value: object) -> str:
    return escape(clean(str(value).replace("\n", " ")))


def _head(outcome: Outcome, name: str) -> str:
    tone = _TONE.get(outcome.verdict, "bad")
    why = f' <span class="reason">{_text(reason(outcome))}</span>' if reason(outcome) else ""
    figures = [
        ("restarts", str(outcome.restarts.total)),
        ("queued", duration(outcome.seconds.queued)),
        ("starting", duration(outcome.seconds.starting)),
        ("running", duration(outcome.seconds.running)),
        ("exit code", str(outcome.exit_code)),
    ]
    cells = "".join(f"<div><dt>{label}</dt><dd>{_text(value)}</dd></div>" for label, value in figures)
    return (
        f'<header><p class="name">{name}</p><h1><span class="verdict {tone}">{outcome.verdict.value}</span>{why}</h1>'
        f'<p class="headline">{_text(headline(outcome))}</p><dl class="figures">{cells}</dl></header>'
    )


def _why(outcome: Outcome) -> str:
    failed = last_failure(outcome)
    bad = outcome.verdict is not Verdict.SUCCEEDED
    rows = [("Message", outcome.message)]
    if failed:
        rows.append(("Cause" if bad else "Last failure", failure(failed)))
    if bad:
        rows += [("Decided by", decision(outcome)), ("Restarts", restarts(outcome.restarts))]
        rows += [("In all", history(outcome)), ("Worth a retry", worth_a_retry(outcome))]
    if bad or outcome.leaked:
        rows.append(("What to do", advice(outcome)))
    said = "".join(
        f"<div{_todo(label)}><dt>{label}</dt><dd>{_text(value) if label == 'Message' else _sentence(value)}</dd></div>"
        for label, value in rows
        if value
    )
    return f'<section><h2>What happened</h2><dl class="rows">{said}</dl></section>' if said else ""


def _todo(label: str) -> str:
    return ' class="todo"' if label == "What to do" else ""


def _sentence(value: str) -> str:
    return _text(value[:1].upper() + value[1:])


def _picture(outcome: Outcome, drawn: Timeline | None) -> str:
    if drawn is None:
        return ""
    describe = {each.attempt.number: _describe(outcome, each.attempt) for each in drawn.bars}
    seen = dict.fromkeys([s.kind for s in drawn.stretches] + [b.state for b in drawn.bars])
    words = {"queued": "queued", "starting": "starting", **STATES}
    key = "".join(f'<li><span class="swatch {kind}"></span>{words[kind]}</li>' for kind in seen)
    return f'<figure>{strip(drawn, describe)}<figcaption><ul class="key">{key}</ul></figcaption></figure>'


def _describe(outcome: Outcome, attempt: Attempt) -> str:
    said = f"Attempt {attempt.number}: {STATES[state(outcome, attempt)]}"
    if attempt.cause:
        said += f", {who(attempt.cause)} {ending(attempt.cause)}"
    return clean(said + (f", {answer(attempt)}" if answer(attempt) else ""))


def _attempts(outcome: Outcome, drawn: Timeline | None) -> str:
    bars = {each.attempt.number: (bar(drawn, each), each.seconds) for each in drawn.bars} if drawn else {}
    said = []
    for group in alike(outcome):
        rows = [_attempt(outcome, attempt, *bars.get(attempt.number, ("", 0.0))) for attempt in group]
        if len(rows) <= _ALIKE:
            said += rows
            continue
        first, last = group[1].number, group[-1].number
        said.append(rows[0])
        said.append(
            f'<li class="fold"><details><summary>{len(rows) - 1} more that ended the same way '
            f"(attempts {first} to {last})</summary><ol>{''.join(rows[1:])}</ol></details></li>"
        )
    return f'<ol class="attempts">{"".join(said)}</ol>' if said else ""


def _attempt(outcome: Outcome, attempt: Attempt, picture: str, seconds: float) -> str:
    how = state(outcome, attempt)
    lasted = f' <span class="lasted">{duration(seconds)}</span>' if picture else ""
    named = f'<span class="swatch {how}"></span>Attempt {attempt.number}: {STATES[how]}'
    said = [
        f'<p class="title"><span>{named}</span>{lasted}</p>',
        picture,
    ]
    cause = attempt.cause
    if cause:
        why = f' <span class="sense">{_text(sense(cause))}</span>' if sense(cause) else ""
        node = f" on {_text(cause.node)}" if cause.node else ""
        said.append(f"<p><code>{_text(who(cause))}</code>{node}: <b>{_text(ending(cause))}</b>{why}</p>")
    if answer(attempt):
        said.append(f'<p class="answer">{_text(answer(attempt))}</p>')
    shown = tail(cause.log_tail) if cause else []
    if shown and not (attempt is last_failure(outcome) and _last_lines(outcome)):
        said.append(f"<details><summary>Last lines</summary>{_pre(shown)}</details>")
    return f"<li>{''.join(said)}</li>"


def _pre(shown: list[str]) -> str:
    return f'<pre tabindex="0">{escape(chr(10).join(shown))}</pre>'


def _last_lines(outcome: Outcome) -> str:
    failed = last_failure(outcome)
    shown = tail(failed.cause.log_tail) if failed and failed.cause else []
    if not (failed and failed.cause and shown) or outcome.verdict is Verdict.SUCCEEDED:
        return ""
    title = f"Last lines of {_text(who(failed.cause))}, attempt {failed.number}"
    return f"<section><h2>{title}</h2>{_pre(shown)}</section>"


def _metrics(outcome: Outcome) -> str:
    if not outcome.metrics:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{_text(name)}</th>'
        f"<td>{_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))}</td></tr>"
        for name, value in outcome.metrics.items()
    )
    return f"<section><h2>Metrics</h2><table>{rows}</table></section>"


def _facts(outcome: Outcome) -> str:
    facts = [
        ("JobSet", f"{outcome.namespace}/{outcome.jobset}" if outcome.jobset else ""),
        ("Run", outcome.run),
        ("Step", outcome.step),
        ("Slot", outcome.slot),
        ("Generation", outcome.generation),
        ("Restarts", restarts(outcome.restarts)),
        ("Time", times(outcome)),
        ("Started", moment(outcome.started_at)),
        ("Finished", moment(outcome.finished_at)),
        ("Left behind", outcome.leaked),
    ]
    rows = "".join(
        f'<tr><th scope="row">{label}</th><td>{_text(value)}</td></tr>' for label, value in facts if value
    )
    return f"<section><h2>Facts</h2><table>{rows}</table></section>"
