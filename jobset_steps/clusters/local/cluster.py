"""The local cluster: the Cluster protocol on this machine, with the shared controller loop over processes.

One thread drives the controller and hears the guardian; calls come from any thread and only touch state under the lock.
JobSets live as long as this object: `close`, or the death of this process, ends all their processes. Records, logs and
claimed volumes stay below `root`.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import select
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from jobset_steps.clusters import Notify, Stored, Subscription
from jobset_steps.clusters.controller import Controller
from jobset_steps.clusters.local.kubelet import ProcessKubelet
from jobset_steps.clusters.local.limits import cannot_give, cannot_run
from jobset_steps.clusters.local.locks import Locks
from jobset_steps.clusters.local.logs import JOBSETS, Follower, last_lines, log_path
from jobset_steps.clusters.local.machine import this_machine
from jobset_steps.clusters.local.records import Records
from jobset_steps.clusters.local.watches import Watches
from jobset_steps.errors import ApiError
from jobset_steps.observed import LogTail, PodView, View
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.jobset import JobSet

__all__ = ["LocalCluster", "default_root"]

_log = logging.getLogger(__name__)

_LAST_GRACE = 5.0
"""Seconds that pods have at most after SIGTERM when the cluster is closed."""


def default_root() -> Path:
    """Where a local cluster keeps its files: $JOBSET_STEPS_HOME, else jobset-steps in the user's state directory."""
    if home := os.environ.get("JOBSET_STEPS_HOME"):
        return Path(home).absolute()
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "jobset-steps"


class LocalCluster:
    """One namespace on this machine.

    `root` is the directory for records, logs and volumes (default: `default_root()`). `notice` hears, once each, the
    sentences of `cannot_give` about the JobSets that are created; by default they are logged as warnings.
    """

    name = "local"

    def __init__(
        self,
        root: Path | str | None = None,
        *,
        namespace: str = "default",
        notice: Callable[[str], None] | None = None,
    ) -> None:
        self.root = Path(root).absolute() if root is not None else default_root()
        self._notice = notice or _log.warning
        self._said: set[str] = set()
        self._records = Records(self.root / "records")
        self._lock = threading.RLock()
        self._offset = time.time() - time.monotonic()
        self._wake_read, self._wake_write = os.pipe()
        for fd in (self._wake_read, self._wake_write):
            os.set_blocking(fd, False)
        self._kubelet = ProcessKubelet(
            self.root,
            this_machine(),
            report=self._report,
            wake=self._wake,
            at=lambda monotonic: monotonic + self._offset,
            now=self._now,
        )
        self._controller = Controller(self._kubelet, namespace=namespace, uids=lambda: str(uuid.uuid4()))
        self._locks = Locks(self.root)
        self._manifests: dict[str, Mapping[str, Any]] = {}
        self._watches = Watches(self._controller, self._elsewhere)
        self._followers: list[Follower] = []
        self._closing = False
        self._failure: BaseException | None = None
        self._done = threading.Event()
        self._locks.sweep()
        self._thread = threading.Thread(target=self._run, name="jobset-steps-local", daemon=True)
        self._thread.start()

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The Cluster protocol -------------------------------------------------------------------------------------------

    def load(self, digest: str) -> Stored | None:
        """The Record of an identity, None if there is none."""
        return self._records.load(digest)

    def save(self, digest: str, text: str, version: str, *, owner: Mapping[str, Any] | None = None) -> str:
        """Write it if still at `version` ("": must not exist) and return the new version. `owner` is not used."""
        return self._records.save(digest, text, version)

    def create(self, manifest: Mapping[str, Any]) -> str:
        """Start a JobSet and return its uid. Raises ApiError exists, or invalid with everything that is wrong."""
        try:
            JobSet.from_dict(dict(manifest))
        except InvalidSpec as error:
            raise ApiError("invalid", str(error)) from None
        if faults := cannot_run(manifest):
            raise ApiError("invalid", "\n".join(map(str, faults)))
        name = str(manifest["metadata"]["name"])
        with self._lock:
            self._check_open()
            if self._controller.uid_of(name) is not None:
                raise ApiError("exists", f"JobSet {name} exists in this local cluster")
            self._locks.take(name)
            try:
                self._kubelet.expect(manifest)
                uid = self._controller.create_jobset(manifest, self._now())
            except BaseException:
                self._kubelet.forget(name)
                self._locks.give_back(name)
                raise
            self._manifests[name] = manifest
            shutil.rmtree(self.root / JOBSETS / name / "logs", ignore_errors=True)
            news = [text for text in cannot_give(manifest) if text not in self._said]
            self._said.update(news)
        for text in news:
            self._notice(text)
        self._wake()
        return uid

    def read(self, name: str, *, events: bool = False) -> View:
        """A complete View. Raises unavailable for a JobSet that another process runs: only that one can read it."""
        with self._lock:
            self._check_open()
            if (elsewhere := self._elsewhere(name)) is not None:
                raise elsewhere
            return self._controller.view(name, self._now(), events=events)

    def watch(self, name: str, notify: Notify) -> Subscription:
        """Call notify, from the cluster's thread, with the first View and after every change; with unavailable for a JobSet
        that another process runs.
        """
        with self._lock:
            self._check_open()
            watch = self._watches.add(name, notify)
        self._wake()
        return watch

    def delete(self, name: str, uid: str) -> None:
        """Begin to delete the JobSet if it has this uid: its pods get SIGTERM, and it is gone when they are."""
        with self._lock:
            self._check_open()
            if self._controller.uid_of(name) == uid:
                self._controller.delete_jobset(uid, self._now())
        self._wake()

    def tail(self, pod: str, container: str, attempt: int, lines: int) -> LogTail:
        """The last lines a container wrote; an empty name means the pod's first. Raises not_found."""
        name = container or "*"
        for path in sorted(self.root.glob(f"{JOBSETS}/*/logs/attempt-{attempt}/{pod}.{name}.log")):
            try:
                return LogTail(last_lines(path, lines))
            except OSError as error:
                raise ApiError("not_found", str(error)) from error
        raise ApiError("not_found", f"no log of {pod}, container {container or '(any)'}, attempt {attempt}")

    def follow(self, name: str, write: Callable[[str], None]) -> Subscription:
        """Write the lines of the leader's first container, attempt after attempt, without their line ends."""
        known: tuple[Path, ...] = ()

        def files() -> tuple[Path, ...]:
            nonlocal known
            with self._lock:
                # A JobSet that was deleted meanwhile leaves its files.
                known = self._kubelet.leader_logs(name) or known
            return known

        follower = Follower(files, write)
        with self._lock:
            self._check_open()
            self._followers.append(follower)
        follower.start()
        return follower

    def close(self) -> None:
        """End every pod: SIGTERM, and SIGKILL after its own grace or 5 seconds. Returns when nothing is left."""
        with self._lock:
            first, self._closing = not self._closing, True
            if first:
                self._kubelet.stop_all(_LAST_GRACE)
        self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # For people -----------------------------------------------------------------------------------------------------

    def log(self, jobset: str, attempt: int, pod: str, container: str) -> Path:
        """Where a container's log is."""
        return log_path(self.root, jobset, attempt, pod, container)

    def suspend(self, uid: str, *, suspended: bool = True) -> None:
        """Set spec.suspend of a JobSet, as a person or a queue does."""
        with self._lock:
            self._check_open()
            self._controller.suspend(uid, self._now(), suspended=suspended)
        self._wake()

    def delete_pod(self, uid: str) -> None:
        """Delete one pod, as an eviction or a person does."""
        with self._lock:
            self._check_open()
            self._controller.delete_pod(uid, self._now())
        self._wake()

    @property
    def guardian(self) -> int | None:
        """The pid of the process that guards all that runs here, None while nothing has run yet."""
        return self._kubelet.processes.guardian

    # The thread -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        except BaseException as error:
            _log.exception("the local cluster failed")
            self._failure = error
            for watch in self._watches.all():
                watch.tell(self._broken())
        finally:
            with self._lock:
                self._kubelet.close()
                self._locks.close()
                followers = list(self._followers)
                self._done.set()
                os.close(self._wake_read)
                os.close(self._wake_write)
            for follower in followers:
                follower.close()

    def _turn(self) -> bool:
        """Do what there is to do, then wait for more. False when it is closed and nothing runs."""
        with self._lock:
            self._kubelet.receive()
            self._kubelet.tick()
            if not self._closing:
                self._controller.tick(self._now())
            elif not self._kubelet.busy:
                return False
            self._kubelet.processes.flush()
            changed = self._controller.take_changed()
            for name in changed:
                if self._controller.uid_of(name) is None:
                    self._let_go(name)
            news = self._watches.news(changed, self._now())
            poll = select.poll()
            poll.register(self._wake_read, select.POLLIN)
            if (guardian := self._kubelet.processes.fileno()) is not None:
                writing = select.POLLOUT if self._kubelet.processes.wants_write else 0
                poll.register(guardian, select.POLLIN | writing)
            dues = [self._kubelet.next_due(), None if self._closing else self._controller.next_due()]
            due = min((each for each in dues if each is not None), default=None)
        for watch, view in news:
            watch.tell(view)
        poll.poll(None if due is None else max(0, math.ceil((due - self._now()) * 1000)))
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, 4096)
        return True

    def _let_go(self, name: str) -> None:
        """A JobSet is gone: its name, addresses and ports are free, and so are claims that go with it."""
        self._kubelet.forget(name)
        self._locks.give_back(name)
        manifest = self._manifests.pop(name, {"spec": {}})
        for policy in manifest["spec"].get("volumeClaimPolicies") or ():
            if (policy.get("retentionPolicy") or {}).get("whenDeleted", "Delete") == "Delete":
                for template in policy.get("templates") or ():
                    claim = f"{template['metadata']['name']}-{name}"
                    shutil.rmtree(self.root / "volumes" / claim, ignore_errors=True)

    def _report(self, pod: PodView) -> None:
        self._controller.pod_changed(pod)

    def _wake(self) -> None:
        with self._lock, contextlib.suppress(BlockingIOError):
            if not self._done.is_set():
                os.write(self._wake_write, b"x")

    def _now(self) -> float:
        # POSIX seconds that never go back.
        return time.monotonic() + self._offset

    def _elsewhere(self, name: str) -> ApiError | None:
        """Why nothing can be said of a JobSet that another process runs; None for all others."""
        if self._controller.uid_of(name) is None and self._locks.held_elsewhere(name):
            return ApiError("unavailable", f"JobSet {name} is run by another process of this machine")
        return None

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._broken()
        if self._closing:
            raise ApiError("unavailable", "the local cluster is closed")

    def _broken(self) -> ApiError:
        return ApiError("unavailable", f"the local cluster failed: {self._failure!r}")
