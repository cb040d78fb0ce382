"""Rules of volumeClaimPolicies: names, who mounts them, and the claims that JobSet makes of them.

Source: JobSet's webhook and CRD (0.11.1); the claims themselves by the PersistentVolumeClaim API, because JobSet admits
templates whose claims the API then refuses, and waits for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.jobset import JobSetSpec
from jobset_steps.spec.rules import forms
from jobset_steps.spec.rules.claim_spec import claim_spec_faults
from jobset_steps.spec.rules.metadata import annotation_faults, label_faults
from jobset_steps.spec.rules.structure import settled, structure_faults

__all__ = ["claim_faults", "claim_names"]

_MOST = 50


def claim_names(spec: JobSetSpec) -> Iterator[str]:
    """The name of each template: that of the volume which JobSet adds to the pods that mount it."""
    for policy in spec.volume_claim_policies:
        for template in policy.templates:
            yield _name(template)


def claim_faults(spec: JobSetSpec) -> Iterator[Fault]:
    """Faults of a JobSet's volumeClaimPolicies."""
    path = "spec.volumeClaimPolicies"
    if len(spec.volume_claim_policies) > _MOST:
        yield Fault(path, "too-many", f"at most {_MOST}", len(spec.volume_claim_policies))
    volumes, mounts = _used(spec)
    seen: set[str] = set()
    for index, policy in enumerate(spec.volume_claim_policies):
        if not policy.templates:
            yield Fault(f"{path}[{index}].templates", "required", "at least one")
        if len(policy.templates) > _MOST:
            yield Fault(f"{path}[{index}].templates", "too-many", f"at most {_MOST}", len(policy.templates))
        for place, template in enumerate(policy.templates):
            here, name = f"{path}[{index}].templates[{place}]", _name(template)
            yield from _template(here, template)
            where = f"{here}.metadata.name"
            if name in seen:
                yield Fault(where, "duplicate", "is another template's", name, "each once")
            seen.add(name)
            if name in volumes:
                message, passes = (
                    "is also a volume of a pod template",
                    "mount it, without a volume of that name",
                )
                yield Fault(where, "claim-volume", message, name, passes)
            if name not in mounts:
                yield Fault(
                    where, "claim-unused", "no container mounts it", name, "a volumeMount of that name"
                )


def _template(path: str, template: Mapping[str, Any]) -> Iterator[Fault]:
    shape = list(structure_faults(path, template, "PersistentVolumeClaim"))
    yield from shape
    if shape:
        return
    template = settled(template, "PersistentVolumeClaim")
    meta = template.get("metadata") or {}
    yield from forms.subdomain(f"{path}.metadata.name", meta.get("name") or "")
    if meta.get("namespace"):
        given = meta["namespace"]
        yield Fault(f"{path}.metadata.namespace", "claim-namespace", "must be empty", given, "remove it")
    yield from label_faults(f"{path}.metadata.labels", meta.get("labels"))
    yield from annotation_faults(f"{path}.metadata.annotations", meta.get("annotations"))
    yield from claim_spec_faults(f"{path}.spec", template.get("spec") or {})


def _name(template: Any) -> str:
    meta = _mapping(_mapping(template).get("metadata"))
    name = meta.get("name")
    return name if isinstance(name, str) else ""


def _used(spec: JobSetSpec) -> tuple[set[str], set[str]]:
    """Names of volumes, and of those that are mounted, in any pod template, whatever its shape."""
    volumes: set[str] = set()
    mounts: set[str] = set()
    for job in spec.replicated_jobs:
        pod = _mapping(job.template.spec.template.get("spec"))
        volumes |= {str(_mapping(volume).get("name") or "") for volume in _sequence(pod.get("volumes"))}
        for container in (*_sequence(pod.get("containers")), *_sequence(pod.get("initContainers"))):
            for mount in _sequence(_mapping(container).get("volumeMounts")):
                mounts.add(str(_mapping(mount).get("name") or ""))
    return volumes, mounts


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
