"""What runs when a Workflow ends, to delete JobSets that no launcher was left to delete.

Argo runs it after a failure and after `stop`. `terminate` and a deleted Workflow run nothing: there the sweep CronJob and
the owner reference remain. It never touches a JobSet that has ended, where it can tell.
"""

from __future__ import annotations

from typing import Any

from jobset_steps.argo.launcher import container, pod_metadata, pod_patch
from jobset_steps.argo.step import ArgoStep
from jobset_steps.spec.naming import RUN

__all__ = ["EXIT", "SWEEP", "exit_templates"]

EXIT = "jobset-steps-exit"
"""The exit handler's template: nothing, where the Workflow succeeded."""

SWEEP = "jobset-steps-sweep"
"""The template that deletes what is left; for an exit handler of one's own."""

# A Workflow that succeeded leaves nothing, and a pod would lengthen every run by seconds.
_WHEN_FAILED = "{{workflow.status}} != Succeeded"
# What kubectl deletes it deletes whether it has ended or not, and with it the trace of a failed training: so it does only
# where a waiter was ended or lost, which Argo tells in these words.
_LEFT = "Stopped with strategy|deadline|pod deleted|No more retries"
_WHEN_LEFT = f"{{{{=workflow.failures matches '{_LEFT}' ? 'left' : 'none'}}}} == left"
_GRACE = 30


def exit_templates(step: ArgoStep) -> tuple[dict[str, Any], dict[str, Any]]:
    """The exit handler of a Workflow with this step, and the template that it calls."""
    native = step.mode == "native"
    sweep = _delete() if native else _sweep(step)
    if step.service_account:
        sweep["serviceAccountName"] = step.service_account
    call = {"name": "sweep", "template": SWEEP, "when": _WHEN_LEFT if native else _WHEN_FAILED}
    return {"name": EXIT, "steps": [[call]]}, sweep


def _sweep(step: ArgoStep) -> dict[str, Any]:
    command = ["python", "-m", "jobset_steps.cli", "sweep", "--workflow", "{{workflow.name}}"]
    return {
        "name": SWEEP,
        "metadata": pod_metadata(),
        "container": container(step, command),
        "podSpecPatch": pod_patch(step, _GRACE),
        "activeDeadlineSeconds": 300,
        "retryStrategy": {
            "limit": "3",
            "retryPolicy": "Always",
            "backoff": {"duration": "5s", "factor": "2"},
        },
    }


def _delete() -> dict[str, Any]:
    """With nothing of ours on the cluster: what kubectl can select by."""
    flags = [
        "jobsets.jobset.x-k8s.io",
        "--selector",
        f"{RUN}={{{{workflow.uid}}}}",
        "--wait=false",
    ]
    return {
        "name": SWEEP,
        "metadata": pod_metadata(),
        "resource": {"action": "delete", "flags": flags},
        "activeDeadlineSeconds": 300,
    }
