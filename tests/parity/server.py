"""The real API server's answer: dry runs, strict about fields, of a JobSet and of all that its controllers would make of it.

Children are made from what the server would store, defaults of JobSet's webhook included. What depends on other objects of the
cluster (a service account or a priority class that is not there) is not held against a spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobset_steps.clusters.kubernetes.client import Client
from jobset_steps.clusters.kubernetes.dry_run import child_job, child_pod
from jobset_steps.errors import ApiError

__all__ = ["refusal"]

_DRY = {"dryRun": "All", "fieldValidation": "Strict"}
_PREFIX = "jobset.sigs.k8s.io/"
# Admission's words about what else the cluster has or has not.
_OF_OTHERS = (" not found", "no PriorityClass with name", "priority admission controller", "Pod Overhead")
_LOOKED_UP = (
    "serviceAccountName",
    "serviceAccount",
    "runtimeClassName",
    "overhead",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
)
_JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets"
_JOBS = "/apis/batch/v1/namespaces/{}/jobs"
_PODS = "/api/v1/namespaces/{}/pods"
_CLAIMS = "/api/v1/namespaces/{}/persistentvolumeclaims"


def refusal(client: Client, manifest: Mapping[str, Any], namespace: str = "default") -> str | None:
    """What the server refuses first, in its own words; None where it accepts everything."""
    if (manifest.get("apiVersion"), manifest.get("kind")) != ("jobset.x-k8s.io/v1alpha2", "JobSet"):
        # The address of a request says the kind; a client finds none for another.
        return "JobSet: no such kind"
    try:
        stored = client.call("POST", _JOBSETS.format(namespace), query=_DRY, body=manifest)
    except ApiError as error:
        return f"JobSet: {_words(error)}"
    for path, child in _children(stored):
        try:
            _ask(client, path.format(namespace), child)
        except ApiError as error:
            return f"{child['kind']}: {_words(error)}"
    return None


def _ask(client: Client, path: str, child: dict[str, Any]) -> None:
    """Raise ApiError where the server refuses a child for what it is, and not for what else the cluster has."""
    try:
        client.call("POST", path, query=_DRY, body=child)
    except ApiError as error:
        if not (" is forbidden: " in error.message and any(words in error.message for words in _OF_OTHERS)):
            raise
        # Admission came first and hid what validation would say: ask again without what it looked up.
        spec = {name: value for name, value in child["spec"].items() if name not in _LOOKED_UP}
        client.call("POST", path, query=_DRY, body={**child, "spec": spec})


def _children(stored: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The claims, and of each replicated job the last Job and its pod, whose names are the longest."""
    name = stored["metadata"]["name"]
    for policy in stored["spec"].get("volumeClaimPolicies") or ():
        for template in policy.get("templates") or ():
            yield _CLAIMS, _claim(template, name)
    for replicated in stored["spec"].get("replicatedJobs") or ():
        if replicated["replicas"] > 0:
            job = _job(stored, replicated)
            yield _JOBS, job
            yield _PODS, child_pod(job)


def _job(stored: Mapping[str, Any], replicated: Mapping[str, Any]) -> dict[str, Any]:
    """The last child Job, with the marks and the subdomain that JobSet gives it."""
    job, jobset = child_job(stored, replicated), stored["metadata"]["name"]
    job["metadata"]["name"] = f"{jobset}-{replicated['name']}-{replicated['replicas'] - 1}"
    marks = {
        f"{_PREFIX}jobset-name": jobset,
        f"{_PREFIX}replicatedjob-name": replicated["name"],
        f"{_PREFIX}group-name": replicated.get("groupName", "default"),
    }
    template = job["spec"]["template"]
    for meta in (job["metadata"], template.setdefault("metadata", {})):
        meta["labels"] = {**(meta.get("labels") or {}), **marks}
    network = stored["spec"].get("network") or {}
    if network.get("enableDNSHostnames"):
        template["spec"]["subdomain"] = network.get("subdomain") or jobset
    return job


def _claim(template: Mapping[str, Any], jobset: str) -> dict[str, Any]:
    meta = template.get("metadata") or {}
    kept = {key: meta[key] for key in ("labels", "annotations") if key in meta}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {**kept, "name": f"{meta.get('name', '')}-{jobset}"},
        "spec": template.get("spec") or {},
    }


def _words(error: ApiError) -> str:
    if error.kind != "invalid":
        # Not an opinion about the spec: a round whose server is away proves nothing.
        raise error
    return error.message
