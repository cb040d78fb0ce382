"""Names, types, sizes and enums of everything in a pod template, held against the API server's own OpenAPI document.

The document is in schema/pod.json, shrunk by tools/generate_pod_schema. What a lenient client drops without a word is an
error here; null counts as unset, as it does for the server.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.job import plain
from jobset_steps.spec.rules.quantity import amount_of

__all__ = ["definition", "settled", "structure_faults", "template_faults"]


@cache
def _definitions() -> dict[str, Any]:
    text = resources.files("jobset_steps.spec.schema").joinpath("pod.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def definition(name: str) -> dict[str, Any]:
    """The fields of a type such as "PodSpec", each with its type; none for what is no type of that kind."""
    found: dict[str, Any] = _definitions().get(name, {})
    return found


# JobSet's CRD refuses a template without them, whether or not anything would be made of it.
_MUST_BE_THERE = {
    "PodTemplateSpec": ("spec",),
    "PodSpec": ("containers",),
    "NodeSelector": ("nodeSelectorTerms",),
    "CephFSVolumeSource": ("monitors",),
    "RBDVolumeSource": ("monitors",),
    "ContainerRestartRule": ("action",),
    "ContainerRestartRuleOnExitCodes": ("operator",),
    "PodCertificateProjection": ("signerName", "keyType"),
    "ProjectedVolumeSource": ("sources",),
    "ScaleIOVolumeSource": ("secretRef",),
    "TypedLocalObjectReference": ("apiGroup",),
    "TypedObjectReference": ("apiGroup",),
}


def template_faults(tree: Any) -> Iterator[Fault]:
    """Faults of every pod template that can be found in a tree, whatever else is wrong with it."""
    spec = tree.get("spec") if isinstance(tree, Mapping) else None
    jobs = spec.get("replicatedJobs") if isinstance(spec, Mapping) else None
    for index, node in enumerate(jobs if isinstance(jobs, list | tuple) else ()):
        for key in ("template", "spec", "template"):
            node = node.get(key) if isinstance(node, Mapping) else None
        if isinstance(node, Mapping):
            path = f"spec.replicatedJobs[{index}].template.spec.template"
            yield from structure_faults(path, plain(node), "PodTemplateSpec")


def structure_faults(path: str, value: Any, definition: str) -> Iterator[Fault]:
    """Faults of a value that should be a `definition` such as "PodTemplateSpec"."""
    yield from _check(path, value, definition)


def settled(value: Any, type_: Any) -> Any:
    """A value of the right shape as the server reads it: what is null is not there, and empty in a list."""
    if isinstance(type_, Mapping):
        if "list" in type_:
            return [settled(_empty(type_["list"]) if item is None else item, type_["list"]) for item in value]
        if "map" in type_:
            return {key: settled(item, type_["map"]) for key, item in value.items() if item is not None}
        return value
    if type_ in _SCALARS or type_ == "any":
        return value
    fields = _definitions()[type_]
    return {key: settled(item, fields[key]) for key, item in value.items() if item is not None}


def _empty(type_: Any) -> Any:
    """What null stands for inside a list."""
    if isinstance(type_, Mapping):
        return [] if "list" in type_ else {} if "map" in type_ else ""
    return {"string": "", "int32": 0, "int64": 0, "boolean": False, "quantity": "0"}.get(type_, {})


def _check(path: str, value: Any, type_: Any) -> Iterator[Fault]:
    if value is None or type_ == "any":
        return
    if isinstance(type_, Mapping):
        yield from _composite(path, value, type_)
    elif type_ in _SCALARS:
        right, name = _SCALARS[type_]
        if not right(value):
            yield Fault(path, "type", f"must be {name}", value)
        elif type_ == "quantity" and amount_of(value) is None:
            yield Fault(path, "quantity", "must be a quantity", value, 'such as "500m", "2", "4Gi"')
    elif not isinstance(value, Mapping):
        yield Fault(path, "type", "must be a mapping", value)
    else:
        fields = _definitions()[type_]
        for name in _MUST_BE_THERE.get(type_, ()):
            if value.get(name) is None:
                yield Fault(f"{path}.{name}", "required", "is required")
        for key, item in value.items():
            where = f"{path}.{key}"
            if key in fields:
                yield from _check(where, item, fields[key])
            else:
                close = difflib.get_close_matches(str(key), fields)
                passes = f"did you mean {close[0]}?" if close else None
                yield Fault(where, "unknown-field", f"no such field of {type_}", key, passes)


def _composite(path: str, value: Any, type_: Mapping[str, Any]) -> Iterator[Fault]:
    if "list" in type_:
        if not isinstance(value, list | tuple):
            yield Fault(path, "type", "must be a list", value)
            return
        inner = type_["list"]
        read = [_empty(inner) if item is None else item for item in value]
        faults = [fault for i, item in enumerate(read) for fault in _check(f"{path}[{i}]", item, inner)]
        yield from faults
        if "keys" in type_ and all(fault.rule == "enum" for fault in faults):
            yield from _repeated(path, settled(value, type_), type_["keys"])
    elif "map" in type_:
        if not isinstance(value, Mapping):
            yield Fault(path, "type", "must be a mapping", value)
            return
        for key, item in value.items():
            yield from _check(f"{path}.{key}", item, type_["map"])
    elif not isinstance(value, str):
        yield Fault(path, "type", f"must be text, one of {', '.join(type_['enum'])}", value)
    elif value and value not in type_["enum"]:
        # Empty text counts as unset; rules that know a field where it does not say so themselves.
        close = difflib.get_close_matches(value, type_["enum"])
        passes = f"did you mean {close[0]}?" if close else None
        yield Fault(path, "enum", f"one of {', '.join(type_['enum'])}", value, passes)


def _repeated(path: str, items: list[Any], keys: Mapping[str, Any]) -> Iterator[Fault]:
    """Items that are the same in every key; without keys, the same altogether."""
    seen: dict[Any, int] = {}
    for index, item in enumerate(items):
        identity = tuple(item.get(key) or default for key, default in keys.items()) if keys else item
        if identity in seen:
            where, given = f"{path}[{index}]", " ".join(map(str, identity)) if keys else identity
            if len(keys) == 1:
                where += f".{next(iter(keys))}"
            yield Fault(where, "duplicate", f"already at index {seen[identity]}", given, "each once")
        seen.setdefault(identity, index)


def _whole(value: Any, bits: int) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        return False
    return bool(-(2 ** (bits - 1)) <= value < 2 ** (bits - 1))


_SCALARS: dict[str, Any] = {
    "string": (lambda value: isinstance(value, str), 'text (write numbers and true in quotes: "1")'),
    "int32": (lambda value: _whole(value, 32), "a whole number of at most 32 bits"),
    "int64": (lambda value: _whole(value, 64), "a whole number of at most 64 bits"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "quantity": (
        lambda value: isinstance(value, str | int | float) and not isinstance(value, bool),
        "a quantity",
    ),
    "intorstring": (
        lambda value: isinstance(value, str) or _whole(value, 32),
        "a number or text",
    ),
    "time": (lambda value: isinstance(value, str), "a time"),
}
