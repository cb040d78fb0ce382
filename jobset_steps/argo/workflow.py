"""Whole documents around one step, for people who write YAML: a Workflow, WorkflowTemplate or ClusterWorkflowTemplate.

A document runs as it is (its entrypoint is the step) and its template can be referred to from others.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any, Literal

import yaml

from jobset_steps.argo.exit_handler import EXIT, exit_templates
from jobset_steps.argo.launcher import launcher_template
from jobset_steps.argo.native import native_template
from jobset_steps.argo.parameters import Passed
from jobset_steps.argo.plugin import plugin_template
from jobset_steps.argo.step import ArgoStep

__all__ = ["KINDS", "Kind", "document", "template", "to_yaml"]

Kind = Literal["workflow", "template", "cluster-template"]

KINDS = {
    "workflow": "Workflow",
    "template": "WorkflowTemplate",
    "cluster-template": "ClusterWorkflowTemplate",
}
"""What the kind of a document is called in YAML."""


def template(step: ArgoStep) -> dict[str, Any]:
    """The Argo template of a step, as plain data, in camelCase as in YAML."""
    made = {"launcher": launcher_template, "native": native_template, "plugin": plugin_template}
    return made[step.mode](step)


def document(step: ArgoStep, kind: Kind = "workflow") -> dict[str, Any]:
    """A whole document with the step as its entrypoint, and its exit handler.

    What the step is to be passed becomes an argument of the Workflow; whoever submits it gives the values. In a Workflow
    they arrive byte for byte; templates take them as inputs, so that others can refer to them.
    """
    arguments: dict[str, dict[str, str]] = {}
    alone = replace(
        step,
        values=tuple(_alone(value, kind, arguments) for value in step.values),
        slot=_alone(step.slot, kind, arguments) if isinstance(step.slot, Passed) else step.slot,
    )
    spec: dict[str, Any] = {"entrypoint": step.name, "onExit": EXIT}
    if arguments:
        spec["arguments"] = {"parameters": list(arguments.values())}
    spec["templates"] = [template(alone), *exit_templates(step)]
    name = step.name.lower()
    meta = {"generateName": f"{name}-"} if kind == "workflow" else {"name": name}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": KINDS[kind], "metadata": meta, "spec": spec}


def to_yaml(made: dict[str, Any]) -> str:
    """A template or document as YAML, each text on a line of its own length."""

    class Whole(yaml.SafeDumper):
        """As SafeDumper writes it, whatever other libraries taught that one."""

    Whole.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text))
    return str(yaml.dump(made, Dumper=Whole, sort_keys=False, width=2**30))


def _alone(value: Passed, kind: Kind, arguments: dict[str, dict[str, str]]) -> Passed:
    """A value as the entrypoint takes it, there being no step that passes it; `arguments` of the Workflow are added."""
    if value.inside:
        return value
    scope, _, name = value.source.rpartition(".")
    if value.source.startswith("workflow.") and scope != "workflow.parameters":
        return Passed(value.hole, "", None, is_encoded=False, inside=value.source)
    if scope != "workflow.parameters":
        name = value.name
    arguments[name] = {"name": name}
    if not value.source and value.argument is not None:
        arguments[name]["value"] = base64.b64decode(value.argument).decode()
    if kind == "workflow":
        return Passed(value.hole, "", None, is_encoded=False, inside=f"workflow.parameters.{name}")
    return Passed(value.hole, name, None, is_encoded=False)
