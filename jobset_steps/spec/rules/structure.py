"""Names, types and enums of everything in a pod template, held against the API server's own OpenAPI document.

The document is in schema/pod.json, shrunk by tools/generate_pod_schema. What a lenient client drops without a word is an
error here.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from jobset_steps.spec.fault import Fault

__all__ = ["structure_faults"]

_QUANTITY = re.compile(r"[+-]?(\d+|\d+\.\d*|\.\d+)(m|n|u|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d+)?")


@cache
def _definitions() -> dict[str, Any]:
    text = resources.files("jobset_steps.spec.schema").joinpath("pod.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def structure_faults(path: str, value: Any, definition: str) -> Iterator[Fault]:
    """Faults of a value that should be a `definition` such as "PodTemplateSpec"."""
    yield from _check(path, value, definition)


def _check(path: str, value: Any, type_: Any) -> Iterator[Fault]:
    if value is None or type_ == "any":
        return
    if isinstance(type_, Mapping):
        yield from _composite(path, value, type_)
    elif type_ in _SCALARS:
        right, name = _SCALARS[type_]
        if not right(value):
            yield Fault(path, "type", f"must be {name}", value)
        elif type_ == "quantity" and not _QUANTITY.fullmatch(str(value)):
            yield Fault(path, "quantity", "must be a quantity", value, 'such as "500m", "2", "4Gi"')
    elif not isinstance(value, Mapping):
        yield Fault(path, "type", "must be a mapping", value)
    else:
        fields = _definitions()[type_]
        for key, item in value.items():
            where = f"{path}.{key}"
            if key in fields:
                yield from _check(where, item, fields[key])
            else:
                close = difflib.get_close_matches(str(key), fields)
                passes = f"did you mean {close[0]}?" if close else None
                yield Fault(where, "unknown-field", f"no such field of {type_}", key, passes)


def _composite(path: str, value: Any, type_: Mapping[str, Any]) -> Iterator[Fault]:
    (kind, inner), *_ = type_.items()
    if kind == "list":
        if not isinstance(value, list | tuple):
            yield Fault(path, "type", "must be a list", value)
            return
        for index, item in enumerate(value):
            yield from _check(f"{path}[{index}]", item, inner)
    elif kind == "map":
        if not isinstance(value, Mapping):
            yield Fault(path, "type", "must be a mapping", value)
            return
        for key, item in value.items():
            yield from _check(f"{path}.{key}", item, inner)
    elif value not in inner:
        if isinstance(value, str):
            close = difflib.get_close_matches(value, inner)
            yield Fault(
                path,
                "enum",
                f"one of {', '.join(inner)}",
                value,
                f"did you mean {close[0]}?" if close else None,
            )
        else:
            yield Fault(path, "type", f"must be text, one of {', '.join(inner)}", value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_SCALARS: dict[str, Any] = {
    "string": (lambda value: isinstance(value, str), 'text (write numbers and true in quotes: "1")'),
    "integer": (lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number"),
    "number": (_number, "a number"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "quantity": (lambda value: isinstance(value, str) or _number(value), "a quantity"),
    "intorstring": (lambda value: isinstance(value, str) or _number(value), "a number or text"),
    "time": (lambda value: isinstance(value, str), "a time"),
    "microtime": (lambda value: isinstance(value, str), "a time"),
}
