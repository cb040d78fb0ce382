"""Every rule of a spec, all faults at once. Pure: it reads a JobSet and nothing else.

A fault is either what the cluster would refuse, or (waivable) what it would accept and then hang on or mislead with.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobset_steps.errors import BadInput
from jobset_steps.spec.fault import Fault
from jobset_steps.spec.job import JobTemplate
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.rules import forms
from jobset_steps.spec.rules.job import job_faults
from jobset_steps.spec.rules.jobset import jobset_faults
from jobset_steps.spec.rules.pod import pod_faults
from jobset_steps.spec.rules.policies import policy_faults

__all__ = ["VERSIONS", "check"]

VERSIONS = ("0.10", "0.11", "0.12")
"""Versions of JobSet whose differences are known."""


def check(jobset: JobSet, *, waive: tuple[str, ...] = (), jobset_version: str = "0.11") -> tuple[Fault, ...]:
    """Faults of a JobSet. `waive` names rules whose waivable faults are let pass.

    Raises BadInput for a JobSet version that is not known.
    """
    if jobset_version not in VERSIONS:
        raise BadInput(f"JobSet {jobset_version} is not known; known: {', '.join(VERSIONS)}")
    version = tuple(int(part) for part in jobset_version.split("."))
    return tuple(fault for fault in _faults(jobset, version) if not (fault.waivable and fault.rule in waive))


def _faults(jobset: JobSet, version: tuple[int, ...]) -> Iterator[Fault]:
    yield from jobset_faults(jobset)
    yield from policy_faults(jobset.spec, version)
    claims = frozenset(
        str((template.get("metadata") or {}).get("name") or "")
        for policy in jobset.spec.volume_claim_policies
        for template in policy.templates
    )
    for index, replicated in enumerate(jobset.spec.replicated_jobs):
        path = f"spec.replicatedJobs[{index}].template"
        yield from _metadata(path, replicated.template)
        yield from job_faults(f"{path}.spec", replicated.template.spec)
        yield from pod_faults(f"{path}.spec.template", replicated.template.spec.template, claims)


def _metadata(path: str, template: JobTemplate) -> Iterator[Fault]:
    for kind in ("labels", "annotations"):
        for key, value in (getattr(template.metadata, kind, None) or {}).items():
            yield from forms.label_key(f"{path}.metadata.{kind}.{key}", key)
            if kind == "labels":
                yield from forms.label_value(f"{path}.metadata.labels.{key}", value)
