"""Writes a step's outputs as files, each whole or not at all: an engine may read them the moment this process ends."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from jobset_steps import report
from jobset_steps.errors import BadInput
from jobset_steps.outcome import Outcome, outputs

__all__ = ["OUTPUTS", "write_atomically", "write_outputs"]

_REPORTS = {"report.html": report.html, "report.md": report.markdown}
OUTPUTS = (
    "verdict",
    "outcome",
    "restarts",
    "metrics",
    "reason",
    "message",
    "retryable",
    "jobset",
    *_REPORTS,
)
"""Every name that `write_outputs` knows."""


def write_outputs(outcome: Outcome, files: Mapping[str, Path]) -> None:
    """Write the outputs asked for. Raises OSError where a file cannot be written, BadInput for an unknown name."""
    texts = outputs(outcome)
    for name, path in files.items():
        if name in _REPORTS:
            text = _REPORTS[name](outcome)
        elif name in texts:
            text = texts[name]
        else:
            raise BadInput(f"no output is called {name!r}; known: {', '.join(OUTPUTS)}")
        write_atomically(path, text)


def write_atomically(path: Path, text: str) -> None:
    """Write a file beside its place and move it there. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
