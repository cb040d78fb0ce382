"""The Python in the documents on recipes and failure policies runs as it stands there, and what it makes passes every rule."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from jobset_steps.spec.check import check
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.template import SpecTemplate

DOCS = Path(__file__).resolve().parents[3] / "docs"


def blocks() -> list[Any]:
    return [
        pytest.param(code, id=f"{name}-{number}")
        for name in ("failure-policies.md", "recipes.md")
        for number, code in enumerate(
            re.findall(r"^```python\n(.*?)^```", (DOCS / name).read_text(encoding="utf-8"), re.M | re.S)
        )
    ]


@pytest.mark.parametrize("code", blocks())
def test_an_example_of_the_documents_makes_a_jobset_that_passes_every_rule(code: str) -> None:
    names: dict[str, Any] = {}

    exec(compile(code, "docs", "exec"), names)

    made = [value for value in names.values() if isinstance(value, JobSet | SpecTemplate)]
    assert made
    for spec in made:
        assert (spec.check() if isinstance(spec, SpecTemplate) else check(spec)) == ()
