"""What every command does with the spec that it is given: read it, from a file or standard input, and take values."""

from __future__ import annotations

import sys
from pathlib import Path

from jobset_steps.errors import BadInput
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.load import load
from jobset_steps.spec.template import SpecTemplate

__all__ = ["read_spec", "values_of"]


def read_spec(spec: str) -> JobSet | SpecTemplate:
    """The spec of a path, or of standard input for "-". Raises InvalidSpec."""
    # A trailing newline tells the reader that this is a document and not the name of a file.
    return load(sys.stdin.read() + "\n") if spec == "-" else load(Path(spec))


def values_of(settings: list[str] | None) -> dict[str, str]:
    """The values of --set name=value. Raises BadInput."""
    values: dict[str, str] = {}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise BadInput(f"--set {setting}: must be name=value")
        if name in values:
            raise BadInput(f"--set {name}: given twice")
        values[name] = value
    return values
