"""The child Jobs of one JobSet, sorted and counted as the JobSet controller sorts and counts them.

Counts are kept as Jobs come, change and go, so that a change of one Job costs the same whatever the size of the JobSet.
It decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jobset_steps.observed import JobView, ReplicatedJobStatus
from jobset_steps.semantics.job_terms import JobTerms

if TYPE_CHECKING:
    from jobset_steps.spec.jobset import ReplicatedJob

__all__ = ["ChildJobs"]

_COUNTS = ("ready", "succeeded", "failed", "active", "suspended")


class ChildJobs:
    """Child Jobs by uid: `previous` of earlier attempts, and of this one `active`, `succeeded` or `failed`.

    `suspended` are those of `active` that are suspended; `names` are the names of all of them.
    """

    def __init__(self, replicated_jobs: Sequence[ReplicatedJob], *, attempt: int = 0) -> None:
        self.previous: dict[str, JobView] = {}
        self.active: dict[str, JobView] = {}
        self.succeeded: dict[str, JobView] = {}
        self.failed: dict[str, JobView] = {}
        self.suspended: dict[str, JobView] = {}
        self.names: set[str] = set()
        self._attempt = attempt
        self._all: dict[str, JobView] = {}
        # Pods that must be ready or have succeeded for a Job to count as ready.
        self._pods = {
            job.name: JobTerms.of(job.template.spec, name=job.name).pods_at_once for job in replicated_jobs
        }
        self._counts = {job.name: dict.fromkeys(_COUNTS, 0) for job in replicated_jobs}
        self._existing = dict.fromkeys(self._pods, 0)

    def put(self, job: JobView) -> None:
        """Take in a Job that is new or has changed."""
        self.drop(job.uid)
        self._all[job.uid] = job
        self.names.add(job.name)
        if job.replicated_job in self._existing:
            self._existing[job.replicated_job] += 1
        self._sort(job, +1)

    def drop(self, uid: str) -> None:
        """Forget a Job that is gone. One that is not known is no error."""
        job = self._all.pop(uid, None)
        if job is None:
            return
        self.names.discard(job.name)
        if job.replicated_job in self._existing:
            self._existing[job.replicated_job] -= 1
        self._sort(job, -1)

    def start_attempt(self, attempt: int) -> None:
        """status.restarts is now `attempt`: every Job of an earlier one becomes `previous`."""
        jobs = list(self._all.values())
        for job in jobs:
            self.drop(job.uid)
        self._attempt = attempt
        for job in jobs:
            self.put(job)

    def existing(self, replicated_job: str) -> int:
        """How many of its Jobs exist, those of earlier attempts included."""
        return self._existing[replicated_job]

    def counts(self) -> Iterator[ReplicatedJobStatus]:
        """status.replicatedJobsStatus, in the order of the spec."""
        for name, counts in self._counts.items():
            yield ReplicatedJobStatus(name, **counts)

    def _sort(self, job: JobView, sign: int) -> None:
        if job.attempt < self._attempt:
            _enter(self.previous, job, sign)
            return
        counts = self._counts.get(job.replicated_job, dict.fromkeys(_COUNTS, 0))
        # The condition that comes first decides, as in the controller.
        ended = next(
            (each.type for each in job.conditions if each.type in ("Complete", "Failed") and each.holds), ""
        )
        if ended:
            _enter(self.succeeded if ended == "Complete" else self.failed, job, sign)
            counts["succeeded" if ended == "Complete" else "failed"] += sign
            return
        _enter(self.active, job, sign)
        counts["ready"] += sign * (job.succeeded + job.ready >= self._pods.get(job.replicated_job, 0))
        counts["active"] += sign * (job.active > 0)
        if job.suspended:
            counts["suspended"] += sign
            _enter(self.suspended, job, sign)


def _enter(group: dict[str, JobView], job: JobView, sign: int) -> None:
    if sign > 0:
        group[job.uid] = job
    else:
        del group[job.uid]
