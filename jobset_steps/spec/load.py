"""Reads what an author wrote: a file or text, YAML or JSON, into a JobSet, or a SpecTemplate where it has holes.

Everything that can be wrong before the first field is looked at is found here: no file, not YAML, several documents, a key
written twice, another kind of object.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from math import inf
from pathlib import Path
from typing import Any

import yaml

from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.holes import template_of
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.template import SpecTemplate

__all__ = ["load", "read_document"]

API_VERSION, KIND = "jobset.x-k8s.io/v1alpha2", "JobSet"


def load(source: str | Path) -> JobSet | SpecTemplate:
    """The JobSet or template of a path (a `Path`, or text of one line that names a file) or of a document's text.

    Raises InvalidSpec with every fault of its shape.
    """
    if isinstance(source, Path) or ("\n" not in source and not source.lstrip().startswith("{")):
        path = Path(source)
        try:
            source = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "is not UTF-8 text"
            raise InvalidSpec([Fault(str(path), "file", f"cannot be read: {reason}")]) from None
    return template_of(read_document(source))


def read_document(text: str) -> dict[str, Any]:
    """The one JobSet document in a YAML or JSON text, as plain data. Raises InvalidSpec."""
    try:
        documents = [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
    except yaml.YAMLError as error:
        raise InvalidSpec([Fault("", "yaml", _where(error))]) from None
    except RecursionError:
        raise InvalidSpec([Fault("", "yaml", "is nested too deeply")]) from None
    if len(documents) != 1:
        message = "one JobSet document is needed"
        raise InvalidSpec([Fault("", "documents", message, len(documents), "one file for each")])
    document = documents[0]
    if not isinstance(document, dict):
        raise InvalidSpec(
            [Fault("", "document", "a JobSet is a mapping", document, "apiVersion, kind, metadata, spec")]
        )
    faults = [
        Fault(
            key, "kind", "is not a JobSet's" if key in document else "is required", document.get(key), passes
        )
        for key, passes in (("apiVersion", API_VERSION), ("kind", KIND))
        if document.get(key) != passes
    ]
    if faults:
        raise InvalidSpec(faults)
    return document


class _Loader(yaml.SafeLoader):
    """YAML as kubectl reads it: nothing that JSON has not, strings stay strings where YAML 1.1 would make dates or count in
    sixties, no key comes twice, and aliases neither go in circles nor multiply.
    """

    def construct_document(self, node: yaml.Node) -> Any:
        sizes: dict[int, int] = {}
        if _size(node, sizes) > len(sizes) + _ALIASED:
            message = f"aliases make more than {_ALIASED} values out of it"
            raise yaml.constructor.ConstructorError(None, None, message, node.start_mark)
        return super().construct_document(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            made = super().construct_object(node, deep)
        except (ValueError, KeyError):
            made = None
        kind = node.tag.rpartition(":")[2]
        if kind in ("int", "float", "bool") and (made is None or made in (inf, -inf) or made != made):
            message = f"{node.value[:40]!r} is no {kind} here"
            raise yaml.constructor.ConstructorError(None, None, message, node.start_mark)
        if isinstance(made, str) and (wrong := _NO_TEXT.search(made)):
            message = f"the character {wrong[0]!r} cannot stand in a command, a variable or a name"
            raise yaml.constructor.ConstructorError(None, None, message, node.start_mark)
        return made

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} is written twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_TAG = "tag:yaml.org,2002:"
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_NUMBERS = (f"{_TAG}int", f"{_TAG}float")
_ALIASED, _DEEP = 100_000, 100
_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, re.compile(f"(?!.*:)(?:{pattern.pattern})", re.X) if tag in _NUMBERS else pattern)
        for tag, pattern in resolvers
        if tag != f"{_TAG}timestamp"
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.yaml_constructors = {
    tag: constructor
    for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
    if tag not in {f"{_TAG}{kind}" for kind in ("timestamp", "binary", "set", "omap", "pairs")}
}


def _size(node: yaml.Node, sizes: dict[int, int], depth: int = 0) -> int:
    """How many values a node stands for with every alias written out. Raises ConstructorError for one within itself."""
    if (known := sizes.get(id(node))) is not None and known > 0:
        return known
    if known == 0 or depth > _DEEP:
        message = "an alias stands within what it names" if known == 0 else f"more than {_DEEP} levels deep"
        raise yaml.constructor.ConstructorError(None, None, message, node.start_mark)
    sizes[id(node)] = 0
    size = 1
    if isinstance(node, yaml.MappingNode):
        size += sum(_size(part, sizes, depth + 1) for pair in node.value for part in pair)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_size(part, sizes, depth + 1) for part in node.value)
    sizes[id(node)] = size
    return size


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem
