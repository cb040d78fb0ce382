"""Where each attempt lies in the step's time, as fractions from 0 to 1: what every picture is drawn from.

It lays out what the Outcome says and marks what it had to guess (an attempt that nobody saw begin or end).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jobset_steps.outcome import Attempt, Outcome, Verdict

__all__ = ["STATES", "Bar", "Stretch", "Timeline", "state", "timeline"]

STATES = {
    "succeeded": "ended well",
    "failed": "failed and ended the training",
    "counted": "failed, restart counted",
    "free": "failed, restart free",
    "ended": "ended with the step",
    "missed": "nobody saw it",
}
"""How an attempt ended -> in words."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Waiting before the first attempt: "queued" or "starting"."""

    kind: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One attempt. `guessed` where its begin or end was not seen."""

    attempt: Attempt
    state: str
    begin: float
    end: float
    seconds: float
    guessed: bool


@dataclass(frozen=True, slots=True)
class Timeline:
    """`seconds` is the length of the whole, `began` its POSIX second."""

    began: float
    seconds: float
    stretches: tuple[Stretch, ...]
    bars: tuple[Bar, ...]


def state(outcome: Outcome, attempt: Attempt) -> str:
    """How an attempt ended; a key of STATES."""
    if attempt.missed:
        return "missed"
    last = attempt is outcome.attempts[-1]
    if attempt.cause is None and not attempt.action:
        return "succeeded" if last and outcome.verdict is Verdict.SUCCEEDED else "ended"
    if attempt.action == "FailJobSet" or (last and outcome.verdict is Verdict.FAILED):
        return "failed"
    return "counted" if attempt.counted else "free"


def timeline(outcome: Outcome) -> Timeline | None:
    """The layout, or None where the Outcome holds no times to draw."""
    starts = [a.started_at for a in outcome.attempts if a.started_at is not None]
    ends = [a.ended_at for a in outcome.attempts if a.ended_at is not None]
    first = [outcome.started_at] if outcome.started_at is not None else []
    last = [outcome.finished_at] if outcome.finished_at is not None else []
    known = first + starts + ends + last
    if not known or max(known) <= min(known):
        return None
    began, total = min(known), max(known) - min(known)

    def at(moment: float) -> float:
        return min(max((moment - began) / total, 0.0), 1.0)

    ready = min(starts) if starts else max(known)
    queued = min(began + outcome.seconds.queued, ready)
    stretches = [Stretch("queued", at(began), at(queued))] if queued > began else []
    if ready > queued:
        stretches.append(Stretch("starting", at(queued), at(ready)))
    return Timeline(began, total, tuple(stretches), _bars(outcome, ready, max(known), at))


def _bars(outcome: Outcome, ready: float, end: float, at: Callable[[float], float]) -> tuple[Bar, ...]:
    bars = []
    previous = ready
    for number, attempt in enumerate(outcome.attempts):
        later = [a.started_at for a in outcome.attempts[number + 1 :] if a.started_at is not None]
        begin = attempt.started_at if attempt.started_at is not None else previous
        stop = attempt.ended_at if attempt.ended_at is not None else max(begin, later[0] if later else end)
        guessed = attempt.started_at is None or attempt.ended_at is None
        bars.append(
            Bar(attempt, state(outcome, attempt), at(begin), at(stop), max(stop - begin, 0.0), guessed)
        )
        previous = stop
    return tuple(bars)
