"""A JobSet with holes: what an author can write before the values of a pipeline are known.

A JobSet never holds a hole. `check` does all that can be done now, `bind` makes the JobSet when the values arrive, with the
declared types, by the same rules and with the same messages. Holes come from upstream outputs of Kubeflow and Hera, which
are recognised by their form and never imported, or from `$hole` in YAML.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.jobset import JobSet

__all__ = ["Hole", "HoleType", "SpecTemplate", "kfp_type", "template_of"]

HoleType = Literal["string", "integer", "number", "boolean", "list", "object"]

_Read = Callable[[re.Match[str]], tuple[str, HoleType]]

_TYPES: tuple[HoleType, ...] = ("string", "integer", "number", "boolean", "list", "object")
_KEY = "$hole"
_PART = re.compile(r"\$hole\{([A-Za-z0-9_.-]+)\}")
# A stand-in of each type, with which everything around a hole can be checked before its value is known.
_STAND_IN: dict[str, Any] = {
    "string": "x",
    "integer": 1,
    "number": 1.0,
    "boolean": True,
    "list": [],
    "object": {},
}


@dataclass(frozen=True, slots=True)
class Hole:
    """A value to come. `source` is what stood there: a foreign object or text, for the engine to resolve."""

    name: str
    type: HoleType = "string"
    source: Any = field(default=None, compare=False)


@dataclass(frozen=True)
class SpecTemplate:
    """A JobSet's tree in camelCase with holes: `{"$hole": name}` for a whole value, `$hole{name}` within text."""

    tree: Mapping[str, Any]
    holes: tuple[Hole, ...]

    def check(self, *, waive: tuple[str, ...] = ()) -> tuple[Fault, ...]:
        """Every fault that neither a value of a hole nor a default could mend."""
        from jobset_steps.spec.check import check
        from jobset_steps.spec.defaults import with_defaults

        try:
            jobset = JobSet.from_dict(self._fill({hole.name: _STAND_IN[hole.type] for hole in self.holes}))
        except InvalidSpec as error:
            return tuple(fault for fault in error.faults if not self._in_hole(fault.path))
        faults = check(with_defaults(jobset), waive=waive)
        return tuple(fault for fault in faults if not self._in_hole(fault.path))

    def bind(self, values: Mapping[str, Any]) -> JobSet:
        """The JobSet with these values. Text is converted to the declared type and otherwise kept byte for byte.

        Raises InvalidSpec with every missing, unknown or wrongly typed value, then with every fault of the shape.
        """
        faults: list[Fault] = []
        typed: dict[str, Any] = {}
        known = {hole.name: hole for hole in self.holes}
        for name in values:
            if name not in known:
                close = difflib.get_close_matches(name, known)
                hint = (
                    f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(known)) or 'none'}"
                )
                faults.append(Fault(name, "unknown-value", "no hole of this name", passes=hint))
        for hole in self.holes:
            if hole.name not in values:
                faults.append(Fault(hole.name, "missing-value", f"needs a value ({hole.type})"))
                continue
            try:
                typed[hole.name] = _typed(values[hole.name], hole.type)
            except (ValueError, OverflowError):
                passes = _EXAMPLES[hole.type]
                faults.append(
                    Fault(hole.name, "value-type", f"must be {hole.type}", values[hole.name], passes)
                )
        if faults:
            raise InvalidSpec(faults)
        return JobSet.from_dict(self._fill(typed))

    def to_json(self) -> str:
        """The template as JSON, without the sources of its holes."""
        return json.dumps(
            {"tree": self.tree, "holes": [{"name": hole.name, "type": hole.type} for hole in self.holes]},
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str) -> SpecTemplate:
        """The template of `to_json`. Raises InvalidSpec."""
        try:
            data = json.loads(text)
            made = cls(data["tree"], tuple(Hole(hole["name"], hole["type"]) for hole in data["holes"]))
            # Every hole of the tree is declared, with a type that there is.
            made._fill({hole.name: _STAND_IN[hole.type] for hole in made.holes})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InvalidSpec(
                [Fault("", "template", f"not a template: {type(error).__name__}: {error}")]
            ) from None
        return made

    def _fill(self, values: Mapping[str, Any]) -> Any:
        def fill(node: Any) -> Any:
            if isinstance(node, Mapping):
                if set(node) == {_KEY}:
                    return values[node[_KEY]]
                return {key: fill(item) for key, item in node.items()}
            if isinstance(node, list | tuple):
                return [fill(item) for item in node]
            if isinstance(node, str):
                return _PART.sub(lambda part: _text(values[part[1]]) if part[1] in values else part[0], node)
            return node

        return fill(self.tree)

    def _in_hole(self, path: str) -> bool:
        return any(
            path == hole or path.startswith((hole + ".", hole + "[")) for hole in _hole_paths(self.tree, "")
        )


def template_of(tree: Any) -> JobSet | SpecTemplate:
    """A JobSet, or a SpecTemplate where the tree holds upstream outputs or `$hole`s.

    Recognised: Kubeflow channels and their text form, Hera parameters, tasks' outputs in Argo's text form, `{"$hole": name}`
    (with an optional "type"). Raises InvalidSpec for a JobSet of the wrong shape.
    """
    holes: dict[str, Hole] = {}
    marked = _mark(tree.to_dict() if isinstance(tree, JobSet) else tree, holes)
    if not holes:
        return JobSet.from_dict(marked)
    counts: set[str] = set()
    placed = _place(marked, (), counts)
    return SpecTemplate(
        placed,
        tuple(replace(hole, type="integer") if hole.name in counts else hole for hole in holes.values()),
    )


def _place(node: Any, path: tuple[str, ...], counts: set[str]) -> Any:
    """Where a hole stands decides what it becomes, whatever its source is declared as: words of a command line and values
    of variables are text, counts are whole numbers (their names are added to `counts`).
    """
    if isinstance(node, Mapping):
        if set(node) == {_KEY}:
            if path[-1:] in (("replicas",), ("parallelism",), ("completions",)):
                counts.add(node[_KEY])
            is_text = path[-2:-1] in (("command",), ("args",)) or path[-1:] == ("value",)
            return f"$hole{{{node[_KEY]}}}" if is_text else dict(node)
        return {key: _place(item, (*path, key), counts) for key, item in node.items()}
    if isinstance(node, list):
        return [_place(item, (*path, ""), counts) for item in node]
    return node


def _mark(node: Any, holes: dict[str, Hole]) -> Any:
    if isinstance(node, Mapping):
        if _KEY in node and set(node) <= {_KEY, "type"}:
            return _declared(node, holes)
        return {key: _mark(item, holes) for key, item in node.items()}
    if isinstance(node, list | tuple):
        return [_mark(item, holes) for item in node]
    if isinstance(node, str):
        return _mark_text(node, holes)
    if (channel := _channel(node)) is not None:
        return {_KEY: _add(holes, *channel, node)}
    return node


def _declared(node: Mapping[str, Any], holes: dict[str, Hole]) -> dict[str, str]:
    name, type_ = str(node[_KEY]), node.get("type", "string")
    if type_ not in _TYPES or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise InvalidSpec(
            [
                Fault(
                    _KEY,
                    "hole",
                    "a hole has a name and a type",
                    dict(node),
                    f"type: one of {', '.join(_TYPES)}",
                )
            ]
        )
    return {_KEY: _add(holes, name, type_, None)}


def _mark_text(text: str, holes: dict[str, Hole]) -> Any:
    """Text with foreign placeholders turned into parts; text that is one placeholder becomes a whole hole."""
    for pattern, read in _FOREIGN:
        if (whole := pattern.fullmatch(text)) is not None:
            name, type_ = read(whole)
            return {_KEY: _add(holes, name, type_, text)}
        text = pattern.sub(partial(_as_part, holes, read), text)
    for part in _PART.finditer(text):
        if part[1] not in holes:
            holes[part[1]] = Hole(part[1])
    return text


def _as_part(holes: dict[str, Hole], read: _Read, match: re.Match[str]) -> str:
    name, type_ = read(match)
    return f"$hole{{{_add(holes, name, type_, match[0])}}}"


def _add(holes: dict[str, Hole], name: str, type_: HoleType, source: Any) -> str:
    known = holes.get(name)
    if known is None or known.source is None:
        holes[name] = Hole(name, type_, source)
    return name


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


_EXAMPLES = {
    "string": "text",
    "integer": "a whole number such as 4",
    "number": "a number such as 0.1",
    "boolean": "true or false",
    "list": 'a JSON list such as ["a", "b"]',
    "object": 'a JSON object such as {"a": 1}',
}


def _typed(value: Any, type_: HoleType) -> Any:
    """A value as its declared type; engines deliver everything as text. Raises ValueError."""
    if type_ == "string":
        return _text(value)
    if type_ == "boolean":
        value = {"true": True, "false": False}.get(_text(value).strip().lower())
        return _must(value, isinstance(value, bool))
    given = json.loads(value) if isinstance(value, str) else value
    if type_ == "list":
        return _must(given, isinstance(given, list))
    if type_ == "object":
        return _must(given, isinstance(given, dict))
    _must(given, isinstance(given, int | float) and not isinstance(given, bool))
    if type_ == "number":
        return given
    # Kubeflow hands whole numbers over as floats ("4.0").
    return _must(int(given), int(given) == given)


def _must(value: Any, right: bool) -> Any:
    if not right:
        raise ValueError
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _hole_paths(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, Mapping):
        if set(node) == {_KEY}:
            yield path
            return
        for key, item in node.items():
            yield from _hole_paths(item, f"{path}.{key}" if path else str(key))
    elif isinstance(node, list | tuple):
        for index, item in enumerate(node):
            yield from _hole_paths(item, f"{path}[{index}]")
    elif isinstance(node, str) and _PART.search(node):
        yield path
