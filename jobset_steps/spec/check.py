"""Every rule of a spec, all faults at once. Pure: it reads a JobSet and nothing else.

A fault is either what the cluster would refuse, or (waivable) what it would accept and then hang on or mislead with.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.rules.claims import claim_faults, claim_names
from jobset_steps.spec.rules.job import job_faults
from jobset_steps.spec.rules.jobset import jobset_faults
from jobset_steps.spec.rules.metadata import annotation_faults, label_faults
from jobset_steps.spec.rules.pod import pod_faults
from jobset_steps.spec.rules.policies import policy_faults
from jobset_steps.spec.rules.waivable import waive_faults
from jobset_steps.spec.versions import DEFAULT_VERSION, known_version, version_faults

__all__ = ["check"]


def check(
    jobset: JobSet, *, waive: tuple[str, ...] = (), jobset_version: str = DEFAULT_VERSION
) -> tuple[Fault, ...]:
    """Faults of a JobSet for a version of its controller. `waive` names rules whose waivable faults are let pass.

    Raises BadInput for a JobSet version that is not known.
    """
    found = _faults(jobset, known_version(jobset_version))
    return (
        *waive_faults(waive),
        *(fault for fault in found if not (fault.waivable and fault.rule in waive)),
    )


def _faults(jobset: JobSet, version: str) -> Iterator[Fault]:
    spec = jobset.spec
    yield from jobset_faults(jobset)
    yield from policy_faults(jobset, version)
    yield from version_faults(jobset, version)
    yield from claim_faults(spec)
    claims = frozenset(claim_names(spec))
    host_names = spec.network is None or spec.network.enable_dns_hostnames is not False
    for index, replicated in enumerate(spec.replicated_jobs):
        path, job = f"spec.replicatedJobs[{index}].template", replicated.template.spec
        # A replicated job without replicas has no Jobs that the API could refuse: only its structure counts.
        made = replicated.replicas is None or replicated.replicas > 0
        if made:
            meta = replicated.template.metadata
            yield from label_faults(f"{path}.metadata.labels", meta.labels if meta else None)
            yield from annotation_faults(f"{path}.metadata.annotations", meta.annotations if meta else None)
        yield from job_faults(f"{path}.spec", job, made=made)
        yield from pod_faults(f"{path}.spec.template", job.template, claims, host_names=host_names, made=made)
