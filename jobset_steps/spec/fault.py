"""A fault found in what an author wrote: where, which rule, what was given, what would pass.

Checks return faults as values, all of them at once; `InvalidSpec` carries them where a caller needs an exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jobset_steps.errors import BadInput

__all__ = ["Fault", "InvalidSpec"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One broken rule.

    `path` is the author's own path in YAML terms ("spec.replicatedJobs[0].name"), `rule` a stable kebab-case name
    ("name-length"), `message` what the rule says, `given` the value that broke it, `passes` a value or form that
    would pass. `waivable` is true where the cluster would accept the spec and we refuse it because it would hang
    or mislead there. `hole` names the value of a template that stands at the path.
    """

    path: str
    rule: str
    message: str
    given: Any = None
    passes: str | None = None
    waivable: bool = False
    hole: str | None = None

    def __str__(self) -> str:
        given = "" if self.given is None else f", {_short(self.given)} given"
        passes = "" if self.passes is None else f"; {self.passes}"
        where = f"{self.path}: " if self.path else ""
        waiver = f" (waive with {self.rule})" if self.waivable else ""
        hole = f" (value of {self.hole})" if self.hole else ""
        return f"{where}{self.message}{given}{passes} [{self.rule}]{waiver}{hole}"


class InvalidSpec(BadInput, ValueError):
    """A spec with at least one fault. `faults` holds all of them, in the order of the document."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


def _short(value: Any, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
