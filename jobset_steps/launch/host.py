"""Who may end a launcher, and what it means: a person at a terminal, or the pod it runs in.

A signal is turned into an EndRequest and nothing more; what becomes of the JobSet is the supervisor's to decide.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from jobset_steps.runner import Handle
from jobset_steps.supervisor.inputs import EndCause, EndRequest

__all__ = ["Host", "TerminalHost", "ending_on_signals"]


class Host(Protocol):
    """Where a launcher runs."""

    def why_ending(self) -> EndRequest:
        """Why a signal came. May take seconds: it may have to ask."""


class TerminalHost:
    """A person's shell, or a process of one: whoever ends it wants the training to end."""

    def why_ending(self) -> EndRequest:
        """See Host.why_ending."""
        return EndRequest(EndCause.CANCEL, "the process was told to end")


@contextmanager
def ending_on_signals(handle: Handle, host: Host) -> Iterator[None]:
    """While this lasts, SIGTERM and SIGINT ask the step to end. Only the main thread hears signals; in others: nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask() -> None:
        handle.end(host.why_ending())

    def heard(_signal: int, _frame: FrameType | None) -> None:
        # Asking may take seconds, and the loop must go on meanwhile.
        threading.Thread(target=ask, name="jobset-steps-why-ending", daemon=True).start()

    before = {number: signal.signal(number, heard) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
