"""The safe defaults of a step: what is set where the author set nothing. Each can be overridden by setting it.

The API's own defaults are left to the API, except where they hang a training or lose its cause; every line says why.
"""

from __future__ import annotations

from typing import Any

from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.resilience import pod_failure_policy

__all__ = ["TTL_SECONDS", "with_defaults"]

TTL_SECONDS = 86400
"""Seconds a finished JobSet stays if nobody deletes it: long enough to look at it, short enough not to pile up."""

_ISTIO = "sidecar.istio.io/inject"


def with_defaults(jobset: JobSet) -> JobSet:
    """The JobSet with everything set that a step relies on."""
    data = jobset.to_dict()
    spec = data["spec"]
    jobs = spec.get("replicatedJobs", [])
    network = spec.setdefault("network", {})
    # Explicit, because controllers of some versions fall over a missing block; names resolve before pods are ready,
    # because a worker that starts first looks its leader up at once.
    network.setdefault("enableDNSHostnames", True)
    network.setdefault("publishNotReadyAddresses", True)
    spec.setdefault("successPolicy", {"operator": "All"})
    spec.setdefault("ttlSecondsAfterFinished", TTL_SECONDS)
    if (policy := spec.get("failurePolicy")) is not None and _several(jobs):
        # Recreate starts the new attempt beside stragglers of the old one, which then talk to each other.
        policy.setdefault("restartStrategy", "BlockingRecreate")
    for replicated in jobs:
        _job(replicated["template"]["spec"])
    return JobSet.from_dict(data)


def _several(jobs: list[dict[str, Any]]) -> bool:
    return len(jobs) > 1 or any(job.get("replicas", 1) > 1 for job in jobs)


def _job(job: dict[str, Any]) -> None:
    job.setdefault("completionMode", "Indexed")
    if job["completionMode"] == "Indexed" and "completions" not in job:
        # JobSet admits an Indexed Job without completions; the Job API refuses it, and the JobSet hangs.
        job["completions"] = job.get("parallelism", 1)
    job.setdefault("parallelism", job.get("completions", 1))
    if "backoffLimitPerIndex" not in job:
        # One restart authority: a pod that is replaced inside its Job leaves the other ranks hanging.
        job.setdefault("backoffLimit", 0)
    pod = job["template"]
    spec = _mapping(pod, "spec")
    if (
        spec.get("restartPolicy", "Never") == "Never"
        and "backoffLimitPerIndex" not in job
        and "podFailurePolicy" not in job
    ):
        # A pod that was drained or evicted fails its Job in words of its own, instead of being replaced alone while the
        # other ranks hang.
        job["podFailurePolicy"] = pod_failure_policy(fatal_exit_codes=())
    # A replacement starts only once the old pod is gone, so two pods never write as the same rank.
    job.setdefault("podReplacementPolicy", "Failed")
    # A sidecar outlives the training, and the pod never completes; some meshes read the label, some the annotation.
    meta = _mapping(pod, "metadata")
    for place in ("labels", "annotations"):
        _mapping(meta, place).setdefault(_ISTIO, "false")
    # JobSet's own default is OnFailure, which restarts in place, loses the exit code and forbids a podFailurePolicy.
    spec.setdefault("restartPolicy", "Never")
    for kind in ("initContainers", "containers"):
        containers = spec.get(kind)
        for container in containers if isinstance(containers, list) else ():
            if isinstance(container, dict):
                # The last log lines survive in the pod's status where the container wrote no message of its own.
                container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")


def _mapping(holder: dict[str, Any], key: str) -> dict[str, Any]:
    """What is to be filled in at a key, where null is as good as nothing. What is no mapping stays for `check` to judge."""
    found = holder.get(key)
    if found is None:
        found = holder[key] = {}
    return found if isinstance(found, dict) else {}
