"""The attempts as inline SVG: one strip for the whole step, and one bar for each attempt on the same time axis.

Positions are percentages and text keeps its size, so that the picture is as readable on a phone as on a wide screen.
Colours are classes; the page that holds the picture says what they are in light and dark.
"""

from __future__ import annotations

from html import escape

from jobset_steps.report.text import duration
from jobset_steps.report.timeline import STATES, Bar, Timeline

__all__ = ["bar", "strip"]

_STRIP = 34
_AXIS = 18


def strip(drawn: Timeline, describe: dict[int, str]) -> str:
    """The whole step in one line; `describe` has a sentence for each attempt number, shown when pointed at."""
    whole = duration(drawn.seconds)
    said = ". ".join(f"{stretch.kind} until {_percent(stretch.end)}" for stretch in drawn.stretches)
    attempts = f"{len(drawn.bars)} attempt{'' if len(drawn.bars) == 1 else 's'}"
    body = [f'<rect class="track" x="0" y="6" width="100%" height="{_STRIP - 12}" rx="3"/>']
    for stretch in drawn.stretches:
        width = _percent(stretch.end - stretch.begin)
        body.append(
            f'<rect class="{stretch.kind}" x="{_percent(stretch.begin)}" y="6" width="{width}" '
            f'height="{_STRIP - 12}" rx="3"><title>{stretch.kind}</title></rect>'
        )
        if stretch.end - stretch.begin > 0.2:
            body.append(
                f'<text x="{_percent(stretch.begin)}" dx="8" y="{_STRIP // 2 + 4}">{stretch.kind}</text>'
            )
    for each in drawn.bars:
        body.append(_rect(each, 2, _STRIP - 4, describe.get(each.attempt.number, "")))
        if each.end - each.begin > 0.06:
            middle = _percent((each.begin + each.end) / 2)
            body.append(
                f'<text class="on" x="{middle}" y="{_STRIP // 2 + 4}" text-anchor="middle">{each.attempt.number}</text>'
            )
    low = _STRIP + _AXIS - 4
    body.append(f'<line class="axis" x1="0" x2="100%" y1="{_STRIP + 2}" y2="{_STRIP + 2}"/>')
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        label = duration(drawn.seconds * share) if share else "0"
        body.append(
            f'<text class="tick" x="{_percent(share)}" y="{low}" text-anchor="{anchor}">{label}</text>'
        )
    return (
        f'<svg class="strip" role="img" width="100%" height="{_STRIP + _AXIS}" aria-labelledby="strip-title strip-desc">'
        f'<title id="strip-title">{attempts} over {whole}</title><desc id="strip-desc">{escape(said)}. '
        f"{escape('. '.join(describe.values()))}</desc>{''.join(body)}</svg>"
    )


def bar(drawn: Timeline, each: Bar) -> str:
    """One attempt on the time axis of the whole step. Its row says the same in words, so it is hidden from readers."""
    return (
        '<svg class="bar" aria-hidden="true" width="100%" height="12">'
        '<rect class="track" x="0" y="4" width="100%" height="4" rx="2"/>'
        f"{_rect(each, 1, 10, '')}</svg>"
    )


def _rect(each: Bar, top: int, height: int, title: str) -> str:
    # At least three thousandths wide, or a short attempt would not be seen at all.
    width = max(each.end - each.begin, 0.003)
    begin = min(each.begin, 1 - width)
    guessed = " guessed" if each.guessed else ""
    hint = f"<title>{escape(title or STATES[each.state])}</title>"
    return (
        f'<rect class="{each.state}{guessed}" x="{_percent(begin)}" y="{top}" width="{_percent(width)}" '
        f'height="{height}" rx="2">{hint}</rect>'
    )


def _percent(share: float) -> str:
    return f"{share * 100:.3f}".rstrip("0").rstrip(".") + "%"
