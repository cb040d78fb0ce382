"""Rules of the JobSet itself: names and lengths, counts, order, network, coordinator, claims, TTL.

Source: JobSet's webhook and CRD (0.11.1). Waivable is what the server accepts and then hangs on or misleads with.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.jobset import JobSet, JobSetSpec, ReplicatedJob
from jobset_steps.spec.naming import longest_name
from jobset_steps.spec.rules import forms

__all__ = ["jobset_faults"]

_INT32 = 2**31 - 1
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
    yield from _claims(spec)
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
    for kind in ("labels", "annotations"):
        for key, value in (getattr(meta, kind) or {}).items():
            yield from forms.label_key(f"metadata.{kind}.{key}", key)
            if kind == "labels":
                yield from forms.label_value(f"metadata.labels.{key}", value)
    name = meta.name or meta.generate_name
    if not name:
        yield Fault("metadata.name", "required", "is required", passes="a short name such as train")
        return
    path = "metadata.name" if meta.name else "metadata.generateName"
    longest, why = longest_name(jobset)
    form = list(forms.letter_label(path, name.rstrip("-") if meta.generate_name else name))
    if len(name) <= 63:
        yield from form
    if len(name) > longest:
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
    elif all(_replicas(job) == 0 for job in jobs):
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
        yield from forms.letter_label(f"{here}.name", job.name) if not _is_label(job.name) else ()
        if job.group_name is not None:
            yield from forms.letter_label(f"{here}.groupName", job.group_name)
        yield from forms.nonnegative(f"{here}.replicas", job.replicas)
        pods = job.template.spec.parallelism or 1
        if _replicas(job) * pods > _INT32:
            message = f"replicas times parallelism is at most {_INT32}"
            yield Fault(f"{here}.replicas", "too-many", message, _replicas(job))
        if job.replicas is not None and job.replicas > _INT32:
            yield Fault(f"{here}.replicas", "too-many", f"at most {_INT32}", job.replicas)


def _is_label(name: str) -> bool:
    """A replicated job's name stands inside child Job names, so it may begin with a digit."""
    return not list(forms.label("", name))


def _replicas(job: ReplicatedJob) -> int:
    return 1 if job.replicas is None else job.replicas


def _order(spec: JobSetSpec) -> Iterator[Fault]:
    before: set[str] = set()
    names = {job.name for job in spec.replicated_jobs}
    in_order = spec.startup_policy is not None and spec.startup_policy.startup_policy_order == "InOrder"
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
    if spec.network is not None and spec.network.subdomain is not None:
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


def _claims(spec: JobSetSpec) -> Iterator[Fault]:
    path = "spec.volumeClaimPolicies"
    if len(spec.volume_claim_policies) > 50:
        yield Fault(path, "too-many", "at most 50", len(spec.volume_claim_policies))
    pods = [job.template.spec.template.get("spec") or {} for job in spec.replicated_jobs]
    volumes = {volume.get("name") for pod in pods for volume in pod.get("volumes") or ()}
    mounts = {
        mount.get("name")
        for pod in pods
        for container in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ()))
        for mount in container.get("volumeMounts") or ()
    }
    seen: set[str] = set()
    for index, policy in enumerate(spec.volume_claim_policies):
        if len(policy.templates) > 50:
            yield Fault(f"{path}[{index}].templates", "too-many", "at most 50", len(policy.templates))
        for place, template in enumerate(policy.templates):
            meta = template.get("metadata") or {}
            here = f"{path}[{index}].templates[{place}].metadata"
            name = str(meta.get("name") or "")
            yield from forms.subdomain(f"{here}.name", name)
            if meta.get("namespace"):
                yield Fault(
                    f"{here}.namespace", "claim-namespace", "must be empty", meta["namespace"], "remove it"
                )
            if name in seen:
                yield Fault(f"{here}.name", "duplicate", "is another template's", name, "each once")
            seen.add(name)
            if name in volumes:
                message = "is also a volume of a pod template"
                yield Fault(
                    f"{here}.name", "claim-volume", message, name, "mount it, without a volume of that name"
                )
            if name not in mounts:
                yield Fault(
                    f"{here}.name",
                    "claim-unused",
                    "no container mounts it",
                    name,
                    "a volumeMount of that name",
                )
