"""SIGTERM as training code meets it: a checkpoint that is being written is finished, then the process exits 143.

A preempted or evicted pod gets SIGTERM and, after its grace period, SIGKILL. A process that swallows the first and exits
0 tells JobSet that the training succeeded; what is here never ends that way.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

__all__ = ["EXIT_CODE", "Terminated", "Termination", "terminating"]

EXIT_CODE = 143
"""128 + SIGTERM, what a shell and the kubelet call a process that SIGTERM ended."""


class Terminated(SystemExit):
    """SIGTERM came. Left alone it ends the process with 143; catch it to save a last checkpoint, then raise it again."""

    def __init__(self) -> None:
        super().__init__(EXIT_CODE)


class Termination:
    """SIGTERM raises Terminated in the main thread, but not inside `finishing()`: there it waits for the block's end.

    Use it as a context manager in the main thread. Leaving it after a SIGTERM raises Terminated, also where the code
    inside caught the first one, so that the exit code is never 0.
    """

    def __init__(self) -> None:
        self.requested = False
        self._held = 0
        self._lock = threading.Lock()
        self._before: Any = None

    def __enter__(self) -> Termination:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("terminating(): only the main thread can handle signals; enter it there")
        self._before = signal.signal(signal.SIGTERM, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if self._before is None else self._before)
        if self.requested and (kind is None or (isinstance(error, SystemExit) and not error.code)):
            raise Terminated

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Nothing inside is interrupted by SIGTERM; one that came meanwhile takes effect at the end.

        Keep what is inside shorter than the pod's terminationGracePeriodSeconds (30 s unless set). Blocks nest, and
        other threads may hold them too.
        """
        with self._lock:
            self._held += 1
        try:
            yield
        finally:
            with self._lock:
                self._held -= 1
                due = self.requested and self._held == 0
            if due and threading.current_thread() is not threading.main_thread():
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        if due and threading.current_thread() is threading.main_thread():
            raise Terminated

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # No lock here: the handler runs between two bytecodes of the main thread, which may hold it.
        self.requested = True
        if self._held == 0:
            raise Terminated


def terminating() -> Termination:
    """`with terminating() as termination: ...`; see Termination."""
    return Termination()
