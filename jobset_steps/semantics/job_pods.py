"""The pods of one Job, sorted as the Job controller sorts them. Kept as pods come, change and go; it decides nothing.

A pod is active until it ends or is deleted, terminating from its deletion until it has ended, and uncounted until the
Job's status has taken it in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from jobset_steps.observed import PodView

__all__ = ["JobPod", "JobPods", "finished_at"]


@dataclass(frozen=True, slots=True)
class JobPod:
    """One pod as its Job sees it. `view.index` is its completion index, 0 in a NonIndexed Job.

    `counted`: the Job's status has taken it in (in the API: its tracking finalizer is gone). `index_failures` and
    `index_ignored` are the failures of its index before it, used with backoffLimitPerIndex.
    """

    view: PodView
    counted: bool = False
    index_failures: int = 0
    index_ignored: int = 0

    @property
    def active(self) -> bool:
        """Neither ended nor being deleted."""
        return not self.view.finished and self.view.deleting_since is None

    @property
    def container_restarts(self) -> int:
        """Restarts by the kubelet, while the pod has not ended."""
        return 0 if self.view.finished else sum(each.restart_count for each in self.view.containers)


class JobPods:
    """Pods by uid. `uncounted` are those that have ended or are being deleted, and that no status has taken in."""

    def __init__(self, pods: Iterable[JobPod] = ()) -> None:
        self.all: dict[str, JobPod] = {}
        self.active: dict[str, JobPod] = {}
        self.uncounted: dict[str, JobPod] = {}
        self.terminating: dict[str, JobPod] = {}
        self.ready = 0
        self.container_restarts = 0
        for pod in pods:
            self.put(pod)

    def put(self, pod: JobPod) -> None:
        """Take in a pod that is new or has changed."""
        uid = pod.view.uid
        self.drop(uid)
        self.all[uid] = pod
        if pod.active:
            self.active[uid] = pod
            self.ready += pod.view.ready
        else:
            if not pod.counted:
                self.uncounted[uid] = pod
            if not pod.view.finished:
                self.terminating[uid] = pod
        self.container_restarts += pod.container_restarts

    def drop(self, uid: str) -> JobPod | None:
        """Forget a pod that is gone; None if it was not known."""
        pod = self.all.pop(uid, None)
        if pod is None:
            return None
        if self.active.pop(uid, None) is not None:
            self.ready -= pod.view.ready
        self.uncounted.pop(uid, None)
        self.terminating.pop(uid, None)
        self.container_restarts -= pod.container_restarts
        return pod

    def count(self, uids: Iterable[str]) -> None:
        """Mark pods as taken in by the status."""
        for uid in uids:
            if uid in self.all:
                self.put(replace(self.all[uid], counted=True))


def finished_at(pod: PodView) -> float:
    """When a pod ended: its last container's end, else its Ready condition's change, its deletion or its creation."""
    ends = [each.finished_at for each in pod.containers if not each.init]
    known = [end for end in ends if end is not None]
    if known and len(known) == len(ends):
        return max(known)
    ready = next((each for each in pod.conditions if each.type == "Ready" and each.status == "False"), None)
    for time in (ready.since if ready is not None else None, pod.deleting_since, pod.created_at):
        if time is not None:
            return time
    return 0.0
