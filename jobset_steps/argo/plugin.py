"""A step as an executor-plugin template: the body that `jobset-steps serve` is sent for it.

It declares no outputs: what the server answers becomes the step's outputs. What becomes of the training is the server's.
"""

from __future__ import annotations

import json
from typing import Any

from jobset_steps.argo.launcher import inputs, options, retry_strategy
from jobset_steps.argo.parameters import Passed, decoded, safe_json
from jobset_steps.argo.step import ArgoStep
from jobset_steps.spec.template import SpecTemplate

__all__ = ["PLUGIN", "plugin_template"]

PLUGIN = "jobset-steps"
"""The key under `plugin` that our server answers to."""


def plugin_template(step: ArgoStep) -> dict[str, Any]:
    """The template of a plugin step, as plain data."""
    spec = step.spec
    tree = json.loads(spec.to_json()) if isinstance(spec, SpecTemplate) else spec.to_dict()
    told = options(step)
    if step.slot:
        told["slot"] = decoded(step.slot) if isinstance(step.slot, Passed) else step.slot
    body: dict[str, Any] = {
        "spec": safe_json(tree),
        "values": {value.hole: decoded(value) for value in step.values},
        "options": told,
        "node": "{{node.name}}",
    }
    template: dict[str, Any] = {"name": step.name}
    if names := inputs(step):
        template["inputs"] = names
    template["plugin"] = {PLUGIN: body}
    if step.deadline is not None:
        template["activeDeadlineSeconds"] = step.deadline
    if step.retries:
        # Argo knows the tag only where a retry strategy is set.
        body["retry"] = "{{retries}}"
        template["retryStrategy"] = retry_strategy(step.retries)
    return template
