"""A line for whoever watches a step. That nobody reads any more never ends a training."""

from __future__ import annotations

import contextlib
import os
from typing import TextIO

__all__ = ["give_up", "tell"]


def tell(line: str, stream: TextIO | None) -> None:
    """Write a line at once: what the stream cannot encode in escapes, and nothing where the stream is closed or full."""
    if stream is None:
        return
    try:
        try:
            print(line, file=stream, flush=True)
        except UnicodeEncodeError:
            print(line.encode("ascii", "backslashreplace").decode(), file=stream, flush=True)
    except BrokenPipeError:
        give_up(stream)
    except (OSError, ValueError):
        pass


def give_up(stream: TextIO) -> None:
    """Nobody reads this stream any more: what it still holds, which is written at exit, goes nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
