"""Reads what an engine hands on as plain data: the options of a step, and its spec as text. All that is wrong, at once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from jobset_steps.errors import BadInput
from jobset_steps.spec.budgets import Budgets
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.load import load
from jobset_steps.spec.template import SpecTemplate
from jobset_steps.supervisor.plan import OnFailure

__all__ = ["read_spec", "settings"]

_NOT_YAML = re.compile("[\x7f-\x9f\ufffe\uffff]")
_OPTIONS = {"step", "slot", "on_failure", "budgets", "namespace", "waive"}


def settings(options: Mapping[str, Any]) -> tuple[Budgets, OnFailure, tuple[str, ...]]:
    """Budgets, on_failure and waived rules. Raises BadInput with all that is wrong with the options."""
    wrong = [
        f"options: {name}: not known; known: {', '.join(sorted(_OPTIONS))}"
        for name in set(options) - _OPTIONS
    ]
    budgets = Budgets()
    try:
        budgets = Budgets.model_validate(options.get("budgets") or {})
    except ValidationError as error:
        wrong += [
            f"options.budgets{''.join(f'.{part}' for part in each['loc'])}: {each['msg']}"
            for each in error.errors()
        ]
    on_failure: Any = options.get("on_failure") or "fail"
    if on_failure not in ("fail", "branch"):
        wrong.append(f"options.on_failure: fail or branch; {on_failure!r} given")
    waive: Any = options.get("waive") or ()
    if not isinstance(waive, list | tuple):
        wrong.append(f"options.waive: a list of rules; {waive!r} given")
    if wrong:
        raise BadInput("\n".join(sorted(wrong)))
    return budgets, on_failure, tuple(map(str, waive))


def read_spec(text: str) -> JobSet | SpecTemplate:
    """A spec in YAML or JSON, or a template as SpecTemplate.to_json wrote it. Raises InvalidSpec."""
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if isinstance(data, dict) and set(data) == {"tree", "holes"}:
        return SpecTemplate.from_json(text)
    if isinstance(data, dict):
        # A YAML reader takes the two halves of a character that JSON escaped for two, and refuses some that stand bare.
        text = json.dumps(data, ensure_ascii=False)
        text = _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    # A newline tells the reader that this is a document and not the name of a file.
    return load(text + "\n")
