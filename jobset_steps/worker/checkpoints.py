"""Checkpoints of which none is ever half there: written beside their place, synced, then renamed into it.

A name that can be read is complete: a process killed in the middle of a write leaves only a name that is never chosen.
It needs a directory whose renames are atomic (a local disk, NFS, a PVC), and says so for an object URI.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from jobset_steps.errors import BadInput
from jobset_steps.worker.context import Context, context

__all__ = ["Checkpoint", "Checkpoints", "newest_complete_checkpoint"]

_COMPLETE = re.compile(r"checkpoint-(\d{10,})")
# .partial-<step>.<owner>.<attempt>.<token>; an owner (JobSet name) holds no dot
_PARTIAL = re.compile(r"\.partial-(\d+)\.([^.]*)\.(\d+)\.[^.]+")
_DOOMED = ".deleted-"


class Checkpoint(NamedTuple):
    """One complete checkpoint: the training step (round, epoch, ...) after which it was made, and its path."""

    step: int
    path: Path


def newest_complete_checkpoint(
    directory: str | os.PathLike[str], is_complete: Callable[[Path], bool] | None = None
) -> Checkpoint | None:
    """The complete checkpoint with the highest step in `directory`, or None where there is none yet.

    `is_complete` may refuse one that a framework cannot load; then the next older is looked at. Each process that asks
    while others write may get another answer: let the leader ask and tell the rest.
    """
    for found in reversed(_complete(Path(directory))):
        if is_complete is None or is_complete(found.path):
            return found
    return None


class Checkpoints:
    """The checkpoints of one training, in one directory that all its attempts and retries share.

    One process writes one with `save` or `writing`; where every rank writes its own shard, all write into
    `shared(step)` and, after a barrier, the leader calls `publish(step)`. At most `keep` complete ones stay.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None, *, keep: int = 3) -> None:
        here: Context | None = None
        if directory is None:
            here = context()
            directory = here.checkpoint_dir
            if not directory:
                raise BadInput(
                    "checkpoints: JOBSET_STEPS_CHECKPOINT_DIR is not set; give the recipe "
                    'checkpoints="pvc://claim/path", or name a directory here'
                )
        text = os.fspath(directory)
        if "://" in text:
            raise BadInput(
                f"checkpoints: {text} is an object URI, where a rename is a copy and nothing is atomic; write it "
                'with your framework\'s own store, or mount a volume (checkpoints="pvc://claim/path")'
            )
        if keep < 1:
            raise BadInput(f"checkpoints: keep at least 1, {keep} given")
        self.directory = Path(text)
        self.keep = keep
        self._owner = re.sub(r"[^\w-]", "-", here.jobset if here else os.environ.get("JOBSET_NAME", ""))
        attempt = os.environ.get("JOBSET_RESTART_ATTEMPT", "")
        self._attempt = here.attempt if here else int(attempt) if attempt.isdecimal() else 0
        self.directory.mkdir(parents=True, exist_ok=True)

    def newest(self, is_complete: Callable[[Path], bool] | None = None) -> Checkpoint | None:
        """See newest_complete_checkpoint."""
        return newest_complete_checkpoint(self.directory, is_complete)

    def all(self) -> list[Checkpoint]:
        """The complete ones, oldest first."""
        return _complete(self.directory)

    def path_for(self, step: int) -> Path:
        """Where the complete checkpoint of `step` is, or will be. Never write there: use save, writing or publish."""
        return self.directory / f"checkpoint-{_checked(step):010d}"

    def save(self, step: int, write: Callable[[Path], object]) -> Path:
        """Have `write(path)` make a file or a directory at `path`, and make it the checkpoint of `step`.

        Nothing is published where `write` raises. Returns path_for(step).
        """
        with self.writing(step) as path:
            write(path)
        return self.path_for(step)

    @contextmanager
    def writing(self, step: int) -> Iterator[Path]:
        """A path to write a file or make a directory at; published when the block ends without an exception."""
        path = self._partial(step, uuid.uuid4().hex[:12])
        try:
            yield path
            self._put_in_place(path, step)
        finally:
            _remove(path)
        self.prune(saved=step)

    def shared(self, step: int) -> Path:
        """The directory in which all ranks of this attempt write their shards of `step`, made if need be."""
        path = self._partial(step, "shared")
        path.mkdir(parents=True, exist_ok=True)
        return path

    def publish(self, step: int) -> Path:
        """Make shared(step) the checkpoint of `step`: the leader calls it once every rank has written its shard."""
        self._put_in_place(self._partial(step, "shared"), step)
        self.prune(saved=step)
        return self.path_for(step)

    def prune(self, saved: int | None = None) -> None:
        """Delete all but the newest `keep` (and `saved`), and what attempts before this one left half written."""
        surplus = [old.path for old in self.all()[: -self.keep] if old.step != saved]
        for entry in _names(self.directory):
            left = _PARTIAL.fullmatch(entry)
            # Others of this attempt may be writing at this moment, and one of a later attempt if this process is late;
            # a JobSet of another name is another generation, and generations never overlap.
            if (left and (left[2] != self._owner or int(left[3]) < self._attempt)) or entry.startswith(
                _DOOMED
            ):
                surplus.append(self.directory / entry)
        for path in surplus:
            _remove(path)

    def _partial(self, step: int, token: str) -> Path:
        return self.directory / f".partial-{_checked(step)}.{self._owner}.{self._attempt}.{token}"

    def _put_in_place(self, partial: Path, step: int) -> None:
        if not partial.exists():
            raise BadInput(f"checkpoints: step {step}: nothing was written at the path that was given")
        _sync(partial)
        target = self.path_for(step)
        try:
            partial.replace(target)
        except OSError as error:
            # A directory does not replace another one. Who was first (another rank, or this step before a restart) left
            # a complete one, which is as good.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR):
                raise
            _remove(partial)
        _sync_entry(self.directory)


def _complete(directory: Path) -> list[Checkpoint]:
    found = ((name, _COMPLETE.fullmatch(name)) for name in _names(directory))
    return sorted(Checkpoint(int(match[1]), directory / name) for name, match in found if match)


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _checked(step: int) -> int:
    if isinstance(step, bool) or step < 0:
        raise BadInput(f"checkpoints: a step is a whole number from 0 on, {step!r} given")
    return int(step)


def _sync(path: Path) -> None:
    """Have file or tree on the disk before its name says that it is complete."""
    if path.is_dir():
        for entry in path.iterdir():
            if not entry.is_symlink():
                _sync(entry)
    _sync_entry(path)


def _sync_entry(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    """Delete file or tree, if it is there. It loses its name first: what is half deleted is never chosen."""
    doomed = path.with_name(f"{_DOOMED}{uuid.uuid4().hex[:12]}")
    try:
        path.rename(doomed)
    except FileNotFoundError:
        return
    if doomed.is_dir() and not doomed.is_symlink():
        shutil.rmtree(doomed, ignore_errors=True)
    else:
        doomed.unlink(missing_ok=True)
