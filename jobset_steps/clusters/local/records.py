"""Records as files: one an identity, changed by compare-and-swap, never read half-written.

A file holds its version in the first line and the Record's text after it. Writers of all processes exclude each other by
a lock file; a new file takes the old one's place by rename, so that a crash leaves one or the other.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobset_steps.clusters import Stored
from jobset_steps.errors import ApiError

__all__ = ["Records"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


class Records:
    """The Records in one directory, which is made when the first one is saved."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self, digest: str) -> Stored | None:
        """The Record of an identity, None if there is none. Raises ApiError unavailable if it cannot be read."""
        path = self._path(digest)
        try:
            version, _, text = path.read_text(encoding="utf-8").partition("\n")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise ApiError("unavailable", f"{path}: {error}") from error
        if not version.isdigit():
            raise ApiError("unavailable", f"{path}: not a Record: it does not begin with a version")
        return Stored(text, version)

    def save(self, digest: str, text: str, version: str) -> str:
        """Write it if it is at `version` ("": if there is none) and return the new version. Raises ApiError."""
        path = self._path(digest)
        try:
            with self._locked():
                stored = self.load(digest)
                current = stored.version if stored is not None else ""
                if current != version:
                    raise ApiError(
                        "conflict", f"{path}: is at version {current or 'none'}, not {version or 'none'}"
                    )
                new = str(int(current or 0) + 1)
                self._replace(path, f"{new}\n{text}")
        except OSError as error:
            raise ApiError("unavailable", f"{path}: {error}") from error
        return new

    def _path(self, digest: str) -> Path:
        if not _NAME.fullmatch(digest):
            raise ApiError("invalid", f"not a Record's name: {digest!r}")
        return self._directory / digest

    def _replace(self, path: Path, content: str) -> None:
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        with draft.open("w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._directory.mkdir(parents=True, exist_ok=True)
        with (self._directory / ".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
