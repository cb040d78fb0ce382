"""Finds the holes of a spec: outputs of other steps, recognised by their form and never imported, and `$hole` in YAML.

Where a hole stands decides what its value becomes, whatever its source is declared as: text in a command line, a variable or
a label, a whole number as a count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_args

from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.parse import path_of
from jobset_steps.spec.places import HoleType, type_at
from jobset_steps.spec.template import HOLE_KEY, HOLE_PART, Hole, Path, SpecTemplate

__all__ = ["kfp_type", "template_of"]

_TEXT: tuple[tuple[HoleType, Path], ...] = (("string", ()),)

_Read = Callable[[re.Match[str]], tuple[str, HoleType]]


class _Found:
    """The holes met so far: what stood there, and what each place says of the type."""

    def __init__(self) -> None:
        self.sources: dict[str, Any] = {}
        self._types: dict[str, dict[HoleType, Path]] = {}

    def add(self, name: str, source: Any = None) -> str:
        if self.sources.get(name) is None:
            self.sources[name] = source
        return name

    def says(self, name: str, type_: HoleType | None, path: Path) -> None:
        """A place that wants a type, or declares one. Text is what every value can become, so it says nothing."""
        if type_ not in (None, "string"):
            self._types.setdefault(name, {}).setdefault(type_, path)

    def holes(self) -> tuple[Hole, ...]:
        """Raises InvalidSpec for holes that would have to be of two types."""
        faults = []
        made = []
        for name, source in self.sources.items():
            said = self._types.get(name, {})
            if "integer" in said:
                said.pop("number", None)  # whole numbers arrive as floats, too
            (type_, first), *more = said.items() or _TEXT
            for other, path in more:
                message = f"must be {other} here, and {type_} at {path_of(first)}"
                faults.append(Fault(path_of(path), "hole-type", message, passes="two holes", hole=name))
            made.append(Hole(name, type_, source))
        if faults:
            raise InvalidSpec(faults)
        return tuple(made)


def template_of(tree: Any) -> JobSet | SpecTemplate:
    """A JobSet, or a SpecTemplate where the tree holds upstream outputs or `$hole`s.

    Recognised: Kubeflow channels and their text form, Hera parameters, tasks' outputs in Argo's text form, `{"$hole": name}`
    (with an optional "type"). Raises InvalidSpec for a JobSet of the wrong shape, and for a hole of two types.
    """
    found = _Found()
    marked = _mark(tree.to_dict() if isinstance(tree, JobSet) else tree, (), found)
    return SpecTemplate(marked, found.holes()) if found.sources else JobSet.from_dict(marked)


def _mark(node: Any, path: Path, found: _Found) -> Any:
    if isinstance(node, Mapping):
        if HOLE_KEY in node and set(node) <= {HOLE_KEY, "type"}:
            name, type_ = _declared(node, path)
            return _whole(found.add(name), type_, path, found)
        return {key: _mark(item, (*path, key), found) for key, item in node.items()}
    if isinstance(node, list | tuple):
        return [_mark(item, (*path, index), found) for index, item in enumerate(node)]
    if isinstance(node, str):
        return _mark_text(node, path, found)
    if (channel := _channel(node)) is not None:
        return _whole(found.add(channel[0], node), channel[1], path, found)
    return node


def _whole(name: str, type_: HoleType, path: Path, found: _Found) -> Any:
    """What a hole becomes that is all of a value: part of a text, where only text is right."""
    wanted = type_at(path)
    found.says(name, type_, path)
    found.says(name, wanted, path)
    return f"$hole{{{name}}}" if wanted == "string" else {HOLE_KEY: name}


def _declared(node: Mapping[str, Any], path: Path) -> tuple[str, HoleType]:
    name, type_ = str(node[HOLE_KEY]), node.get("type", "string")
    if type_ not in get_args(HoleType) or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        message = "a hole has a name and a type"
        passes = f"type: one of {', '.join(get_args(HoleType))}"
        raise InvalidSpec([Fault(path_of(path), "hole", message, dict(node), passes)])
    return name, type_


def _mark_text(text: str, path: Path, found: _Found) -> Any:
    """Text with foreign placeholders turned into parts; text that is one placeholder becomes a whole hole."""
    for pattern, read in _FOREIGN:
        if (whole := pattern.fullmatch(text)) is not None:
            name, type_ = read(whole)
            return _whole(found.add(name, text), type_, path, found)
        text = pattern.sub(partial(_as_part, path, found, read), text)
    for part in HOLE_PART.finditer(text):
        found.add(part[1])
    return text


def _as_part(path: Path, found: _Found, read: _Read, match: re.Match[str]) -> str:
    name, type_ = read(match)
    found.says(name, type_, path)
    return f"$hole{{{found.add(name, match[0])}}}"


def _kfp(match: re.Match[str]) -> tuple[str, HoleType]:
    name = "-".join(part for part in (match["task"], match["name"]) if part)
    return name, kfp_type(match["type"]) or "string"


def _argo(match: re.Match[str]) -> tuple[str, HoleType]:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", match[1]), "string"


_KFP_TYPES: dict[str, HoleType] = {
    **dict.fromkeys(("string", "str", "text"), "string"),
    **dict.fromkeys(("integer", "int", "number_integer"), "integer"),
    **dict.fromkeys(("float", "double", "number_double"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("list", "jsonarray"), "list"),
    **dict.fromkeys(("dict", "jsonobject", "struct"), "object"),
}


def kfp_type(name: str) -> HoleType | None:
    """The type of a parameter by any of Kubeflow's names for it ("Integer", "int", "Dict[str, int]"); None: an artifact."""
    return _KFP_TYPES.get(name.strip("'\"").partition("[")[0].lower())


_FOREIGN: tuple[tuple[re.Pattern[str], _Read], ...] = (
    (re.compile(r"\{\{channel:task=(?P<task>[^;]*);name=(?P<name>[^;]*);type=(?P<type>[^;]*);\}\}"), _kfp),
    (re.compile(r"\{\{((?:inputs|tasks|steps|workflow|item|outputs|pod|retries)[^{}]*)\}\}"), _argo),
)


def _channel(node: Any) -> tuple[str, HoleType] | None:
    """Name and type of an upstream output given as an object, None for anything else."""
    if (
        hasattr(node, "pattern") and hasattr(node, "channel_type") and hasattr(node, "task_name")
    ):  # Kubeflow channel
        name = "-".join(part for part in (node.task_name, node.name) if part)
        return name, kfp_type(str(node.channel_type)) or "string"
    if hasattr(node, "value_from") and hasattr(node, "enum") and hasattr(node, "name"):  # Hera parameter
        # Two tasks may have outputs of the same name: what the parameter refers to tells them apart.
        value = getattr(node, "value", None)
        reference = _FOREIGN[1][0].fullmatch(value) if isinstance(value, str) else None
        return _argo(reference) if reference else (str(node.name), "string")
    return None
