"""What belongs at a place of a JobSet: text, a number, a list. Read off the models and the schema of pod templates."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from jobset_steps.spec.job import JobSpec, OnExitCodes, OnPodCondition, PodFailurePolicyRule
from jobset_steps.spec.jobset import JobSet, ReplicatedJob, VolumeClaimPolicy
from jobset_steps.spec.rules.structure import definition

__all__ = ["HoleType", "examples_at", "type_at"]

HoleType = Literal["string", "integer", "number", "boolean", "list", "object"]


@dataclass(frozen=True)
class _Schema:
    """A type of the pod schema, where the models hold plain data."""

    type: Any


# Where the models hold plain data, by model and field.
_PLAIN: dict[tuple[type[BaseModel], str], Any] = {
    (JobSpec, "template"): _Schema("PodTemplateSpec"),
    (JobSpec, "selector"): _Schema("LabelSelector"),
    (VolumeClaimPolicy, "templates"): _Schema({"list": "PersistentVolumeClaim"}),
}
# Where the models hold any text, as JobSet's CRD does, and the Job API has choices.
_CHOICES: dict[tuple[type[BaseModel], str], Any] = {
    (JobSpec, "completion_mode"): Literal["Indexed", "NonIndexed"],
    (JobSpec, "pod_replacement_policy"): Literal["Failed", "TerminatingOrFailed"],
    (PodFailurePolicyRule, "action"): Literal["FailJob", "Ignore", "Count", "FailIndex"],
    (OnExitCodes, "operator"): Literal["In", "NotIn"],
    (OnPodCondition, "status"): Literal["True", "False", "Unknown"],
}
_AMPLE: dict[type[BaseModel], dict[str, Any]] = {
    ReplicatedJob: {"replicas": 1000},
    JobSpec: {"completionMode": "Indexed", "completions": 1000, "parallelism": 1000},
}
_SCALARS: dict[Any, HoleType] = {
    "string": "string",
    "time": "string",
    "int32": "integer",
    "int64": "integer",
    "boolean": "boolean",
    str: "string",
    int: "integer",
    bool: "boolean",
}


def type_at(path: Iterable[str | int]) -> HoleType | None:
    """The type that a value at a path must have; None where several are right, or where no field is."""
    kind = _kind_at(path)
    return _of_schema(kind.type) if isinstance(kind, _Schema) else _of_model(kind)


def examples_at(path: Iterable[str | int]) -> tuple[Any, ...]:
    """Values that can stand at a path where not every one of its type can: choices, quantities, the least of an object."""
    kind = _kind_at(path)
    if isinstance(kind, _Schema):
        if kind.type == "quantity":
            return "1", "1000000"
        return tuple(kind.type.get("enum", ())) if isinstance(kind.type, Mapping) else ()
    bare = _bare(kind)
    if _is_model(bare):
        return _least(bare), _least(bare, ample=True)
    return get_args(bare) if get_origin(bare) is Literal else ()


def _least(model: type[BaseModel], *, ample: bool = False) -> dict[str, Any]:
    """An object with what its model requires, and no more; `ample`: with pods enough for whatever counts on them."""
    made: dict[str, Any] = dict(_AMPLE.get(model, {})) if ample else {}
    for name, field in model.model_fields.items():
        if field.is_required():
            bare = _bare(field.annotation)
            choices = get_args(bare) if get_origin(bare) is Literal else ({},)
            made[field.alias or name] = _least(bare, ample=ample) if _is_model(bare) else choices[0]
    return made


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _kind_at(path: Iterable[str | int]) -> Any:
    """The annotation of a model's field, or a _Schema; None where no field is."""
    kind: Any = JobSet
    for part in path:
        kind = _in_schema(kind.type, part) if isinstance(kind, _Schema) else _in_model(kind, part)
        if kind is None:
            return None
    return kind


def _in_schema(type_: Any, part: str | int) -> _Schema | None:
    if isinstance(type_, Mapping):
        inner = type_.get("list" if isinstance(part, int) else "map")
    else:
        inner = definition(type_).get(str(part))
    return None if inner is None else _Schema(inner)


def _of_schema(type_: Any) -> HoleType | None:
    if isinstance(type_, Mapping):
        return "list" if "list" in type_ else "object" if "map" in type_ else "string"
    return _SCALARS.get(type_) or ("object" if definition(type_) else None)


def _in_model(annotation: Any, part: str | int) -> Any:
    kind = _bare(annotation)
    if _is_model(kind):
        for name, field in kind.model_fields.items():
            if part in (name, field.alias):
                return {**_PLAIN, **_CHOICES}.get((kind, name), field.annotation)
        return None
    inner = get_args(kind)
    if get_origin(kind) is tuple and isinstance(part, int):
        return inner[0]
    return inner[1] if get_origin(kind) is dict and isinstance(part, str) else None


def _of_model(annotation: Any) -> HoleType | None:
    kind = _bare(annotation)
    if get_origin(kind) is Literal:
        return "string"
    if get_origin(kind) is tuple:
        return "list"
    if get_origin(kind) is dict or (_is_model(kind)):
        return "object"
    return _SCALARS.get(kind)


def _bare(annotation: Any) -> Any:
    """An annotation without what validates it, and without None."""
    while True:
        if hasattr(annotation, "__metadata__"):
            annotation = annotation.__origin__
        elif get_origin(annotation) in (Union, types.UnionType):
            (annotation,) = (kind for kind in get_args(annotation) if kind is not type(None))
        else:
            return annotation
