"""A step as a container template: a pod of ours that makes the JobSet, waits, and ends with its outcome.

It decides what the pod is given and what it hands back, never what becomes of the training: that is the launcher's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jobset_steps.argo.parameters import Passed, encoded, safe_json
from jobset_steps.argo.step import ArgoStep
from jobset_steps.outcome.outputs import DEFAULTS
from jobset_steps.spec.template import SpecTemplate

__all__ = [
    "OUTPUTS",
    "REQUEST",
    "container",
    "inputs",
    "launcher_template",
    "options",
    "pod_metadata",
    "pod_patch",
    "retry_strategy",
]

REQUEST = "/tmp/jobset-steps-request.json"
"""Where the launcher finds what it is asked for: in no folder of its own, which would be root's."""

OUTPUTS = "/tmp/jobset-steps/outputs"
"""The folder in which the launcher leaves its outputs, one file each."""

# Worth another try: a failure that may pass (75), no verdict (76), API server away (69), our own defect (70), killed (137).
_RETRIED = (75, 76, 69, 70, 137)
# What pods may take to end where their spec says nothing, as in the Pod API.
_POD_GRACE = 30
# Seconds for what a cancel does besides waiting for pods: ask why, settle a create in flight, delete, see it gone.
_MARGIN = 30
# Seconds between the launcher's own limit and the kill, for its last words and its outputs.
_LAST_WORDS = 5


def launcher_template(step: ArgoStep) -> dict[str, Any]:
    """The template of a launcher step, as plain data."""
    grace = _grace(step)
    template: dict[str, Any] = {
        "name": step.name,
        "inputs": {
            **inputs(step),
            "artifacts": [
                # Raw data needs no artifact store, and no shell, environment or command line expands it.
                {"name": "request", "path": REQUEST, "raw": {"data": _request(step, grace - _LAST_WORDS)}}
            ],
        },
        "outputs": _outputs(step),
        "metadata": pod_metadata(),
        "container": {
            **container(step, ["python", "-m", "jobset_steps.launch.argo", REQUEST, OUTPUTS]),
            "env": _environment(),
        },
        "podSpecPatch": pod_patch(step, grace),
    }
    if step.service_account:
        template["serviceAccountName"] = step.service_account
    if step.deadline is not None:
        template["activeDeadlineSeconds"] = step.deadline
    if step.retries:
        template["retryStrategy"] = retry_strategy(step.retries)
    return template


def inputs(step: ArgoStep) -> dict[str, Any]:
    """The input parameters of a template: one for each value that a step passes."""
    names = [{"name": value.name} for value in step.passed if value.name]
    return {"parameters": names} if names else {}


def options(step: ArgoStep) -> dict[str, Any]:
    """What a launcher or the plugin is told besides the spec and the slot, where there is something to tell."""
    given = {
        "step": step.name,
        "on_failure": step.on_failure,
        "budgets": step.budgets.model_dump(exclude_defaults=True),
        "namespace": step.namespace,
        "waive": list(step.waive),
    }
    return {key: value for key, value in given.items() if value}


def container(step: ArgoStep, command: list[str]) -> dict[str, Any]:
    """A container of ours: small, and without rights on its node."""
    made: dict[str, Any] = {
        "image": step.image,
        "command": command,
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    if step.image_pull_policy:
        made["imagePullPolicy"] = step.image_pull_policy
    return made


def pod_metadata() -> dict[str, Any]:
    """Marks of a waiting pod: no mesh sidecar, which would outlive it, and no autoscaler moves it for the fun of it."""
    return {
        "labels": {"app.kubernetes.io/part-of": "jobset-steps", "sidecar.istio.io/inject": "false"},
        "annotations": {
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            "sidecar.istio.io/inject": "false",
        },
    }


def pod_patch(step: ArgoStep, grace: int) -> str:
    """The patch of a pod's spec for what a template has no field for."""
    patch: dict[str, Any] = {"terminationGracePeriodSeconds": grace}
    if step.image_pull_secrets:
        patch["imagePullSecrets"] = [{"name": name} for name in step.image_pull_secrets]
    return safe_json(patch)


def retry_strategy(limit: int) -> dict[str, Any]:
    """The preset: exactly the exit codes that are worth another try, and a pod that was lost (status Error)."""
    codes = ", ".join(f"'{code}'" for code in _RETRIED)
    return {
        "limit": str(limit),
        "retryPolicy": "Always",
        "expression": f"lastRetry.status == 'Error' or lastRetry.exitCode in [{codes}]",
        "backoff": {"duration": "10s", "factor": "2"},
    }


def _request(step: ArgoStep, grace: int) -> str:
    """The request as JSON. Tags of Argo stand in it only where a value of its own is written; all else is escaped."""
    spec = step.spec
    tree = json.loads(spec.to_json()) if isinstance(spec, SpecTemplate) else spec.to_dict()
    values = ",".join(f'{safe_json(value.hole)}:"{encoded(value)}"' for value in step.values)
    parts = {"spec": safe_json(tree), "values": f"{{{values}}}"}
    if isinstance(step.slot, Passed):
        parts["slot"] = f'"{encoded(step.slot)}"'
    told = options(step)
    if step.slot and isinstance(step.slot, str):
        told["slot"] = step.slot
    parts["options"] = safe_json(told)
    parts["grace"] = str(grace)
    return "{" + ",".join(f'"{key}":{text}' for key, text in parts.items()) + "}"


def _environment() -> list[dict[str, Any]]:
    """Where in the Workflow the launcher stands: its identity, known before anything is asked."""
    return [
        _field("POD_NAME", "metadata.name"),
        _field("JOBSET_STEPS_POD_UID", "metadata.uid"),
        _field("JOBSET_STEPS_NODE", "metadata.annotations['workflows.argoproj.io/node-name']"),
        {"name": "JOBSET_STEPS_WORKFLOW", "value": "{{workflow.name}}"},
        {"name": "JOBSET_STEPS_WORKFLOW_UID", "value": "{{workflow.uid}}"},
    ]


def _outputs(step: ArgoStep) -> dict[str, Any]:
    parameters = [
        {"name": name, "valueFrom": {"path": f"{OUTPUTS}/{name}", "default": default}}
        for name, default in DEFAULTS.items()
    ]
    made: dict[str, Any] = {"parameters": parameters}
    if step.report:
        made["artifacts"] = [
            {
                "name": "report",
                "path": f"{OUTPUTS}/report.html",
                "optional": True,
                "archive": {"none": {}},
            }
        ]
    return made


def _grace(step: ArgoStep) -> int:
    """Seconds from SIGTERM to SIGKILL: long enough to see the training's pods end, however long they may take."""
    tree: Any = step.spec.tree if isinstance(step.spec, SpecTemplate) else step.spec.to_dict()
    return max(_pod_graces(tree), default=_POD_GRACE) + _MARGIN


def _pod_graces(tree: Mapping[str, Any]) -> Iterator[int]:
    for replicated in (tree.get("spec") or {}).get("replicatedJobs") or ():
        job = (replicated.get("template") or {}).get("spec") or {}
        pod = (job.get("template") or {}).get("spec") or {}
        grace = pod.get("terminationGracePeriodSeconds", _POD_GRACE)
        # Where it is still to come it is taken as the default.
        yield grace if isinstance(grace, int) else _POD_GRACE


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
