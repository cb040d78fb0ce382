"""How text and upstream outputs cross Argo unchanged: what is escaped, what is encoded, and what Argo is asked to compute.

Argo writes values into the JSON of a template, more than once, and Kubernetes expands `$` in what it hands on: so text never
holds `{{` or `$` bare, and a value travels as base64 from the place where it is first read. Pure; no Argo is imported.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.template import Hole

__all__ = ["Computed", "Passed", "decoded", "embedded", "encoded", "literal", "passed", "safe_json"]

_TAG = re.compile(r"\{\{\s*([^{}=\s][^{}]*?)\s*\}\}")
# Texts that an author's code made: encoded where they are first read, since Argo would write over tags within them.
_FREE_TEXT = re.compile(
    r"(?:inputs|workflow|workflow\.outputs|(?:tasks|steps)\.[^.]+\.outputs)\.parameters\.[^.]+"
    r"|(?:tasks|steps)\.[^.]+\.outputs\.result|item\.[^.]+"
)
# What Argo, Kubernetes or a YAML reader would take for its own.
_BARE = re.compile(r"\{\{|[$\x7f]")
_BARE_QUOTE = r'(^|[^\\])"'
# Known only inside the template, so no step could pass them.
_INSIDE = ("pod.name", "node.name", "retries")


class Computed(Protocol):
    """What Argo computes inside a template."""

    @property
    def expression(self) -> str:
        """In Argo's expression language; its value is a string."""


@dataclass(frozen=True, slots=True)
class Passed:
    """How the value of one hole reaches a template.

    `name` is the template's input parameter, "" where the value is Argo's own inside the template. `argument` is what the
    invoking step passes, None where whoever calls the template must say. `is_encoded`: it is passed as base64.
    """

    hole: str
    name: str
    argument: str | None
    is_encoded: bool
    inside: str = ""
    """Argo's own name for the value, where the template reads it without a parameter."""
    source: str = ""
    """Argo's name for what the author wrote here, "" where it is none."""

    @property
    def expression(self) -> str:
        """An Argo expression inside the template for the value itself."""
        path = _path(self.inside) if self.inside else f"inputs.parameters['{self.name}']"
        return f"sprig.b64dec({path})" if self.is_encoded else path


def passed(holes: Iterable[Hole]) -> tuple[Passed, ...]:
    """How each hole's value is passed, in order. Raises InvalidSpec for sources that Argo cannot resolve."""
    names: set[str] = set()
    made: list[Passed] = []
    faults: list[Fault] = []
    for hole in holes:
        try:
            made.append(_passed(hole, names))
        except InvalidSpec as error:
            faults += error.faults
    if faults:
        raise InvalidSpec(faults)
    return tuple(made)


def encoded(value: Passed) -> str:
    """Template text that Argo turns into the value's base64."""
    if value.is_encoded:
        return f"{{{{inputs.parameters.{value.name}}}}}"
    return f"{{{{=sprig.b64enc({value.expression})}}}}"


def decoded(value: Passed) -> str:
    """Template text that Argo turns into the value itself, in its last pass over the template."""
    return f"{{{{={value.expression}}}}}"


def embedded(parts: Iterable[str | Computed]) -> str:
    """Text for within the quotes of a JSON string in a manifest: Argo writes there the parts, joined and escaped.

    The escapes hold through Argo's later passes over the pod, Kubernetes' expansion of `$`, and kubectl's YAML reader.
    """
    joined = " + ".join(literal(part) if isinstance(part, str) else part.expression for part in parts)
    text = f"toJson({joined})[1:-1]"
    for bare in ("{{", "$", "\x7f"):
        escape = "".join(f"\\u{ord(character):04x}" for character in bare)
        text = f"replace({text}, {literal(bare)}, {literal(escape)})"
    return f"{{{{={text}}}}}"


def literal(text: str) -> str:
    """A string in Argo's expression language, free of whatever Argo, JSON or YAML would read in it."""
    return "'" + "".join(map(_plain, text)) + "'"


def safe_json(value: Any) -> str:
    """JSON in which Argo finds no tag and Kubernetes nothing to expand. It reads back as the same value.

    All of it is ASCII: YAML writers break long lines of other text in ways that Hera's does not put together again.
    """
    text = json.dumps(value, separators=(",", ":"))
    return _BARE.sub(lambda found: "".join(f"\\u{ord(character):04x}" for character in found[0]), text)


def _passed(hole: Hole, names: set[str]) -> Passed:
    text = _source(hole)
    tag = _TAG.fullmatch(text) if text is not None else None
    if tag is not None and tag[1] in _INSIDE:
        return Passed(hole.name, "", None, is_encoded=False, inside=tag[1], source=tag[1])
    name = _free(re.sub(r"[^-A-Za-z0-9_]", "-", hole.name), names)
    if text is None:
        return Passed(hole.name, name, None, is_encoded=False)
    if tag is None:
        if "{{" in text:
            message = "is not one output of Argo"
            raise InvalidSpec(
                [Fault(hole.name, "source", message, text, "one tag, such as {{inputs.parameters.x}}")]
            )
        return Passed(hole.name, name, base64.b64encode(text.encode()).decode(), is_encoded=True)
    if _FREE_TEXT.fullmatch(tag[1]):
        read = _of_item(tag[1]) if tag[1].startswith("item.") else _path(tag[1])
        argument = f"{{{{=sprig.b64enc({read})}}}}"
        return Passed(hole.name, name, argument, is_encoded=True, source=tag[1])
    return Passed(hole.name, name, text, is_encoded=False, source=tag[1])


def _source(hole: Hole) -> str | None:
    """The Argo text that stands for a hole's value; None: whoever calls the template gives it."""
    source = hole.source
    if source is None or isinstance(source, str):
        return source
    if hasattr(source, "value_from") and hasattr(source, "enum"):  # a Hera parameter
        value = source.value
        # Without a value it is an input of the template around the step.
        return value if isinstance(value, str) else f"{{{{inputs.parameters.{source.name}}}}}"
    message = f"{type(source).__name__} is no output of Argo"
    raise InvalidSpec(
        [Fault(hole.name, "source", message, passes="a Hera parameter, or text with an Argo tag")]
    )


def _path(reference: str) -> str:
    """A dotted reference as an expression; names may hold dashes, which the language would read as minus."""
    first, *rest = reference.split(".")
    return first + "".join(f"['{part}']" for part in rest)


def _of_item(reference: str) -> str:
    """A part of an item of a loop. Argo hands texts in it on with their JSON escapes, but not as JSON.

    A quote without a backslash before it tells a mapping or list, which is JSON as it is.
    """
    path, slash, quote = _path(reference), literal("\\"), literal('"')
    escaped = f"{path} contains {slash} and not ({path} matches {literal(_BARE_QUOTE)})"
    return f"{escaped} ? fromJSON({quote} + {path} + {quote}) : {path}"


def _free(name: str, names: set[str]) -> str:
    candidate, number = name, 2
    while candidate in names:
        candidate, number = f"{name}-{number}", number + 1
    names.add(candidate)
    return candidate


def _plain(character: str) -> str:
    if character.isascii() and (character.isalnum() or character in " -_.,:;=/+*()<>|@#%&?!~^[]"):
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
