"""References out of a pod: fields of its own (the downward API), keys of ConfigMaps and Secrets.

Source: the Pod API's validation (v1, Kubernetes 1.34), on a pod whose structure is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.rules import forms
from jobset_steps.spec.rules.resources import divisor_faults

__all__ = ["ENV_FIELDS", "FILE_FIELDS", "field_faults", "key_faults", "resource_field_faults"]

FILE_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.labels",
    "metadata.annotations",
)
ENV_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.host", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_ENTRY = re.compile(r"(metadata\.labels|metadata\.annotations)\['(.*)'\]", re.DOTALL)
_RESOURCES = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)


def field_faults(path: str, reference: Mapping[str, Any], known: tuple[str, ...]) -> Iterator[Fault]:
    """A fieldRef; `known` are the plain fields that may be named there."""
    version, field = reference.get("apiVersion") or "v1", reference.get("fieldPath") or ""
    if version != "v1":
        yield Fault(f"{path}.apiVersion", "enum", "only v1", version, "v1")
    entry = _ENTRY.fullmatch(field)
    if entry is not None:
        key = entry[2].lower() if entry[1] == "metadata.annotations" else entry[2]
        right = not list(forms.label_key("", key))
    else:
        right = field in known
    if not right:
        message = "not a field that the downward API gives here"
        passes = "such as metadata.annotations['jobset.sigs.k8s.io/restart-attempt']"
        yield Fault(f"{path}.fieldPath", "field-path", message, field, passes)


def resource_field_faults(path: str, reference: Mapping[str, Any], *, file: bool) -> Iterator[Fault]:
    """A resourceFieldRef; in a file it names its container."""
    resource = reference.get("resource") or ""
    if file and not reference.get("containerName"):
        yield Fault(f"{path}.containerName", "required", "is required")
    elif resource not in _RESOURCES and not resource.startswith(("limits.hugepages-", "requests.hugepages-")):
        yield Fault(f"{path}.resource", "enum", f"one of {', '.join(_RESOURCES)}", resource)
    if resource in _RESOURCES or ".hugepages-" in resource:
        yield from divisor_faults(f"{path}.divisor", resource, reference.get("divisor"))


def key_faults(path: str, reference: Mapping[str, Any]) -> Iterator[Fault]:
    """A configMapKeyRef or secretKeyRef."""
    yield from forms.subdomain(f"{path}.name", reference.get("name") or "")
    yield from forms.key_name(f"{path}.key", reference.get("key") or "")
