"""Text that is safe to show: durations, moments, and log lines without what a terminal would act on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

__all__ = ["clean", "duration", "moment", "plural", "tail"]

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC and other strings: titles, links
    r"|\x1b[ -/]*[0-~]"  # all else that ESC opens
)
# Control characters but not the tab; marks that turn the direction of what follows; halves of a surrogate pair.
_UNSAFE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(text: str) -> str:
    """One line as a person would have seen it: no escape sequences, of a progress bar only its last state."""
    visible = _ESCAPES.sub("", text.rstrip("\r\n"))
    return _UNSAFE.sub("", visible.rsplit("\r", 1)[-1]).rstrip()


def tail(lines: Iterable[str], limit: int = 20) -> list[str]:
    """The last `limit` lines, cleaned; a line that holds line feeds counts as several."""
    split = [clean(part) for line in lines for part in line.split("\n")]
    while split and not split[-1]:
        split.pop()
    return split[-limit:]


def duration(seconds: float) -> str:
    """Seconds as "0.4 s", "42 s", "3 min 5 s", "2 h 10 min" or "3 d 4 h"."""
    if 0 < seconds < 1:
        return f"{seconds:.1f} s"
    whole = round(max(seconds, 0))
    if whole < 60:
        return f"{whole} s"
    for size, unit, smaller, small_unit in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit} {rest} {small_unit}" if rest else f"{whole // size} {unit}"
    raise AssertionError("unreachable")


def moment(at: float | None) -> str:
    """POSIX seconds as "2026-08-18 14:03:07 UTC", or "" for None."""
    return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def plural(count: int, one: str, many: str = "") -> str:
    """A count with its noun: 1 restart, 2 restarts."""
    return f"{count} {one if count == 1 else many or one + 's'}"
