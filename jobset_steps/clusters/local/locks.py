"""Which process of this machine runs which JobSet: a locked file each, so that two never run one under the same root.

A lock is given back by the kernel when its process ends, however it ends; what such a process left behind is removed by the
next local cluster.
"""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from typing import TextIO

from jobset_steps.clusters.local.logs import JOBSETS
from jobset_steps.errors import ApiError

__all__ = ["Locks"]


class Locks:
    """The JobSets that this cluster runs, and whether somebody else runs one."""

    def __init__(self, root: Path) -> None:
        self._directory = root / JOBSETS
        self._held: dict[str, TextIO] = {}

    def take(self, name: str) -> None:
        """Run it here. Raises ApiError exists where another process does, unavailable where no file can be made."""
        try:
            (self._directory / name).mkdir(parents=True, exist_ok=True)
            lock = self._file(name).open("a")
        except OSError as error:
            raise ApiError("unavailable", str(error)) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise ApiError("exists", f"JobSet {name} is run by another process of this machine") from None
        self._held[name] = lock

    def give_back(self, name: str) -> None:
        """It is not run here any more."""
        if (lock := self._held.pop(name, None)) is not None:
            lock.close()

    def close(self) -> None:
        """Give all back."""
        for name in list(self._held):
            self.give_back(name)

    def held_elsewhere(self, name: str) -> bool:
        """Whether another cluster runs it."""
        if name in self._held:
            return False
        try:
            with self._file(name).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def sweep(self) -> None:
        """Remove the directories of pods whose cluster was killed."""
        for pods in self._directory.glob("*/pods"):
            if not self.held_elsewhere(pods.parent.name):
                shutil.rmtree(pods, ignore_errors=True)

    def _file(self, name: str) -> Path:
        return self._directory / name / "lock"
