"""A step for people who write YAML by hand: templates that take the spec itself as a parameter, to refer to from anywhere.

Nothing is known of the spec here, so nothing is checked before the launcher has it; a compiled step is checked at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from jobset_steps.argo.exit_handler import EXIT, exit_templates
from jobset_steps.argo.launcher import launcher_template, retry_strategy
from jobset_steps.argo.plugin import PLUGIN
from jobset_steps.argo.step import ArgoStep
from jobset_steps.argo.workflow import KINDS, Kind, to_yaml
from jobset_steps.spec.jobset import JobSet

__all__ = ["generic_document"]

# The budgets' own defaults.
_BUDGETS = {"queue": "24h", "startup": "30m", "run": "7d"}
_OPTIONS = {"on-failure": "fail", "slot": "", **{f"{name}-timeout": text for name, text in _BUDGETS.items()}}
# The launcher's own seconds to end in; more where the pods of the training take longer than half a minute to end.
_GRACE = 60
_GRACE_TAG = "{{inputs.parameters.grace-seconds}}"


def generic_document(kind: Kind) -> dict[str, Any]:
    """A WorkflowTemplate or ClusterWorkflowTemplate "jobset-step" with the templates launcher, plugin, and exit."""
    step = ArgoStep("launcher", JobSet.model_validate({"spec": {}}))
    handler, sweep = exit_templates(step)
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": KINDS[kind],
        "metadata": {"name": "jobset-step", "labels": {"app.kubernetes.io/part-of": "jobset-steps"}},
        "spec": {
            "entrypoint": "launcher",
            "onExit": EXIT,
            "arguments": {"parameters": [{"name": "spec"}]},
            "templates": [_launcher(step), _plugin(), handler, sweep],
        },
    }


def _launcher(step: ArgoStep) -> dict[str, Any]:
    made = launcher_template(step)
    values = {"spec": "spec", "values": "values", **{name: name for name in _OPTIONS}}
    encoded = ",".join(f'"{name}":"{{{{=sprig.b64enc(inputs.parameters[\'{name}\'])}}}}"' for name in values)
    grace = f"{{{{=asInt(inputs.parameters['grace-seconds']) - {_GRACE // 12}}}}}"
    parameters = [{"name": "spec"}, {"name": "values", "value": "{}"}, *_parameters()]
    (artifact,) = made["inputs"]["artifacts"]
    artifact["raw"]["data"] = f'{{"encoded":{{{encoded}}},"grace":{grace}}}'
    made["inputs"] = {
        "parameters": [*parameters, {"name": "grace-seconds", "value": str(_GRACE)}],
        "artifacts": [artifact],
    }
    made["podSpecPatch"] = f'{{"terminationGracePeriodSeconds":{_GRACE_TAG}}}'
    return made


def _plugin() -> dict[str, Any]:
    def tag(name: str) -> str:
        return f"{{{{=inputs.parameters['{name}']}}}}"

    body = {
        "spec": tag("spec"),
        "values": {},
        "options": {
            "on_failure": tag("on-failure"),
            "slot": tag("slot"),
            "budgets": {name: tag(f"{name}-timeout") for name in _BUDGETS},
        },
        "node": "{{node.name}}",
        "retry": "{{retries}}",
    }
    return {
        "name": "plugin",
        "inputs": {"parameters": [{"name": "spec"}, *_parameters()]},
        "plugin": {PLUGIN: body},
        "retryStrategy": retry_strategy(5),
    }


def _parameters() -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in _OPTIONS.items()]


def main(folder: Path) -> None:
    """Write both documents: `python -m jobset_steps.argo.generic components/argo`."""
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")


def files() -> dict[str, str]:
    """The files of components/argo that are made here."""
    return {
        "workflow-template.yaml": _HEAD.format(rights="") + to_yaml(generic_document("template")),
        "cluster-workflow-template.yaml": _HEAD.format(rights=", for every namespace")
        + to_yaml(generic_document("cluster-template")),
    }


_HEAD = """\
# A JobSet as a step, for workflows written by hand{rights}. Written by python -m jobset_steps.argo.generic; docs/argo.md
# shows how to refer to it. What the parameter `spec` holds is a JobSet, YAML or JSON.
"""

if __name__ == "__main__":
    main(Path(sys.argv[1]))
