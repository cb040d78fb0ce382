"""A JobSet with holes: what an author can write before the values of a pipeline are known.

A JobSet never holds a hole. `check` does all that can be done now, `bind` makes the JobSet when the values arrive, with the
declared types, by the same rules and with the same messages. Holes are found by `spec.holes`.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.parse import path_of
from jobset_steps.spec.places import HoleType, examples_at
from jobset_steps.spec.versions import DEFAULT_VERSION

__all__ = ["HOLE_KEY", "HOLE_PART", "Hole", "HoleType", "SpecTemplate"]

HOLE_KEY = "$hole"
HOLE_PART = re.compile(r"\$hole\{([A-Za-z0-9_.-]+)\}")
# Neither a command nor a variable nor a name can hold them.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_EXAMPLES: dict[HoleType, str] = {
    "string": "text without NUL",
    "integer": "a whole number such as 4",
    "number": "a number such as 0.1",
    "boolean": "true or false",
    "list": 'a JSON list such as ["a", "b"]',
    "object": 'a JSON object such as {"a": 1}',
}

# What else things with a name need: a claim, a volume, a container, a replicated job.
_NAMED: tuple[dict[str, Any], ...] = (
    {},
    {"emptyDir": {}},
    {"image": "x"},
    {"template": {"spec": {"template": {"spec": {"containers": [{"name": "x", "image": "x"}]}}}}},
)

Path = tuple[str | int, ...]
_Key = tuple[str, str]


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

    def check(
        self, *, waive: tuple[str, ...] = (), jobset_version: str = DEFAULT_VERSION, as_is: bool = False
    ) -> tuple[Fault, ...]:
        """Every fault that neither a value of a hole nor a default could mend.

        Judged with a stand-in for each value. A fault elsewhere that depends on a value goes away with another stand-in, so
        it waits for the value; the others that the document itself suggests are tried.
        """

        def judged(values: Mapping[str, Any]) -> tuple[bool, dict[_Key, Fault], set[_Key]]:
            """(whether the shape is right, the faults outside of holes, those of the values themselves)."""
            try:
                jobset = JobSet.from_dict(self._fill(values))
            except InvalidSpec as error:
                shaped, found = False, error.faults
            else:
                complete = jobset if as_is else with_defaults(jobset)
                shaped, found = True, check(complete, waive=waive, jobset_version=jobset_version)
            by_key = {(fault.path, fault.rule): fault for fault in found}
            inside = {key for key in by_key if any(_within(key[0], path) for path, _ in self._places())}
            return shaped, {key: by_key[key] for key in by_key if key not in inside}, inside

        from jobset_steps.spec.check import check
        from jobset_steps.spec.defaults import with_defaults

        stand_ins = {hole.name: self._stand_in(hole, number) for number, hole in enumerate(self.holes)}
        shaped, found, inside = judged(stand_ins)
        for hole in self.holes if found else ():
            for value in self._others(hole, tuple(found.values())):
                other_shaped, other, wrong = judged({**stand_ins, hole.name: value})
                # A value that is wrong itself mends nothing; it only hides what is looked at after it.
                if other_shaped >= shaped and wrong <= inside:
                    found = {key: fault for key, fault in found.items() if key in other}
        return tuple(found.values())

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
            place = next((path_of(path) for path, names in self._places() if hole.name in names), "")
            if hole.name not in values:
                message = f"needs a value ({hole.type})"
                faults.append(Fault(place, "missing-value", message, hole=hole.name))
                continue
            value = values[hole.name]
            try:
                typed[hole.name] = _typed(value, hole.type)
            except (ValueError, OverflowError, RecursionError):
                passes = _EXAMPLES[hole.type]
                given = "null" if value is None else value
                faults.append(
                    Fault(place, "value-type", f"must be {hole.type}", given, passes, hole=hole.name)
                )
        if faults:
            raise InvalidSpec(faults)
        try:
            return JobSet.from_dict(self._fill(typed))
        except InvalidSpec as error:
            raise InvalidSpec(self.told(error.faults)) from None

    def told(self, faults: Iterable[Fault]) -> tuple[Fault, ...]:
        """Faults of a bound JobSet, each with the hole whose value stands where it is."""
        made = []
        for fault in faults:
            names = next((names for path, names in self._places() if _within(fault.path, path)), ())
            made.append(replace(fault, hole=", ".join(names)) if names else fault)
        return tuple(made)

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
            made._fill({hole.name: made._stand_in(hole, 0) for hole in made.holes})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InvalidSpec(
                [Fault("", "template", f"not a template: {type(error).__name__}: {error}")]
            ) from None
        return made

    def _fill(self, values: Mapping[str, Any]) -> Any:
        def fill(node: Any) -> Any:
            if isinstance(node, Mapping):
                if set(node) == {HOLE_KEY}:
                    return values[node[HOLE_KEY]]
                return {key: fill(item) for key, item in node.items()}
            if isinstance(node, list | tuple):
                return [fill(item) for item in node]
            if isinstance(node, str):
                return HOLE_PART.sub(
                    lambda part: _text(values[part[1]]) if part[1] in values else part[0], node
                )
            return node

        return fill(self.tree)

    def _places(self) -> Iterator[tuple[Path, tuple[str, ...]]]:
        """(path, names of the holes there), in the order of the document."""
        for path, node in _walk(self.tree, ()):
            if isinstance(node, Mapping) and set(node) == {HOLE_KEY}:
                yield path, (node[HOLE_KEY],)
            elif isinstance(node, str) and (names := HOLE_PART.findall(node)):
                yield path, tuple(dict.fromkeys(names))

    def _stand_in(self, hole: Hole, number: int) -> Any:
        """A value of its type that is right wherever the hole stands; no two texts are the same."""
        stand_ins: dict[HoleType, Any] = {
            "string": f"x{number}" if number else "x",
            "integer": 1,
            "number": 1.0,
            "boolean": True,
            "list": [],
            "object": {},
        }
        return next(iter(self._examples(hole)), stand_ins[hole.type])

    def _examples(self, hole: Hole) -> list[Any]:
        kind = str if hole.type == "string" else dict if hole.type == "object" else ()
        places = [path for path, names in self._places() if hole.name in names]
        return [example for path in places for example in examples_at(path) if isinstance(example, kind)]

    def _others(self, hole: Hole, faults: tuple[Fault, ...]) -> list[Any]:
        """Values that could mend a fault elsewhere: what the document holds of that type, and what was given amiss."""
        nodes = [node for _, node in _walk(self.tree, ())]
        given = [fault.given for fault in faults if isinstance(fault.given, str)]
        keys = [fault.path.rpartition(".")[2] for fault in faults]
        if hole.type == "boolean":
            return [False]
        if hole.type in ("integer", "number"):
            # Never 0: with no replica nothing is made, so nothing would be wrong.
            near = {node + by for node in nodes if isinstance(node, int) for by in (-1, 0, 1)}
            return sorted({2, 10, 1000, 1_000_000, *(number for number in near if number > 0)})
        if hole.type == "string":
            texts = [node for node in nodes if isinstance(node, str) and len(node) < 254]
            return list(dict.fromkeys([*given, *self._examples(hole), *texts, ""]))
        if hole.type == "list":
            named = [[{"name": name, **more}] for name in given for more in _NAMED]
            return [*named, *(node for node in nodes if isinstance(node, list))]
        least = self._examples(hole) or [{}]
        mappings = [node for node in nodes if isinstance(node, Mapping) and HOLE_KEY not in node]
        pairs = [(key, text) for key in ["name", *keys, *given] for text in [*given, "1"]]
        return [*least, *({**one, key: text} for one in least for key, text in pairs), *mappings]


def _walk(node: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Every value of a tree with its path; what is within a hole is not looked at."""
    yield path, node
    if isinstance(node, Mapping) and set(node) != {HOLE_KEY}:
        for key, item in node.items():
            yield from _walk(item, (*path, key))
    elif isinstance(node, list | tuple):
        for index, item in enumerate(node):
            yield from _walk(item, (*path, index))


def _within(fault: str, place: Path) -> bool:
    at = path_of(place)
    return fault == at or fault.startswith((f"{at}.", f"{at}["))


def _typed(value: Any, type_: HoleType) -> Any:
    """A value as its declared type; engines deliver everything as text. Raises ValueError."""
    _must(value, value is not None)
    if type_ == "string":
        return _must(_text(value), not _NO_TEXT.search(_text(value)))
    if type_ == "boolean":
        value = {"true": True, "false": False}.get(_text(value).strip().lower())
        return _must(value, isinstance(value, bool))
    given = json.loads(value) if isinstance(value, str) else value
    if type_ == "list":
        return _must(given, isinstance(given, list))
    if type_ == "object":
        return _must(given, isinstance(given, dict))
    _must(given, isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given))
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
