"""What a PersistentVolumeClaim must ask for, wherever it stands: in a volumeClaimPolicy or in an ephemeral volume.

Source: the PersistentVolumeClaim API's validation (v1, Kubernetes 1.34), on a spec whose structure is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.rules import forms
from jobset_steps.spec.rules.metadata import selector_faults
from jobset_steps.spec.rules.quantity import amount_of

__all__ = ["claim_spec_faults"]

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def claim_spec_faults(path: str, spec: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults of a PersistentVolumeClaim's spec."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield Fault(f"{path}.accessModes", "required", "at least one", passes="such as [ReadWriteMany]")
    for index, mode in enumerate(modes):
        yield from forms.one_of(f"{path}.accessModes[{index}]", mode, _MODES)
    if "ReadWriteOncePod" in modes and set(modes) & set(_MODES[:3]):
        yield Fault(
            f"{path}.accessModes", "access-modes", "ReadWriteOncePod alone", modes, "[ReadWriteOncePod]"
        )
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if (amount_of(storage) or 0) <= 0:
        message = "a size above 0 is required"
        yield Fault(f"{path}.resources.requests.storage", "required", message, storage, "such as 10Gi")
    yield from selector_faults(f"{path}.selector", spec.get("selector"))
    for name in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(name):
            yield from forms.subdomain(f"{path}.{name}", spec[name])
    yield from forms.one_of(f"{path}.volumeMode", spec.get("volumeMode"), ("Block", "Filesystem"))
    yield from _data_sources(path, spec)


def _data_sources(path: str, spec: Mapping[str, Any]) -> Iterator[Fault]:
    for name in ("dataSource", "dataSourceRef"):
        source = spec.get(name)
        if source is None:
            continue
        here, group = f"{path}.{name}", source.get("apiGroup") or ""
        yield from forms.required(here, source, "kind", "name")
        if group:
            yield from forms.subdomain(f"{here}.apiGroup", group)
        elif source.get("kind") != "PersistentVolumeClaim":
            message = "only PersistentVolumeClaim without an apiGroup"
            yield Fault(f"{here}.kind", "data-source", message, source.get("kind"))
        if source.get("namespace"):
            message = "is dropped without a word while the feature gate CrossNamespaceVolumeDataSource is off"
            yield Fault(f"{here}.namespace", "dropped-field", message, source["namespace"], "remove it", True)
    both = [spec.get("dataSource"), spec.get("dataSourceRef")]
    if None not in both:
        first, second = (
            tuple(one.get(k) for k in ("apiGroup", "kind", "name")) for one in both if one is not None
        )
        if first != second:
            yield Fault(
                f"{path}.dataSource", "data-source", "is another than dataSourceRef", passes="one of the two"
            )
