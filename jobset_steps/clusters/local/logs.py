"""Container logs on disk: the last lines of one, and the leader's, followed attempt after attempt.

Containers write their files themselves; here they are only read. Text is UTF-8, what is not is replaced.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["JOBSETS", "Follower", "last_bytes", "last_lines", "log_path", "log_tail_message"]

JOBSETS = "jobsets"
"""The directory of the JobSets' own files, beside those of records and volumes."""

_LOOK = 0.1
"""Seconds between two looks at a followed file."""

_BLOCK = 1 << 16
_MOST = 4 * _BLOCK
_MESSAGE_LINES, _MESSAGE_BYTES = 80, 2048
"""What the kubelet takes of a log as termination message."""


def log_path(root: Path, jobset: str, attempt: int, pod: str, container: str) -> Path:
    """Where a container's log is."""
    return root / JOBSETS / jobset / "logs" / f"attempt-{attempt}" / f"{pod}.{container}.log"


def last_lines(path: Path, count: int, *, start: int = 0) -> tuple[str, ...]:
    """The last lines of a file, from byte `start` on, without their ends. Reads no more of it than it needs to, and never
    more than its last 256 KiB: of a line without end, that is its end.
    """
    if count <= 0:
        return ()
    with path.open("rb") as file:
        position = file.seek(0, 2)
        start = max(start, position - _MOST)
        data = b""
        while position > start and data.count(b"\n") <= count:
            step = min(_BLOCK, position - start)
            position -= step
            file.seek(position)
            data = file.read(step) + data
    lines = data.decode("utf-8", "replace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return tuple(line.removesuffix("\r") for line in lines[-count:])


def last_bytes(path: Path, count: int) -> str:
    """The last bytes of a file as text, "" if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - count))
            return file.read(count).decode("utf-8", "replace")
    except OSError:
        return ""


def log_tail_message(path: Path, start: int) -> str:
    """What FallbackToLogsOnError makes of a log that begins at byte `start`: 80 lines and 2,048 bytes at most."""
    try:
        text = "\n".join(last_lines(path, _MESSAGE_LINES, start=start))
    except OSError:
        return ""
    return text.encode()[-_MESSAGE_BYTES:].decode("utf-8", "ignore")


class Follower:
    """Writes the lines of files that come one after another, each until the next one is there. A line of more than 64 KiB
    comes in pieces.
    """

    def __init__(self, files: Callable[[], Sequence[Path]], write: Callable[[str], None]) -> None:
        self._files, self._write = files, write
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jobset-steps-follow", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Write what is there by now, then stop."""
        self._closed.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        for turn in range(1_000_000):
            path = self._wait_for(turn)
            if path is None or not self._follow(path, turn):
                return

    def _wait_for(self, turn: int) -> Path | None:
        while True:
            # Looked at before the files: what was there when it was closed is still written.
            closed = self._closed.is_set()
            files = self._files()
            if len(files) > turn:
                return files[turn]
            if closed:
                return None
            self._closed.wait(_LOOK)

    def _follow(self, path: Path, turn: int) -> bool:
        """Whether there may be another file."""
        position, rest = 0, b""
        while True:
            over = self._closed.is_set() or len(self._files()) > turn + 1
            try:
                with path.open("rb") as file:
                    file.seek(position)
                    while block := file.read(_BLOCK):
                        position += len(block)
                        *lines, rest = (rest + block).split(b"\n")
                        if len(rest) > _BLOCK:
                            lines, rest = [*lines, rest], b""
                        for line in lines:
                            self._write(line.decode("utf-8", "replace"))
            except OSError:
                pass  # Not made yet, or removed: there is nothing to read.
            if over:
                if rest:
                    self._write(rest.decode("utf-8", "replace"))
                return True
            self._closed.wait(_LOOK)
