"""The smallest JobSet that passes, and a way to change one place of it."""

from __future__ import annotations

import copy
from typing import Any

from jobset_steps.spec.check import check
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.fault import Fault
from jobset_steps.spec.jobset import JobSet

__all__ = ["changed", "claim", "container", "faults_of", "job", "jobset", "pod", "replicated", "rules_of"]


def container(**more: Any) -> dict[str, Any]:
    return {"name": "main", "image": "python:3.12", **more}


def claim(name: str, **spec: Any) -> dict[str, Any]:
    sound = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {**sound, **spec}}


def pod(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"spec": {"restartPolicy": "Never", "containers": list(containers) or [container()], **more}}


def job(template: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "parallelism": 1,
        "completions": 1,
        "completionMode": "Indexed",
        "template": template or pod(),
        **more,
    }


def replicated(name: str = "workers", spec: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "replicas": 1, "template": {"spec": spec or job()}, **more}


def jobset(*jobs: dict[str, Any], name: str = "train", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": list(jobs) or [replicated()], **spec},
    }


def changed(tree: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with the value at a dotted path ("spec.replicatedJobs.0.name") set."""
    tree = copy.deepcopy(tree)
    node: Any = tree
    *parents, last = path.split(".")
    for part in parents:
        node = node[int(part)] if isinstance(node, list) else node.setdefault(part, {})
    node[int(last) if isinstance(node, list) else last] = value
    return tree


def faults_of(tree: dict[str, Any], *, defaults: bool = False, **options: Any) -> tuple[Fault, ...]:
    read = JobSet.from_dict(tree)
    return check(with_defaults(read) if defaults else read, **options)


def rules_of(tree: dict[str, Any], **options: Any) -> list[tuple[str, str]]:
    """(path, rule) of every fault."""
    return [(fault.path, fault.rule) for fault in faults_of(tree, **options)]
