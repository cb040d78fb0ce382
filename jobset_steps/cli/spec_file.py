"""What every command does with the spec that it is given: read it, from a file or standard input, and take values."""

from __future__ import annotations

import sys
from pathlib import Path

from jobset_steps.errors import BadInput
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.load import load
from jobset_steps.spec.template import SpecTemplate

__all__ = ["not_text", "read_spec", "standard_input", "values_of"]


def read_spec(spec: str) -> JobSet | SpecTemplate:
    """The spec of a path, or of standard input for "-". Raises InvalidSpec."""
    # A trailing newline tells the reader that this is a document and not the name of a file.
    return load(standard_input() + "\n") if spec == "-" else load(Path(spec))


def standard_input() -> str:
    """All of standard input, which is UTF-8 whatever the terminal's encoding is. Raises BadInput."""
    if sys.stdin is None:
        raise BadInput("standard input is closed")
    try:
        return sys.stdin.buffer.read().decode() if hasattr(sys.stdin, "buffer") else sys.stdin.read()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"standard input cannot be read: {getattr(error, 'strerror', None) or 'is not UTF-8 text'}"
        ) from None


def values_of(settings: list[str] | None) -> dict[str, str]:
    """The values of --set name=value. Raises BadInput."""
    values: dict[str, str] = {}
    wrong = []
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not_text(setting):
            wrong.append(f"--set {name!r}: is not UTF-8 text")
        elif not equals or not name:
            wrong.append(f"--set {setting}: must be name=value")
        elif name in values:
            wrong.append(f"--set {name}: given twice")
        values[name] = value
    if wrong:
        raise BadInput("\n".join(wrong))
    return values


def not_text(argument: str) -> bool:
    """Whether an argument holds bytes that are not UTF-8; Python hands them over as lone surrogates."""
    return any("\ud800" <= character <= "\udfff" for character in argument)
