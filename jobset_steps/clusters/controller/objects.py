"""The objects that the controller loop holds: a JobSet with its Jobs, pods and events, and the View of them.

It keeps what belongs together in step (a Job's View and the count of it); it decides nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from jobset_steps.observed import EventView, JobSetView, JobView, PodView, View
from jobset_steps.semantics.child_jobs import ChildJobs
from jobset_steps.semantics.children import ChildManifests
from jobset_steps.semantics.job import JobState
from jobset_steps.semantics.job_pods import JobPods
from jobset_steps.semantics.job_terms import JobTerms
from jobset_steps.spec.jobset import JobSet, ReplicatedJob

__all__ = ["GonePods", "HeldJob", "HeldJobSet"]

# Deleted pods are remembered for whoever has not looked since; twice the largest JobSet that is meant to run here.
_REMEMBERED = 2000


@dataclass(slots=True)
class HeldJob:
    """One child Job. `timer` is the time it is next looked at without a change, `grace` in seconds."""

    state: JobState
    terms: JobTerms
    replicated: ReplicatedJob
    grace: float
    pods: JobPods = field(default_factory=JobPods)
    timer: float | None = None

    @property
    def uid(self) -> str:
        """The Job's uid."""
        return self.state.view.uid


class GonePods:
    """Pods that were deleted, in order, each with a number that only grows."""

    def __init__(self) -> None:
        self._pods: deque[tuple[int, PodView]] = deque(maxlen=_REMEMBERED)

    def add(self, number: int, pod: PodView) -> None:
        """Remember a pod that is gone."""
        self._pods.append((number, replace(pod, gone=True)))

    def after(self, number: int) -> Iterator[PodView]:
        """Those that went after that number, in order."""
        newest_first = []
        for each, pod in reversed(self._pods):
            if each <= number:
                break
            newest_first.append(pod)
        return reversed(newest_first)


@dataclass(slots=True)
class HeldJobSet:
    """One JobSet as stored. `impossible` says why Jobs of a replicated job can never be created."""

    jobset: JobSet
    view: JobSetView
    children: ChildJobs
    manifests: ChildManifests
    impossible: Mapping[str, str]
    gone: GonePods
    jobs: dict[str, HeldJob] = field(default_factory=dict)
    job_views: dict[str, JobView] = field(default_factory=dict)
    pod_views: dict[str, PodView] = field(default_factory=dict)
    events: dict[tuple[str, str, str, str, str], EventView] = field(default_factory=dict)
    failed_creations: int = 0
    timer: float | None = None

    @property
    def uid(self) -> str:
        """The JobSet's uid."""
        return self.view.uid

    def replicated(self, name: str) -> ReplicatedJob:
        """The replicated job of that name."""
        return next(job for job in self.jobset.spec.replicated_jobs if job.name == name)

    def put_job(self, job: HeldJob, state: JobState) -> bool:
        """Take in a Job's new state; whether its View changed."""
        changed = state.view != self.job_views.get(job.uid)
        job.state = state
        if changed:
            self.job_views[job.uid] = state.view
            self.children.put(state.view)
        return changed

    def say(self, event: EventView) -> None:
        """Add an event, or count it once more if it was said before."""
        key = (event.kind, event.name, event.type, event.reason, event.message)
        before = self.events.pop(key, None)
        self.events[key] = event if before is None else replace(event, count=before.count + 1)

    def seen(self, now: float, *, events: bool, gone_after: int) -> View:
        """The View of it, with the pods that went after that number."""
        return View(
            jobset=self.view,
            jobs=tuple(self.job_views.values()),
            pods=(*self.pod_views.values(), *self.gone.after(gone_after)),
            events=tuple(self.events.values()) if events else (),
            complete=True,
            read_at=now,
        )
