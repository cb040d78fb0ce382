"""From plain data or YAML to a JobSet: whatever is wrong with the shape becomes a Fault with the author's own path.

All faults of a document at once. Rules that need more than one field are in `check`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from jobset_steps.spec.fault import Fault

__all__ = ["path_of", "shape_faults"]


def path_of(location: Iterable[int | str]) -> str:
    """A path as YAML authors write it: "spec.replicatedJobs[0].name"."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def shape_faults(error: ValidationError, data: Any) -> tuple[Fault, ...]:
    """Faults of one failed validation, in the order of the document."""
    return tuple(_fault(item, data) for item in error.errors(include_url=False, include_context=True))


def _fault(item: Mapping[str, Any], data: Any) -> Fault:
    location, kind = tuple(item["loc"]), str(item["type"])
    path = path_of(location)
    if kind == "extra_forbidden":
        parent = data
        for part in location[:-1]:
            parent = parent[part]
        return Fault(
            path, "unknown-field", "no such field", location[-1], _did_you_mean(str(location[-1]), parent)
        )
    if kind == "missing":
        return Fault(path, "required", "is required")
    if kind == "literal_error":
        return Fault(path, "enum", f"one of {item['ctx']['expected']}", item["input"])
    return Fault(path, "type", str(item["msg"]), item["input"])


def _did_you_mean(name: str, parent: Any) -> str | None:
    close = difflib.get_close_matches(name, [key for key in parent if key != name])
    return f"did you mean {close[0]}?" if close else None
