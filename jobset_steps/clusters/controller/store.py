"""What the controller loop keeps, and the few ways in which it changes: objects made, put, deleted and forgotten.

Each way keeps Views, counts and the list of what is due in step, and tells the Kubelet. It never decides that something
is to be made or deleted.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace

from jobset_steps.clusters.controller.kubelet import Kubelet, PodStart
from jobset_steps.clusters.controller.objects import GonePods, HeldJob, HeldJobSet
from jobset_steps.observed import JobSetView, JobView, PodView, View
from jobset_steps.semantics.admission import Admission
from jobset_steps.semantics.child_jobs import ChildJobs
from jobset_steps.semantics.children import ChildManifests, pod_name
from jobset_steps.semantics.job import JobState, NewPod
from jobset_steps.semantics.job_pods import JobPod
from jobset_steps.semantics.job_terms import JobTerms
from jobset_steps.semantics.jobset import NewJob

__all__ = ["Store"]

_GRACE = 30.0
_SHOWN = ("jobset-steps/", "kueue.x-k8s.io/")
# What the API server draws names from.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_REMEMBERED_NAMES = 64


class Store:
    """JobSets by uid (`sets`) and by name (`names`), whose a Job or a pod is, and what is due.

    `now` is the time of the change at hand, set by the controller. `jobs_due` and `sets_due` hold uids in the order
    in which they are to be looked at, `changed` the names of JobSets that a View of would differ.
    """

    def __init__(self, kubelet: Kubelet, namespace: str, uids: Callable[[], str] | None) -> None:
        numbers = itertools.count(1)
        self.now = 0.0
        self.namespace = namespace
        self.sets: dict[str, HeldJobSet] = {}
        self.names: dict[str, str] = {}
        self.home_of_job: dict[str, HeldJobSet] = {}
        self.home_of_pod: dict[str, HeldJob] = {}
        self.jobs_due: OrderedDict[str, None] = OrderedDict()
        self.sets_due: OrderedDict[str, None] = OrderedDict()
        self.changed: set[str] = set()
        self.gone_number = 0
        self._kubelet = kubelet
        self._uids = uids or (lambda: f"uid-{next(numbers)}")
        self._version = 0
        self._gone: OrderedDict[str, GonePods] = OrderedDict()
        self._timers: list[tuple[float, str]] = []

    def create_set(self, admission: Admission) -> str:
        """Store an admitted JobSet under its name, which is free; its new uid."""
        jobset, uid = admission.jobset, self._uids()
        name = jobset.metadata.name or ""
        view = JobSetView(
            name=name,
            namespace=self.namespace,
            uid=uid,
            resource_version=self._next_version(),
            labels=_shown(jobset.metadata.labels),
            annotations=_shown(jobset.metadata.annotations),
            suspended=bool(jobset.spec.suspend),
            created_at=self.now,
        )
        self._gone.pop(name, None)
        gone = self._gone[name] = GonePods()
        while len(self._gone) > len(self.names) + _REMEMBERED_NAMES:
            self._gone.popitem(last=False)
        self.sets[uid] = HeldJobSet(
            jobset,
            view,
            ChildJobs(jobset.spec.replicated_jobs),
            ChildManifests(jobset, name=name, uid=uid, namespace=self.namespace),
            admission.impossible_jobs(),
            gone,
        )
        self.names[name] = uid
        self.mark_set(uid)
        return uid

    def seen(self, name: str, now: float, *, events: bool, gone_after: int) -> View:
        """The View of the JobSet of that name, with the pods that went after that number."""
        uid = self.names.get(name)
        if uid is not None:
            return self.sets[uid].seen(now, events=events, gone_after=gone_after)
        gone = self._gone.get(name)
        return View(None, pods=tuple(gone.after(gone_after)) if gone is not None else (), read_at=now)

    def forget_set(self, held: HeldJobSet) -> None:
        """It is gone. Its pods that went are remembered under its name until the name is used again."""
        del self.sets[held.view.uid], self.names[held.view.name]
        self.changed.add(held.view.name)

    def next_due(self) -> float | None:
        """When something is to be looked at, None: nothing before a change."""
        if self.jobs_due or self.sets_due:
            return self.now
        return self._timers[0][0] if self._timers else None

    def mark_timers(self) -> None:
        """Mark what a timer has come for."""
        while self._timers and self._timers[0][0] <= self.now:
            uid = heapq.heappop(self._timers)[1]
            if uid in self.sets:
                self.sets[uid].timer = None
                self.mark_set(uid)
            elif uid in self.home_of_job:
                self.home_of_job[uid].jobs[uid].timer = None
                self.mark_job(uid)

    def create_job(self, held: HeldJobSet, new: NewJob) -> None:
        """Make a child Job; its pods come when it is looked at."""
        replicated = held.replicated(new.replicated_job)
        view = JobView(
            name=new.name,
            uid=self._uids(),
            replicated_job=new.replicated_job,
            index=new.index,
            attempt=new.attempt,
            suspended=new.suspended,
            created_at=self.now,
        )
        spec = replicated.template.spec
        grace = (spec.template.get("spec") or {}).get("terminationGracePeriodSeconds")
        job = HeldJob(
            JobState(view),
            JobTerms.of(spec, name=new.name, namespace=self.namespace),
            replicated,
            _GRACE if grace is None else float(grace),
        )
        held.jobs[view.uid] = job
        self.home_of_job[view.uid] = held
        self.put_job(held, job, job.state)

    def set_suspended(self, held: HeldJobSet, job: HeldJob, *, suspended: bool) -> None:
        """Suspend or resume a Job. A resumed Job counts its time anew."""
        started_at = job.state.view.started_at if suspended else None
        view = replace(job.state.view, suspended=suspended, started_at=started_at)
        self.put_job(held, job, replace(job.state, view=view))

    def create_pod(self, held: HeldJobSet, job: HeldJob, new: NewPod) -> None:
        """Make a pod of a Job and have it started."""
        uid, of = self._uids(), job.state.view
        name = pod_name(of.name, new.index, _suffix(uid))
        manifest = held.manifests.pod(
            job.replicated,
            of.index,
            of.attempt,
            job_uid=of.uid,
            completion_index=new.index,
            name=name,
            uid=uid,
            index_failures=None if job.terms.backoff_limit_per_index is None else new.failures,
        )
        view = PodView(
            name=name,
            uid=uid,
            job=of.name,
            replicated_job=of.replicated_job,
            job_index=of.index,
            index=new.index or 0,
            attempt=of.attempt,
            created_at=self.now,
        )
        self.home_of_pod[uid] = job
        self.put_pod(job, JobPod(view, index_failures=new.failures, index_ignored=new.ignored))
        self._kubelet.start(PodStart(view, held.view.name, manifest))

    def delete_job(self, held: HeldJobSet, job: HeldJob) -> None:
        """Delete a Job in the foreground: its pods first, then itself."""
        if job.state.view.deleting_since is not None:
            return
        view = replace(job.state.view, deleting_since=self.now)
        self.put_job(held, job, replace(job.state, view=view))
        for uid in list(job.pods.all):
            self.delete_pod(held, job, uid)
        if not job.pods.all:
            self._forget_job(held, job)

    def delete_pod(self, held: HeldJobSet, job: HeldJob, uid: str) -> None:
        """Delete a pod: it is stopped, and goes once it has ended."""
        pod = job.pods.all[uid]
        if pod.view.deleting_since is None:
            pod = replace(pod, view=replace(pod.view, deleting_since=self.now))
            self.put_pod(job, pod)
            if not pod.view.finished:
                self._kubelet.stop(uid, job.grace)
        self.forget_if_over(job, uid)

    def forget_if_over(self, job: HeldJob, uid: str) -> None:
        """A deleted pod goes once it has ended and its Job has taken it in, or goes too."""
        pod = job.pods.all.get(uid)
        going = job.state.view.deleting_since is not None
        if pod is None or pod.view.deleting_since is None or not pod.view.finished:
            return
        if pod.counted or going:
            held = self.home_of_job[job.uid]
            job.pods.drop(uid)
            del held.pod_views[uid], self.home_of_pod[uid]
            self.gone_number += 1
            held.gone.add(self.gone_number, pod.view)
            self.changed.add(held.view.name)
            self.mark_job(job.uid)
            if going and not job.pods.all:
                self._forget_job(held, job)

    def _forget_job(self, held: HeldJobSet, job: HeldJob) -> None:
        # Its last pod may have gone while it was being deleted.
        if held.jobs.pop(job.uid, None) is not None:
            del held.job_views[job.uid], self.home_of_job[job.uid]
            held.children.drop(job.uid)
            self.mark_set(held.view.uid)

    def put_set(self, held: HeldJobSet, view: JobSetView) -> None:
        """Write a JobSet."""
        held.view = replace(view, resource_version=self._next_version())
        self.mark_set(view.uid)

    def put_job(self, held: HeldJobSet, job: HeldJob, state: JobState) -> None:
        """Write a Job."""
        if held.put_job(job, state):
            self.mark_job(job.uid)
            self.mark_set(held.view.uid)

    def put_pod(self, job: HeldJob, pod: JobPod) -> None:
        """Write a pod."""
        held = self.home_of_job[job.uid]
        job.pods.put(pod)
        held.pod_views[pod.view.uid] = pod.view
        self.changed.add(held.view.name)
        self.mark_job(job.uid)

    def mark_set(self, uid: str) -> None:
        """Have a JobSet looked at."""
        self.sets_due[uid] = None
        self.changed.add(self.sets[uid].view.name)

    def mark_job(self, uid: str) -> None:
        """Have a Job looked at."""
        self.jobs_due[uid] = None

    def look_again(self, held: HeldJob | HeldJobSet, at: float) -> None:
        """Have it looked at then, or sooner."""
        if held.timer is None or at < held.timer:
            held.timer = at
            heapq.heappush(self._timers, (at, held.uid))

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)


def _shown(pairs: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, value) for key, value in (pairs or {}).items() if key.startswith(_SHOWN)))


def _suffix(uid: str) -> str:
    digest = hashlib.sha256(uid.encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:5])
