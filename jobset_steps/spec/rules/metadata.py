"""Rules of metadata: labels, annotations, finalizers, owners, and the selectors that read labels.

Source: apimachinery's validation of object metadata and of label selectors (Kubernetes 1.34).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.rules import forms

__all__ = [
    "annotation_faults",
    "finalizer_faults",
    "label_faults",
    "owner_faults",
    "requirement_faults",
    "selector_faults",
]

_MOST_ANNOTATIONS = 256 * 1024
_OWN_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_OWNER_FIELDS = {
    "apiVersion": str,
    "kind": str,
    "name": str,
    "uid": str,
    "controller": bool,
    "blockOwnerDeletion": bool,
}


def label_faults(path: str, labels: Mapping[str, str] | None) -> Iterator[Fault]:
    """Keys and values of labels, or of a node selector."""
    for key, value in (labels or {}).items():
        yield from forms.label_key(f"{path}.{key}", key)
        yield from forms.label_value(f"{path}.{key}", value)


def annotation_faults(path: str, annotations: Mapping[str, str] | None) -> Iterator[Fault]:
    """Keys of annotations, whose case does not matter, and the size of all of them."""
    size = 0
    for key, value in (annotations or {}).items():
        yield from forms.label_key(f"{path}.{key}", key.lower())
        size += len(key.encode()) + len(value.encode())
    if size > _MOST_ANNOTATIONS:
        yield Fault(path, "too-long", f"at most {_MOST_ANNOTATIONS} bytes in all", size)


def finalizer_faults(path: str, finalizers: Iterable[str], *, of_pod: bool = False) -> Iterator[Fault]:
    """Names of finalizers; a pod's have a domain, unless they are Kubernetes' own."""
    for index, name in enumerate(finalizers):
        yield from forms.label_key(f"{path}[{index}]", name)
        if of_pod and name and "/" not in name and name not in _OWN_FINALIZERS:
            yield Fault(
                f"{path}[{index}]", "key-form", "a name with a domain", name, f"such as example.com/{name}"
            )


def owner_faults(path: str, owners: Iterable[Mapping[str, Any]]) -> Iterator[Fault]:
    """Owner references: complete, known fields only, at most one controller."""
    controllers: list[Mapping[str, Any]] = []
    for index, owner in enumerate(owners):
        here = f"{path}[{index}]"
        for name, value in owner.items():
            if name not in _OWNER_FIELDS:
                yield Fault(f"{here}.{name}", "unknown-field", "no such field of OwnerReference", name)
            elif value is not None and not isinstance(value, _OWNER_FIELDS[name]):
                kind = "text" if _OWNER_FIELDS[name] is str else "true or false"
                yield Fault(f"{here}.{name}", "type", f"must be {kind}", value)
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield Fault(f"{here}.{name}", "required", "is required")
        version = owner.get("apiVersion")
        if isinstance(version, str) and (version.count("/") > 1 or version.endswith("/")):
            yield Fault(
                f"{here}.apiVersion", "api-version", "group/version, or version", version, "such as v1"
            )
        if (version, owner.get("kind")) == ("v1", "Event"):
            yield Fault(here, "owner", "an Event owns nothing", owner.get("name"))
        # The server takes two that are the same for one.
        if owner.get("controller") is True and owner not in controllers:
            controllers.append(owner)
            if len(controllers) > 1:
                yield Fault(f"{here}.controller", "owner", "only one owner can be the controller")


def selector_faults(path: str, selector: Mapping[str, Any] | None) -> Iterator[Fault]:
    """A label selector."""
    yield from label_faults(f"{path}.matchLabels", (selector or {}).get("matchLabels"))
    for index, requirement in enumerate((selector or {}).get("matchExpressions") or ()):
        yield from requirement_faults(f"{path}.matchExpressions[{index}]", requirement)


def requirement_faults(
    path: str, requirement: Mapping[str, Any], *, numbers: bool = False, any_value: bool = False
) -> Iterator[Fault]:
    """One expression of a selector. `numbers`: nodes know Gt and Lt too; `any_value`: values are not looked at."""
    operator, values = requirement.get("operator") or "", requirement.get("values") or []
    known = ("In", "NotIn", "Exists", "DoesNotExist", *(("Gt", "Lt") if numbers else ()))
    if operator not in known:
        yield Fault(f"{path}.operator", "enum", f"one of {', '.join(known)}", operator)
    elif operator in ("In", "NotIn") and not values:
        yield Fault(f"{path}.values", "required", f"at least one value with {operator}")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield Fault(f"{path}.values", "selector-values", f"no values with {operator}", values, "remove them")
    elif operator in ("Gt", "Lt") and len(values) != 1:
        yield Fault(f"{path}.values", "selector-values", f"exactly one value with {operator}", values)
    yield from forms.label_key(f"{path}.key", requirement.get("key") or "")
    if not any_value:
        for index, value in enumerate(values):
            yield from forms.label_value(f"{path}.values[{index}]", value)
