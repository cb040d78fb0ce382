"""The one controller loop of the local and the simulated cluster: objects, and what moves them.

It holds JobSets, child Jobs and pods as plain Views, asks `semantics` what the real controllers would do after each
change, and tells a Kubelet which pods to start and stop. It never waits and has no thread: whoever calls it does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from jobset_steps.clusters.controller.kubelet import Kubelet, PodStart
from jobset_steps.clusters.controller.objects import HeldJob, HeldJobSet
from jobset_steps.clusters.controller.store import Store
from jobset_steps.errors import ApiError
from jobset_steps.observed import EventView, PodView, View
from jobset_steps.semantics.admission import admit
from jobset_steps.semantics.job import sync_counted
from jobset_steps.semantics.jobset import Decision, decide
from jobset_steps.spec.fault import InvalidSpec

__all__ = ["Controller", "Kubelet", "PodStart"]


class Controller:
    """Call `tick` after changes and whenever `next_due` has come; changes told between two ticks count as one.

    Not safe for threads: one caller at a time. A Kubelet may report from within its own `start` and `stop`.
    `uids` makes a new unique text a call; the default counts, so that equal histories are equal in every byte.
    `refuse_impossible`: JobSets whose child Jobs could never be created are refused at once, as the Cluster protocol
    wants it. Without it they are stored and never start, with an event for each try, as on a real API server.
    """

    def __init__(
        self,
        kubelet: Kubelet,
        *,
        namespace: str = "default",
        uids: Callable[[], str] | None = None,
        refuse_impossible: bool = True,
    ) -> None:
        self._store = Store(kubelet, namespace, uids)
        self._refuse_impossible = refuse_impossible

    def create_jobset(self, manifest: Mapping[str, Any], now: float) -> str:
        """Store a JobSet from its full camelCase manifest and return its uid. Raises ApiError exists or invalid."""
        try:
            admission = admit(manifest)
        except InvalidSpec as error:
            raise ApiError("invalid", str(error)) from None
        refused = admission.refused + (admission.impossible if self._refuse_impossible else ())
        if refused:
            raise ApiError("invalid", "\n".join(str(fault) for fault in refused))
        name = admission.jobset.metadata.name or ""
        if name in self._store.names:
            raise ApiError("exists", f'jobsets.jobset.x-k8s.io "{name}" already exists')
        self._store.now = now
        return self._store.create_set(admission)

    def delete_jobset(self, uid: str, now: float) -> None:
        """Begin to delete it in the foreground: it goes once its pods have ended. One that is gone is no error."""
        held = self._store.sets.get(uid)
        if held is None or held.view.deleting_since is not None:
            return
        self._store.now = now
        self._store.put_set(held, replace(held.view, deleting_since=now))
        for job in list(held.jobs.values()):
            self._store.delete_job(held, job)

    def suspend(self, uid: str, now: float, *, suspended: bool = True) -> None:
        """Set spec.suspend, as Kueue or a person does; False resumes. One that is gone is no error."""
        held = self._store.sets.get(uid)
        if held is not None and held.view.suspended != suspended:
            self._store.now = now
            self._store.put_set(held, replace(held.view, suspended=suspended))

    def delete_pod(self, uid: str, now: float) -> None:
        """Delete one pod, as an eviction or a person does. One that is gone is no error."""
        job = self._store.home_of_pod.get(uid)
        if job is not None:
            self._store.now = now
            self._store.delete_pod(self._store.home_of_job[job.uid], job, uid)

    def pod_changed(self, pod: PodView) -> None:
        """Hear from the Kubelet what became of a pod. A pod that has ended does not change any more.

        `gone` means that it went without an end that anybody saw: it then counts as failed. Whether it is being
        deleted the controller knows by itself.
        """
        job = self._store.home_of_pod.get(pod.uid)
        if job is None:
            return
        known = job.pods.all[pod.uid]
        if not known.view.finished:
            if pod.gone and not pod.finished:
                pod = replace(pod, phase="Failed", ready=False)
            view = replace(pod, deleting_since=known.view.deleting_since, gone=False)
            self._store.put_pod(job, replace(known, view=view))
        self._store.forget_if_over(job, pod.uid)

    def say(self, jobset: str, event: EventView) -> None:
        """Add an event that somebody else has about the JobSet of that name, its Jobs or its pods."""
        uid = self._store.names.get(jobset)
        if uid is not None:
            self._store.sets[uid].say(event)
            self._store.changed.add(jobset)

    def next_due(self) -> float | None:
        """When `tick` has something to do (POSIX seconds; a time past: at once), None: nothing before a change."""
        return self._store.next_due()

    def tick(self, now: float) -> None:
        """Do all that is due, until nothing is."""
        store = self._store
        store.now = now
        store.mark_timers()
        # A JobSet is looked at after each of its Jobs: which Job ended first decides.
        while store.jobs_due or store.sets_due:
            while store.sets_due:
                uid, _ = store.sets_due.popitem(last=False)
                if (held := store.sets.get(uid)) is not None:
                    self._reconcile(held)
            if store.jobs_due:
                uid, _ = store.jobs_due.popitem(last=False)
                if (home := store.home_of_job.get(uid)) is not None:
                    self._sync(home, home.jobs[uid])

    def view(self, name: str, now: float, *, events: bool = False, gone_after: int | None = None) -> View:
        """All of one JobSet; `jobset` is None where there is none of that name.

        Pods that went after the number `gone_after` (see `gone_number`) are shown once more; None: none of them.
        """
        after = self.gone_number if gone_after is None else gone_after
        return self._store.seen(name, now, events=events, gone_after=after)

    @property
    def gone_number(self) -> int:
        """Grows with each pod that goes: who keeps it beside a View asks for those that went since."""
        return self._store.gone_number

    def take_changed(self) -> set[str]:
        """Names of the JobSets that changed, or any Job, pod or event of theirs, since this was asked last."""
        changed, self._store.changed = self._store.changed, set()
        return changed

    def has_pod(self, name: str) -> bool:
        """Whether a pod of that name exists."""
        return any(name == job.pods.all[uid].view.name for uid, job in self._store.home_of_pod.items())

    def uid_of(self, name: str) -> str | None:
        """The uid of the JobSet of that name, None if there is none."""
        return self._store.names.get(name)

    def _reconcile(self, held: HeldJobSet) -> None:
        store = self._store
        if held.view.deleting_since is not None:
            if not held.jobs:
                store.forget_set(held)
            return
        decision = decide(held.jobset.spec, held.view, held.children, store.now)
        for uid in decision.delete:
            store.delete_job(held, held.jobs[uid])
        if not self._create_jobs(held, decision):
            return
        for uids, suspended in ((decision.suspend, True), (decision.resume, False)):
            for uid in uids:
                store.set_suspended(held, held.jobs[uid], suspended=suspended)
        for event in decision.events:
            held.say(event)
        if decision.status != held.view:
            restarted = decision.status.restarts != held.view.restarts
            store.put_set(held, decision.status)
            if restarted:
                held.children.start_attempt(decision.status.restarts)
        if decision.look_again_at is not None:
            store.look_again(held, decision.look_again_at)
        if decision.expired:
            self.delete_jobset(held.uid, store.now)

    def _create_jobs(self, held: HeldJobSet, decision: Decision) -> bool:
        """Whether all could be created; one replicated job that fails keeps those after it from being tried."""
        for replicated, jobs in itertools.groupby(decision.create, key=lambda job: job.replicated_job):
            if (why := held.impossible.get(replicated)) is not None:
                self._creation_failed(held, [job.name for job in jobs], why)
                return False
            for job in jobs:
                self._store.create_job(held, job)
        held.failed_creations = 0
        return True

    def _creation_failed(self, held: HeldJobSet, jobs: list[str], why: str) -> None:
        store = self._store
        words = "\n".join(
            f'job "{name}" creation failed with error: Job.batch "{name}" is invalid: {why}' for name in jobs
        )
        held.say(EventView("JobSet", held.view.name, "Warning", "JobCreationFailed", words, 1, store.now))
        store.changed.add(held.view.name)
        # The controller's work queue: 5 ms, doubled by failure, at most 1,000 s.
        delay = min(0.005 * 2 ** min(held.failed_creations, 20), 1000.0)
        held.failed_creations += 1
        store.look_again(held, store.now + delay)

    def _sync(self, held: HeldJobSet, job: HeldJob) -> None:
        store = self._store
        decision = sync_counted(job.terms, job.state, job.pods, store.now)
        job.pods.count(decision.counted)
        store.put_job(held, job, decision.state)
        for event in decision.events:
            held.say(event)
        for uid in decision.delete:
            store.delete_pod(held, job, uid)
        for new in decision.create:
            store.create_pod(held, job, new)
        for uid in decision.counted:
            store.forget_if_over(job, uid)
        if decision.look_again_at is not None:
            store.look_again(job, decision.look_again_at)
        if decision.expired:
            store.delete_job(held, job)
