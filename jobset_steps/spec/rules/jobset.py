"""Rules of the JobSet itself: names and lengths, counts, order, network, coordinator, TTL.

Source: JobSet's webhook and CRD (0.11.1). Waivable is what the server accepts and then hangs on or misleads with.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.jobset import JobSet, JobSetSpec, ReplicatedJob
from jobset_steps.spec.naming import longest_name
from jobset_steps.spec.rules import forms
from jobset_steps.spec.rules.metadata import annotation_faults, finalizer_faults, label_faults, owner_faults

__all__ = ["jobset_faults"]

_INT32 = 2**31 - 1
_MOST_GENERATED = 58
# Below this a finished JobSet can be gone before anybody has read how it ended.
_SHORTEST_TTL = 300


def jobset_faults(jobset: JobSet) -> Iterator[Fault]:
    """Faults of everything but policies and templates."""
    spec = jobset.spec
    yield from _metadata(jobset)
    yield from _counts(spec)
    yield from _order(spec)
    yield from _network(spec)
    yield from _coordinator(spec)
    if spec.managed_by is not None:
        yield from forms.prefixed_path("spec.managedBy", spec.managed_by, 63)
    ttl = spec.ttl_seconds_after_finished
    yield from forms.nonnegative("spec.ttlSecondsAfterFinished", ttl)
    if ttl is not None and 0 <= ttl < _SHORTEST_TTL:
        message = "the JobSet may be gone before its end is read"
        yield Fault(
            "spec.ttlSecondsAfterFinished", "ttl-too-short", message, ttl, f"at least {_SHORTEST_TTL}", True
        )


def _metadata(jobset: JobSet) -> Iterator[Fault]:
    meta = jobset.metadata
    yield from label_faults("metadata.labels", meta.labels)
    yield from annotation_faults("metadata.annotations", meta.annotations)
    yield from finalizer_faults("metadata.finalizers", meta.finalizers)
    yield from owner_faults("metadata.ownerReferences", meta.owner_references)
    if meta.name and meta.generate_name:
        yield from forms.name_base("metadata.generateName", meta.generate_name)
    name = meta.name or meta.generate_name
    if not name:
        yield Fault("metadata.name", "required", "is required", passes="a short name such as train")
        return
    path, longest, why = "metadata.name", *longest_name(jobset)
    if not meta.name:
        # The server cuts the base to 58 characters and adds 5.
        path, name, longest = "metadata.generateName", name[:_MOST_GENERATED], longest - 5
        why = f"{why}; the server adds 5 characters".lstrip("; ")
    given = f"{name}0" if not meta.name else name
    # Only the names of children need a letter first and no dots.
    form = list((forms.letter_label if jobset.spec.replicated_jobs else forms.subdomain)(path, given))
    if len(given) <= 63 or not jobset.spec.replicated_jobs:
        yield from form
    if len(name) > longest and (jobset.spec.replicated_jobs or len(name) > 253):
        yield Fault(path, "name-length", f"at most {longest} characters here", len(name), why)


def _counts(spec: JobSetSpec) -> Iterator[Fault]:
    jobs = spec.replicated_jobs
    path = "spec.replicatedJobs"
    if not jobs:
        yield Fault(
            path,
            "no-jobs",
            "a JobSet without replicated jobs never ends",
            passes="at least one",
            waivable=True,
        )
    elif all(_replicas(job) <= 0 for job in jobs):
        yield Fault(
            path,
            "no-jobs",
            "no replicated job has a replica: the JobSet never ends",
            passes="replicas: 1",
            waivable=True,
        )
    yield from forms.duplicates(path, "name", (job.name for job in jobs))
    for index, job in enumerate(jobs):
        here = f"{path}[{index}]"
        yield from _job_name(f"{here}.name", job)
        if job.group_name is not None:
            yield from forms.letter_label(f"{here}.groupName", job.group_name)
        if job.replicas is not None and job.replicas < 0:
            message = "a negative number acts as 0"
            yield Fault(f"{here}.replicas", "negative-replicas", message, job.replicas, "0 or more", True)
        pods = job.template.spec.parallelism or 1
        if _replicas(job) * pods > _INT32:
            message = f"replicas times parallelism is at most {_INT32}"
            yield Fault(f"{here}.replicas", "too-many", message, _replicas(job))


def _job_name(path: str, job: ReplicatedJob) -> Iterator[Fault]:
    """A replicated job's name stands inside child Job names, so it may begin with a digit; it is a label's value too."""
    if not job.name:
        message = "without a name nothing can refer to it, and no label tells it apart"
        yield Fault(path, "job-name-empty", message, job.name, "such as workers", True)
    elif _replicas(job) > 0:
        yield from forms.label(path, job.name)
    else:
        yield from forms.label(path, f"x{job.name}x")


def _replicas(job: ReplicatedJob) -> int:
    return 1 if job.replicas is None else job.replicas


def _order(spec: JobSetSpec) -> Iterator[Fault]:
    before: set[str] = set()
    names = {job.name for job in spec.replicated_jobs}
    in_order = spec.startup_policy is not None and spec.startup_policy.startup_policy_order == "InOrder"
    if in_order and not spec.replicated_jobs:
        yield Fault("spec.replicatedJobs", "required", "is required with startupPolicy InOrder")
    for index, job in enumerate(spec.replicated_jobs):
        here = f"spec.replicatedJobs[{index}].dependsOn"
        if job.depends_on and index == 0:
            yield Fault(
                here,
                "depends-on-first",
                "the first replicated job cannot depend on another",
                passes="remove it",
            )
        if len(job.depends_on) > 5:
            yield Fault(here, "too-many", "at most 5", len(job.depends_on))
        if job.depends_on and in_order:
            yield Fault(
                here,
                "depends-on-in-order",
                "not together with startupPolicy InOrder",
                passes="one of the two",
            )
        for place, dependency in enumerate(job.depends_on):
            path = f"{here}[{place}].name"
            if dependency.name == job.name:
                yield Fault(
                    path,
                    "depends-on-self",
                    "depends on itself and would never start",
                    dependency.name,
                    None,
                    True,
                )
            elif dependency.name not in before and index > 0:
                known = ", ".join(sorted(before))
                message = (
                    "must come earlier in the list" if dependency.name in names else "no such replicated job"
                )
                yield Fault(path, "depends-on-order", message, dependency.name, f"one of {known}")
        yield from forms.duplicates(here, "name", (dependency.name for dependency in job.depends_on))
        before.add(job.name)


def _network(spec: JobSetSpec) -> Iterator[Fault]:
    if spec.network is not None and spec.network.subdomain:
        yield from forms.letter_label("spec.network.subdomain", spec.network.subdomain)


def _coordinator(spec: JobSetSpec) -> Iterator[Fault]:
    place = spec.coordinator
    if place is None:
        return
    job = next((job for job in spec.replicated_jobs if job.name == place.replicated_job), None)
    if job is None:
        known = ", ".join(job.name for job in spec.replicated_jobs)
        yield Fault(
            "spec.coordinator.replicatedJob",
            "unknown-job",
            "no such replicated job",
            place.replicated_job,
            known,
        )
        return
    index, pod = place.job_index or 0, place.pod_index or 0
    if not 0 <= index < _replicas(job):
        yield Fault("spec.coordinator.jobIndex", "out-of-range", f"from 0 to {_replicas(job) - 1}", index)
    template = job.template.spec
    if template.completion_mode not in (None, "Indexed") or template.completions is None:
        message = "the coordinator's job must be Indexed with completions"
        yield Fault("spec.coordinator.replicatedJob", "not-indexed", message, place.replicated_job)
    elif not 0 <= pod < template.completions:
        yield Fault("spec.coordinator.podIndex", "out-of-range", f"from 0 to {template.completions - 1}", pod)
