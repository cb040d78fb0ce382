"""The simulated cluster: the Cluster protocol over scripted pods, a virtual clock and faults to order.

For drills and for tests of whatever waits for a JobSet. Time passes only in `advance`; nothing runs and nothing waits. The
controllers are those of the local cluster, so it behaves as JobSet 0.11.1 on Kubernetes 1.34 does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any

from jobset_steps.clusters import Notify, Stored, Subscription
from jobset_steps.clusters.controller import Controller, PodStart
from jobset_steps.clusters.simulated.faults import Faults
from jobset_steps.clusters.simulated.scripted_kubelet import ScriptedKubelet
from jobset_steps.clusters.simulated.scripts import PodRun, PodScript, Scripts
from jobset_steps.errors import ApiError
from jobset_steps.observed import EventView, LogTail, PodView, View

__all__ = ["SimulatedCluster"]

# 2026-01-01T00:00:00Z: any time will do that looks like one.
_START = 1767225600.0
_REPLAYABLE = 64


class SimulatedCluster:
    """`now` is its clock, in POSIX seconds; `faults` takes orders for calls that are to fail.

    Safe for threads; watches are told in the thread that calls `advance`, before it returns. `created` counts the
    JobSets ever stored, by name. `refuse_impossible` as in Controller.
    """

    name = "simulated"

    def __init__(
        self,
        scripts: Callable[[PodRun], PodScript] | None = None,
        *,
        now: float = _START,
        namespace: str = "default",
        refuse_impossible: bool = True,
    ) -> None:
        self.now = now
        self.faults = Faults()
        self.created: dict[str, int] = {}
        self._lock = RLock()
        self._kubelet = ScriptedKubelet(scripts or Scripts(), self)
        self._kubelet.now = now
        self._controller = Controller(self._kubelet, namespace=namespace, refuse_impossible=refuse_impossible)
        self._records: dict[str, Stored] = {}
        self._version = 0
        self._watches: list[_Watch] = []
        self._followers: list[_Follower] = []
        self._logs: dict[str, list[str]] = {}
        self._told: dict[str, deque[View]] = {}

    # The Cluster protocol.

    def load(self, digest: str) -> Stored | None:
        """See Cluster."""
        with self._lock:
            return self.faults.around("load", lambda: self._records.get(digest))

    def save(self, digest: str, text: str, version: str, *, owner: Mapping[str, Any] | None = None) -> str:
        """See Cluster. An owner is taken and has no effect: nothing here deletes Workflows."""
        with self._lock:
            return self.faults.around("save", lambda: self._save(digest, text, version))

    def create(self, manifest: Mapping[str, Any]) -> str:
        """See Cluster."""
        with self._lock:
            return self.faults.around("create", lambda: self._create(manifest))

    def read(self, name: str, *, events: bool = False) -> View:
        """See Cluster."""
        with self._lock:
            return self.faults.around("read", lambda: self._controller.view(name, self.now, events=events))

    def watch(self, name: str, notify: Notify) -> Subscription:
        """See Cluster."""
        with self._lock:
            return self.faults.around("watch", lambda: self._watch(name, notify))

    def delete(self, name: str, uid: str) -> None:
        """See Cluster."""
        with self._lock:
            self.faults.around("delete", lambda: self._controller.delete_jobset(uid, self.now))

    def tail(self, pod: str, container: str, attempt: int, lines: int) -> LogTail:
        """See Cluster."""
        with self._lock:
            return self.faults.around("tail", lambda: self._tail(pod, lines))

    def follow(self, name: str, write: Callable[[str], None]) -> Subscription:
        """See Cluster."""
        with self._lock:
            follower = _Follower(name, write, self._followers)
            self._followers.append(follower)
            return follower

    def close(self) -> None:
        """Stop all watches. What is stored stays."""
        with self._lock:
            self._watches.clear()
            self._followers.clear()

    # Time.

    def next_due(self) -> float | None:
        """When something happens next by itself, None: nothing before a call. POSIX seconds."""
        with self._lock:
            due = [at for at in (self._kubelet.next_due(), self._controller.next_due()) if at is not None]
            return min(due) if due else None

    def advance(self, seconds: float = 0.0) -> None:
        """Let time pass, everything that is due in its order, and tell the watches after each moment."""
        with self._lock:
            until = self.now + seconds
            while (due := self.next_due()) is not None and due <= until:
                self.now = max(self.now, due)
                self._kubelet.tick(self.now)
                self._controller.tick(self.now)
                self._tell()
            self.now = until
            self._kubelet.now = until
            self._tell()

    def advance_until(self, name: str, reached: Callable[[View], bool], *, limit: float = 86400.0) -> View:
        """Let time pass until a View of the JobSet satisfies `reached`, and return that View.

        Raises TimeoutError after `limit` seconds, or where nothing would happen any more.
        """
        end = self.now + limit
        self.advance()
        while not reached(view := self._controller.view(name, self.now, events=True)):
            due = self.next_due()
            if due is None or due > end:
                raise TimeoutError(f"{name} did not get there by {end:g}; it is now {self.now:g}: {view}")
            self.advance(max(0.0, due - self.now))
        return view

    # What others do to a cluster.

    def suspend(self, name: str, *, suspended: bool = True) -> None:
        """Set spec.suspend of a JobSet, as Kueue does; False resumes."""
        with self._lock:
            if (uid := self._controller.uid_of(name)) is not None:
                self._controller.suspend(uid, self.now, suspended=suspended)

    def delete_pod(self, uid: str) -> None:
        """Delete one pod, as a person does."""
        with self._lock:
            self._controller.delete_pod(uid, self.now)

    def delete_by_hand(self, name: str) -> None:
        """Delete a JobSet, as a person does."""
        with self._lock:
            if (uid := self._controller.uid_of(name)) is not None:
                self._controller.delete_jobset(uid, self.now)

    def silence_watches(self) -> None:
        """Every watch that is on hears nothing any more, and is not told so: a silent drop."""
        with self._lock:
            for watch in self._watches:
                watch.silent = True

    def break_watches(self, kind: str = "unavailable", message: str = "watch closed (simulated)") -> None:
        """Every watch that is on is told of an ApiError; it goes on."""
        with self._lock:
            for watch in list(self._watches):
                watch.notify(ApiError(kind, message))

    def replay(self, name: str, back: int = 1) -> None:
        """Tell the watches of `name` once more what they were told `back` Views ago (fewer if there were fewer)."""
        with self._lock:
            told = self._told.get(name)
            if told:
                old = told[max(0, len(told) - 1 - back)]
                for watch in [each for each in self._watches if each.name == name]:
                    watch.notify(old)

    # What the Kubelet reports to.

    def pod_changed(self, pod: PodView) -> None:
        """See Surroundings."""
        self._controller.pod_changed(pod)

    def say(self, jobset: str, event: EventView) -> None:
        """See Surroundings."""
        self._controller.say(jobset, event)

    def evict(self, uid: str, now: float) -> None:
        """See Surroundings."""
        self._controller.delete_pod(uid, now)

    def wrote(self, pod: PodStart, lines: tuple[str, ...]) -> None:
        """See Surroundings."""
        self._logs.setdefault(pod.view.name, []).extend(lines)
        metadata = pod.manifest["metadata"]["annotations"]
        leads = metadata["jobset.sigs.k8s.io/job-global-index"] == "0" and pod.view.index == 0
        for follower in list(self._followers):
            if leads and follower.name == pod.jobset:
                for line in lines:
                    follower.write(line)

    def _save(self, digest: str, text: str, version: str) -> str:
        stored = self._records.get(digest)
        if (stored.version if stored is not None else "") != version:
            raise ApiError(
                "conflict", f"the record {digest} is not at version {version or '(none)'} any more"
            )
        self._version += 1
        self._records[digest] = Stored(text, str(self._version))
        return str(self._version)

    def _create(self, manifest: Mapping[str, Any]) -> str:
        uid = self._controller.create_jobset(manifest, self.now)
        name = str(manifest["metadata"]["name"])
        self.created[name] = self.created.get(name, 0) + 1
        return uid

    def _watch(self, name: str, notify: Notify) -> Subscription:
        watch = _Watch(name, notify, self._watches, self._controller.gone_number)
        self._watches.append(watch)
        notify(self._controller.view(name, self.now))
        return watch

    def _tell(self) -> None:
        for name in sorted(self._controller.take_changed()):
            view = self._controller.view(name, self.now)
            self._told.setdefault(name, deque(maxlen=_REPLAYABLE)).append(view)
            for watch in [each for each in self._watches if each.name == name and not each.silent]:
                seen = self._controller.view(name, self.now, gone_after=watch.gone_number)
                watch.gone_number = self._controller.gone_number
                watch.notify(seen)

    def _tail(self, pod: str, lines: int) -> LogTail:
        if not self._controller.has_pod(pod):
            self._logs.pop(pod, None)
            raise ApiError("not_found", f'pods "{pod}" not found')
        return LogTail(tuple(self._logs.get(pod, ())[-lines:]))


class _Watch:
    def __init__(self, name: str, notify: Notify, among: list[_Watch], gone_number: int) -> None:
        self.name, self.notify, self.gone_number = name, notify, gone_number
        self.silent = False
        self._among = among

    def close(self) -> None:
        if self in self._among:
            self._among.remove(self)


class _Follower:
    def __init__(self, name: str, write: Callable[[str], None], among: list[_Follower]) -> None:
        self.name, self.write = name, write
        self._among = among

    def close(self) -> None:
        if self in self._among:
            self._among.remove(self)
