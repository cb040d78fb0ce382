"""Manifests and scripts to test the simulated cluster with."""

from __future__ import annotations

from typing import Any

from jobset_steps.clusters.simulated.scripts import Case, PodScript, Scripts
from jobset_steps.observed import View

__all__ = ["case", "ended", "manifest", "replicated", "scripts"]


def replicated(
    name: str = "w",
    replicas: int = 1,
    pods: int = 1,
    *,
    restart_policy: str = "Never",
    grace: int = 30,
    depends_on: list[dict[str, str]] | None = None,
    **job: Any,
) -> dict[str, Any]:
    pod = {
        "restartPolicy": restart_policy,
        "terminationGracePeriodSeconds": grace,
        "containers": [{"name": "main", "image": "i"}],
    }
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": {"spec": pod}}
    made: dict[str, Any] = {"name": name, "replicas": replicas, "template": {"spec": {**spec, **job}}}
    return made | ({"dependsOn": depends_on} if depends_on else {})


def manifest(*jobs: dict[str, Any], name: str = "t", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": list(jobs or (replicated(),)), **spec},
    }


def case(where: dict[str, Any] | None = None, **script: Any) -> Case:
    return Case(script=PodScript(**script), **(where or {}))


def scripts(*cases: Case, **default: Any) -> Scripts:
    return Scripts(cases=cases, default=PodScript(**default))


def ended(view: View) -> bool:
    return view.jobset is not None and view.jobset.terminal_state != ""
