"""The forms of names and values in the Kubernetes API: what passes, and the fault where something does not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jobset_steps.spec.fault import Fault

__all__ = [
    "descending",
    "duplicates",
    "env_name",
    "header_name",
    "key_name",
    "label",
    "label_key",
    "label_value",
    "letter_label",
    "local_path",
    "name_base",
    "nonnegative",
    "one_of",
    "port",
    "port_name",
    "prefixed_path",
    "required",
    "subdomain",
]

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LETTER_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KEY_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_ENV = re.compile(r"[ -<>-~]+")
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_PORT_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def letter_label(path: str, value: str) -> Iterator[Fault]:
    """DNS-1035: lower case letters, digits and '-', a letter first, at most 63."""
    if not _LETTER_LABEL.fullmatch(value) or len(value) > 63:
        passes = _suggestion(value)
        yield Fault(
            path, "name-form", "lower case letters, digits and '-', first a letter, at most 63", value, passes
        )


def label(path: str, value: str) -> Iterator[Fault]:
    """DNS-1123 label: lower case letters, digits and '-', at most 63."""
    if not _LABEL.fullmatch(value) or len(value) > 63:
        yield Fault(
            path, "name-form", "lower case letters, digits and '-', at most 63", value, _suggestion(value)
        )


def subdomain(path: str, value: str) -> Iterator[Fault]:
    """DNS-1123 subdomain: labels joined by dots, at most 253."""
    if not _SUBDOMAIN.fullmatch(value) or len(value) > 253:
        yield Fault(
            path,
            "name-form",
            "lower case letters, digits, '-' and '.', at most 253",
            value,
            _suggestion(value),
        )


def name_base(path: str, value: str) -> Iterator[Fault]:
    """A DNS-1123 subdomain that is yet to be completed: the server takes the last two characters for a letter if it ends in
    '-'.
    """
    masked = f"{value[:-2]}a" if len(value) > 1 and value.endswith("-") else value
    if list(subdomain(path, masked)):
        yield from subdomain(path, value)


def label_key(path: str, value: str) -> Iterator[Fault]:
    """A qualified name: an optional DNS subdomain and '/', then at most 63 letters, digits, '-', '_' and '.'."""
    prefix, slash, name = value.rpartition("/")
    right = bool(_KEY_NAME.fullmatch(name)) and len(name) <= 63 and "/" not in prefix
    if slash:
        right = right and bool(_SUBDOMAIN.fullmatch(prefix)) and len(prefix) <= 253
    if not right:
        yield Fault(
            path,
            "key-form",
            "a key is [prefix/]name with letters, digits, '-', '_', '.', name at most 63",
            value,
        )


def label_value(path: str, value: str) -> Iterator[Fault]:
    """A label's value: at most 63 letters, digits, '-', '_' and '.', or empty."""
    if not _VALUE.fullmatch(value) or len(value) > 63:
        yield Fault(path, "label-value", "letters, digits, '-', '_', '.', at most 63, or empty", value)


def prefixed_path(path: str, value: str, longest: int) -> Iterator[Fault]:
    """A domain-prefixed path: a DNS subdomain, '/', and a path."""
    prefix, slash, rest = value.partition("/")
    if not slash or not _SUBDOMAIN.fullmatch(prefix) or not _PATH.fullmatch(rest) or len(value) > longest:
        message = f"a domain, '/' and a path, at most {longest}"
        yield Fault(path, "domain-path", message, value, "such as example.com/controller")


def env_name(path: str, value: str) -> Iterator[Fault]:
    """The name of an environment variable: printable ASCII without '=' (Kubernetes 1.34)."""
    if not _ENV.fullmatch(value):
        yield Fault(path, "env-name", "printable ASCII characters without '='", value)


def key_name(path: str, value: str) -> Iterator[Fault]:
    """A key of a ConfigMap or Secret."""
    if not _CONFIG_KEY.fullmatch(value) or len(value) > 253 or value == "." or value.startswith(".."):
        yield Fault(path, "key-form", "letters, digits, '-', '_', '.', at most 253, not '..'", value)


def header_name(path: str, value: str) -> Iterator[Fault]:
    """The name of an HTTP header."""
    if not _HEADER.fullmatch(value):
        yield Fault(path, "header-name", "letters, digits and '-'", value)


def descending(path: str, value: str) -> Iterator[Fault]:
    """A relative path that never goes up."""
    if value.startswith("/") or ".." in value.split("/"):
        yield Fault(path, "path-form", "a relative path without '..'", value)


def local_path(path: str, value: str) -> Iterator[Fault]:
    """A relative path of a file in a volume: it never goes up and does not begin with '..'."""
    if not value:
        yield Fault(path, "required", "is required")
    elif value.startswith(("/", "..")) or ".." in value.split("/"):
        yield Fault(path, "path-form", "a relative path without '..'", value)


def port(path: str, value: int) -> Iterator[Fault]:
    """The number of a port."""
    if not 1 <= value <= 65535:
        yield Fault(path, "out-of-range", "from 1 to 65535", value)


def port_name(path: str, value: str) -> Iterator[Fault]:
    """The name of a port."""
    right = _PORT_NAME.fullmatch(value) and len(value) <= 15 and "--" not in value
    if not right or not re.search("[a-z]", value):
        message = "at most 15 lower case letters, digits and '-', at least one letter, no '--'"
        yield Fault(path, "port-name", message, value)


def required(path: str, thing: Mapping[str, Any], *names: str) -> Iterator[Fault]:
    """Fields of a mapping that must be there and not be empty."""
    for name in names:
        if not thing.get(name):
            yield Fault(f"{path}.{name}", "required", "is required")


def one_of(path: str, value: Any, known: Iterable[str]) -> Iterator[Fault]:
    """One of an enum's values; None counts as unset."""
    if value is not None and value not in (known := tuple(known)):
        yield Fault(path, "enum", f"one of {', '.join(known)}", value)


def nonnegative(path: str, value: int | None) -> Iterator[Fault]:
    """Zero or more; None counts as unset."""
    if value is not None and value < 0:
        yield Fault(path, "negative", "at least 0", value, "0 or more")


def duplicates(path: str, field: str, values: Iterable[str]) -> Iterator[Fault]:
    """Each value once; `path` is the list's, `field` what is compared within its items ("" for the items)."""
    seen: dict[str, int] = {}
    for index, value in enumerate(values):
        if value in seen:
            where = f"{path}[{index}]" + (f".{field}" if field else "")
            yield Fault(where, "duplicate", f"already at index {seen[value]}", value, "each once")
        seen.setdefault(value, index)


def _suggestion(value: str) -> str | None:
    safe = re.sub(r"-+", "-", re.sub(r"[^a-z0-9-]", "-", value.lower())).strip("-")[:63].rstrip("-")
    if safe and not safe[0].isalpha():
        safe = f"n{safe}"[:63]
    return safe if safe and safe != value else None
