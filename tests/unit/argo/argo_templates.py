"""What tests of Argo templates share: a spec with text of every kind in it, and what Argo makes of a template's tags."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from tests.unit.spec.examples import container, job, jobset, pod, replicated

__all__ = ["NASTY", "argued", "read_back", "resolved"]

NASTY = "echo \"a: {{b}}\n'c'\" }}{{workflow.name}} $$ $(HOME) ${X} \\ \t\x01 é 😀 <>&"
"""Text in which everything on the way finds something to replace."""


def argued(*args: Any, **more: Any) -> dict[str, Any]:
    """A JobSet whose command is nasty, with these arguments."""
    return jobset(
        replicated(
            spec=job(
                pod(container(command=["sh", "-c", NASTY.replace("{{workflow.name}}", "")], args=list(args)))
            )
        ),
        **more,
    )


def resolved(text: str, values: dict[str, str]) -> str:
    """A template's text with its plain input parameters filled in, as Argo does it."""
    return re.sub(r"\{\{inputs\.parameters\.([-\w]+)\}\}", lambda tag: values[tag[1]], text)


def read_back(template: dict[str, Any], **values: str) -> dict[str, Any]:
    """The request that a launcher finds when these texts are passed to its template, encoded as its step does."""
    (artifact,) = template["inputs"]["artifacts"]
    passed = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
    request: dict[str, Any] = json.loads(resolved(artifact["raw"]["data"], passed))
    return request
