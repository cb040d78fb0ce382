"""Asks the server, before a JobSet is created, whether its child Jobs and their pods could be created at all.

JobSet admits templates whose Jobs the API then refuses, and waits for ever. The requests here are dry runs: nothing is
stored. What depends on the moment (quota, a webhook that is down) or on our own rights is not held against the spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobset_steps.clusters.kubernetes.client import QUOTA, Client
from jobset_steps.clusters.kubernetes.kinds import JOBS, PODS
from jobset_steps.errors import ApiError

__all__ = ["child_job", "child_pod", "refuse_what_could_never_run"]

# What the Job controller copies from a template's metadata to its pods.
_OF_PODS = ("labels", "annotations", "finalizers")
_DRY = {"dryRun": "All", "fieldValidation": "Strict"}


def refuse_what_could_never_run(client: Client, namespace: str, manifest: Mapping[str, Any]) -> None:
    """Raise ApiError (invalid) with the server's words for every replicated job that could never run."""
    refused: list[str] = []
    for index, replicated in enumerate(manifest["spec"].get("replicatedJobs") or ()):
        if replicated.get("replicas", 1) == 0:
            continue
        job = child_job(manifest, replicated)
        for kind, body in ((JOBS, job), (PODS, child_pod(job))):
            try:
                client.call("POST", kind.path(namespace), query=_DRY, body=body)
            except ApiError as error:
                if error.kind == "invalid":
                    refused.append(f"spec.replicatedJobs[{index}] ({replicated['name']}): {error.message}")
                    break
                if error.kind not in ("forbidden", "exists") and QUOTA not in error.message:
                    raise
    if refused:
        raise ApiError("invalid", "\n".join(refused))


def child_job(manifest: Mapping[str, Any], replicated: Mapping[str, Any]) -> dict[str, Any]:
    """The first child Job of a replicated job, as the controller would create it where admission can tell."""
    name = f"{manifest['metadata']['name']}-{replicated['name']}-0"
    template = replicated["template"]
    spec = {"completionMode": "Indexed", **template["spec"], "suspend": True}
    pod = spec["template"]
    pod_spec = {"restartPolicy": "OnFailure", **pod["spec"]}
    # JobSet adds the volumes of its claims to the pods that mount them.
    if added := [volume for volume in _claims(manifest) if volume["name"] in _mounted(pod_spec)]:
        pod_spec["volumes"] = [*(pod_spec.get("volumes") or ()), *added]
    spec["template"] = {**pod, "spec": pod_spec}
    metadata = {k: v for k, v in (template.get("metadata") or {}).items() if k in ("labels", "annotations")}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {**metadata, "name": name}, "spec": spec}


def _claims(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = [
        template["metadata"]["name"]
        for policy in manifest["spec"].get("volumeClaimPolicies") or ()
        for template in policy.get("templates") or ()
    ]
    jobset = manifest["metadata"]["name"]
    return [{"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{jobset}"}} for name in names]


def _mounted(pod: Mapping[str, Any]) -> set[str]:
    return {
        mount.get("name", "")
        for container in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ()))
        for mount in container.get("volumeMounts") or ()
    }


def child_pod(job: Mapping[str, Any]) -> dict[str, Any]:
    """The first pod of a child Job, as the Job controller would create it where admission can tell."""
    template = job["spec"]["template"]
    metadata = {k: v for k, v in (template.get("metadata") or {}).items() if k in _OF_PODS}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "name": f"{job['metadata']['name']}-0-dryrn"},
        "spec": template["spec"],
    }
