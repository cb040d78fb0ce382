"""How long each stretch of a step may last before the step gives up. All four are finite by default.

Seconds are counted as spent, not as a deadline: the queue budget counts only while the JobSet is suspended or not
admitted, the start-up budget is counted anew for each attempt, the run budget pauses while suspended.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

__all__ = ["Budgets", "Seconds", "parse_duration"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def parse_duration(value: Any) -> float:
    """Seconds of a duration given as a number of seconds or as text like "90m", "1h30m" or "2d".

    Raises ValueError with the forms that pass.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and _DURATION.fullmatch(value.strip()):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(value))
    else:
        raise ValueError(f'a duration is seconds or text like "90m", "1h30m", "2d"; {value!r} given')
    if not 0 < seconds < float("inf"):
        raise ValueError(f"a duration is greater than zero and finite; {value!r} given")
    return seconds


Seconds = Annotated[float, BeforeValidator(parse_duration), PlainSerializer(lambda seconds: f"{seconds:g}s")]


class Budgets(BaseModel):
    """Limits of a step. Each takes seconds or text such as "12h"."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    queue: Seconds = 86400.0
    """Suspended, or waiting for Kueue's admission; summed over evictions. Default one day."""
    startup: Seconds = 1800.0
    """Per attempt: a pod that should exist by now is neither ready nor finished. Default 30 minutes."""
    run: Seconds = 604800.0
    """Running, summed over attempts, paused while suspended. Default seven days."""
    outage: Seconds = 3600.0
    """The API server cannot be reached. Default one hour. The JobSet is left running."""
