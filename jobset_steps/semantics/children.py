"""What a child Job and a pod of a JobSet are called, and which labels, annotations and names they carry.

It follows JobSet 0.11.1 (the same keys on Jobs, pod templates and pods, as labels and as annotations) and the Job
controller of Kubernetes 1.34 for the pod of an index. It builds manifests as plain dicts and never sends one.
"""

from __future__ import annotations

import copy
import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobset_steps.spec.jobset import JobSet, ReplicatedJob

__all__ = ["ChildManifests", "child_job_name", "pod_hostname", "pod_name", "replicas_of", "subdomain"]

_PREFIX = "jobset.sigs.k8s.io/"
_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
_INDEX = "batch.kubernetes.io/job-completion-index"
# The API server cuts the base of a generated name to 58 characters and adds five.
_GENERATED_BASE = 58


def replicas_of(replicated: ReplicatedJob) -> int:
    """How many child Jobs it has: the API's default is one."""
    return 1 if replicated.replicas is None else replicated.replicas


def child_job_name(jobset: str, replicated_job: str, index: int) -> str:
    """The name of a child Job; the same in every attempt."""
    return f"{jobset}-{replicated_job}-{index}"


def pod_hostname(job: str, index: int) -> str:
    """The host name of the pod of an index: stable over pods and attempts."""
    return f"{job}-{index}"


def subdomain(jobset: JobSet, name: str) -> str:
    """The subdomain of the pods: the author's, else the JobSet's name."""
    network = jobset.spec.network
    return (network.subdomain if network is not None else None) or name


class ChildManifests:
    """Makes the pods of one JobSet. `name`, `uid` and `namespace` are the JobSet's as stored."""

    def __init__(self, jobset: JobSet, *, name: str, uid: str, namespace: str) -> None:
        self._jobset = jobset
        self._name, self._uid, self._namespace = name, uid, namespace
        self._templates = {
            replicated.name: replicated.template.spec.template for replicated in jobset.spec.replicated_jobs
        }
        self._first_index: dict[str, int] = {}
        total = 0
        for replicated in jobset.spec.replicated_jobs:
            self._first_index[replicated.name] = total
            total += replicas_of(replicated)
        self._total = total

    def marks(self, replicated: ReplicatedJob, index: int, attempt: int) -> dict[str, str]:
        """What JobSet writes on a child Job and on its pods, as labels and again as annotations."""
        job = child_job_name(self._name, replicated.name, index)
        group = replicated.group_name or "default"
        in_group = [
            each for each in self._jobset.spec.replicated_jobs if (each.group_name or "default") == group
        ]
        before = 0
        for each in in_group:
            if each.name == replicated.name:
                break
            before += replicas_of(each)
        marks = {
            "jobset-name": self._name,
            "jobset-uid": self._uid,
            "replicatedjob-name": replicated.name,
            "restart-attempt": str(attempt),
            "replicatedjob-replicas": str(replicas_of(replicated)),
            "global-replicas": str(self._total),
            "job-index": str(index),
            "job-key": hashlib.sha1(f"{self._namespace}/{job}".encode(), usedforsecurity=False).hexdigest(),
            "job-global-index": str(self._first_index[replicated.name] + index),
            "group-name": group,
            "group-replicas": str(sum(replicas_of(each) for each in in_group)),
            "job-group-index": str(before + index),
        }
        if (coordinator := self._jobset.spec.coordinator) is not None:
            marks["coordinator"] = (
                f"{self._name}-{coordinator.replicated_job}-{coordinator.job_index or 0}-{coordinator.pod_index or 0}"
                f".{subdomain(self._jobset, self._name)}"
            )
        return {_PREFIX + key: value for key, value in marks.items()}

    def pod(
        self,
        replicated: ReplicatedJob,
        index: int,
        attempt: int,
        *,
        job_uid: str,
        completion_index: int | None,
        name: str,
        uid: str,
        index_failures: int | None = None,
    ) -> dict[str, Any]:
        """The manifest of one pod. `index_failures` is given only where the Job has backoffLimitPerIndex.

        `completion_index` is None for a pod of a NonIndexed Job: it then has no host name of its own.
        """
        job = child_job_name(self._name, replicated.name, index)
        manifest: dict[str, Any] = copy.deepcopy(self._templates[replicated.name])
        metadata = manifest.setdefault("metadata", {})
        marks = self.marks(replicated, index, attempt)
        labels = {**(metadata.get("labels") or {}), **marks}
        labels |= {f"{prefix}job-name": job for prefix in ("", "batch.kubernetes.io/")}
        labels |= {f"{prefix}controller-uid": job_uid for prefix in ("", "batch.kubernetes.io/")}
        annotations = {**(metadata.get("annotations") or {}), **marks, **self._exclusive(replicated)}
        spec = manifest.setdefault("spec", {})
        network = self._jobset.spec.network
        # Absent is true: the webhook defaults it.
        if network is None or network.enable_dns_hostnames is not False:
            spec["subdomain"] = subdomain(self._jobset, self._name)
        if completion_index is not None:
            spec["hostname"] = pod_hostname(job, completion_index)
            labels[_INDEX] = annotations[_INDEX] = str(completion_index)
            for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
                env = container["env"] = list(container.get("env") or ())
                if not any(entry.get("name") == "JOB_COMPLETION_INDEX" for entry in env):
                    env.append({"name": "JOB_COMPLETION_INDEX", "value": str(completion_index)})
        if index_failures is not None:
            annotations["batch.kubernetes.io/job-index-failure-count"] = str(index_failures)
        self._add_claims(spec)
        metadata |= {
            "name": name,
            "uid": uid,
            "namespace": self._namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job_uid, "controller": True}
            ],
        }
        return {"apiVersion": "v1", "kind": "Pod", **manifest}

    def _exclusive(self, replicated: ReplicatedJob) -> dict[str, str]:
        written: dict[str, str] = {}
        for metadata in (self._jobset.metadata, replicated.template.metadata):
            given = dict(metadata.annotations or {}) if metadata is not None else {}
            if _EXCLUSIVE in given:
                written |= {key: given[key] for key in (_EXCLUSIVE, _NODE_SELECTOR) if key in given}
        return written

    def _add_claims(self, spec: dict[str, Any]) -> None:
        mounted = {
            mount.get("name")
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
            for mount in container.get("volumeMounts") or ()
        }
        for policy in self._jobset.spec.volume_claim_policies or ():
            for template in policy.templates or ():
                name = (template.get("metadata") or {}).get("name", "")
                if name in mounted:
                    claim = {"claimName": f"{name}-{self._name}"}
                    spec["volumes"] = [
                        *(spec.get("volumes") or ()),
                        {"name": name, "persistentVolumeClaim": claim},
                    ]


def pod_name(job: str, completion_index: int | None, suffix: str) -> str:
    """The name of a pod: the Job's name, the index, and five characters that the API server draws."""
    end = "-" if completion_index is None else f"-{completion_index}-"
    return job[: _GENERATED_BASE - len(end)] + end + suffix
