"""From plain data or YAML to a JobSet: whatever is wrong with the shape becomes a Fault with the author's own path.

All faults of a document at once. Rules that need more than one field are in `check`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from jobset_steps.spec.fault import Fault

__all__ = ["path_of", "shape_faults"]


def path_of(location: Iterable[int | str]) -> str:
    """A path as YAML authors write it: "spec.replicatedJobs[0].name"."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


_WORDS = {
    "int_type": "must be a whole number",
    "string_type": 'must be text (write numbers and true in quotes: "1")',
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "none_required": "must be left out",
    "greater_than_equal": "is too small: the API has 32 bits, or 64 for seconds",
    "less_than": "is too large: the API has 32 bits, or 64 for seconds",
}


def shape_faults(error: ValidationError, model: type[BaseModel]) -> tuple[Fault, ...]:
    """Faults of one failed validation of `model`, in the order of the document."""
    return tuple(_fault(item, model) for item in error.errors(include_url=False, include_context=True))


def _fault(item: Mapping[str, Any], model: type[BaseModel]) -> Fault:
    location, kind = tuple(item["loc"]), str(item["type"])
    path = path_of(location)
    if kind == "extra_forbidden":
        close = difflib.get_close_matches(str(location[-1]), _fields_at(model, location[:-1]))
        passes = f"did you mean {close[0]}?" if close else None
        return Fault(path, "unknown-field", "no such field", location[-1], passes)
    if kind == "missing":
        return Fault(path, "required", "is required")
    if kind == "literal_error":
        return Fault(path, "enum", f"one of {item['ctx']['expected']}", item["input"])
    return Fault(path, "type", _WORDS.get(kind, str(item["msg"])), item["input"])


def _fields_at(model: type[BaseModel], location: Iterable[int | str]) -> list[str]:
    """The names that the model at a place of the document has."""
    for part in location:
        if isinstance(part, str):
            field = next((f for f in model.model_fields.values() if f.alias == part), None)
            inner = _model_in(field.annotation) if field else None
            if inner is None:
                return []
            model = inner
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model in an annotation such as `tuple[X, ...]` or `X | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part)) is not None), None)
