"""JobSets for the real cluster, and steps of them: in this process, or as the command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from jobset_steps.launch import LaunchRequest, plan_of
from jobset_steps.outcome import Outcome
from jobset_steps.runner import Handle, Hooks, Runner
from jobset_steps.spec.budgets import Budgets
from jobset_steps.spec.jobset import JobSet
from jobset_steps.supervisor.plan import EngineAttempt
from tests.cluster.conftest import ROOT, TOOLS, Place

__all__ = ["Launcher", "jobset", "replicated", "request", "run_all", "started"]


def replicated(
    name: str, script: str, *, replicas: int = 1, pods: int = 1, pod: Any = None, job: Any = None, **more: Any
) -> dict[str, Any]:
    """A replicated job whose pods run a shell script that knows $ATTEMPT and $JOB."""
    fields = {"ATTEMPT": "restart-attempt", "JOB": "job-index"}
    env = [
        {
            "name": key,
            "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['jobset.sigs.k8s.io/{field}']"}},
        }
        for key, field in fields.items()
    ]
    container = {
        "name": "main",
        "image": TOOLS,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
        "env": env,
    }
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{**container, **more}],
        **(pod or {}),
    }
    return {
        "name": name,
        "replicas": replicas,
        "template": {
            "spec": {"parallelism": pods, "completions": pods, "template": {"spec": spec}, **(job or {})}
        },
    }


def jobset(
    *jobs: dict[str, Any], name: str = "train", labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """A JobSet of these replicated jobs."""
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, **({"labels": labels} if labels else {})},
        "spec": {"replicatedJobs": list(jobs), **spec},
    }


def request(tree: dict[str, Any], place: Place, *, run: str = "r1", **more: Any) -> LaunchRequest:
    """What a launcher of `tree` is asked for."""
    budgets = Budgets(**{"queue": 120, "startup": 120, "run": 300, "outage": 120, **more.pop("budgets", {})})
    engine = more.pop("engine", EngineAttempt(f"launcher-{run}"))
    return LaunchRequest(
        spec=JobSet.from_dict(tree),
        run=run,
        step="train",
        engine=engine,
        budgets=budgets,
        namespace=place.name,
        **more,
    )


def run_all(place: Place, trees: dict[str, dict[str, Any]], **more: Any) -> dict[str, Outcome]:
    """Run several JobSets as steps of one runner, each as a run of its own, and return their outcomes by name."""
    cluster = place.cluster()
    runner = Runner(cluster)
    handles: dict[str, Handle] = {}
    for name, tree in trees.items():
        options = {**more, **tree.pop("options", {})}
        plan = plan_of(request(tree, place, run=name, **options))
        handles[name] = runner.add(plan, Hooks(deliver=lambda _: None))
    runner.run_all()
    runner.close()
    cluster.close()
    return {name: handle.outcome for name, handle in handles.items() if handle.outcome is not None}


class Launcher:
    """`jobset-steps run --on kubernetes` in a process of its own, as the launcher's account."""

    def __init__(
        self, place: Place, tree: dict[str, Any], folder: Path, *arguments: str, kubeconfig: str = ""
    ) -> None:
        spec = folder / "spec.yaml"
        spec.write_text(yaml.safe_dump(tree))
        command = [
            sys.executable,
            "-m",
            "jobset_steps.cli",
            "run",
            str(spec),
            "--on",
            "kubernetes",
            "-n",
            place.name,
        ]
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "KUBECONFIG": kubeconfig or place.kubeconfig, "PYTHONPATH": str(ROOT)},
        )

    def until_it_says(self, words: str) -> None:
        """Read its progress until a line has these words."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if words in line:
                return
        raise AssertionError(f"it ended without saying {words!r}: {self.process.communicate()[0]}")

    def ended(self, seconds: float = 120) -> tuple[int, str, str]:
        """(exit code, standard output, the rest of its progress)."""
        out, err = self.process.communicate(timeout=seconds)
        # What a pod wrote, and may have failed of, stands further in.
        assert not [line for line in (out + err).splitlines() if line.startswith("Traceback")]
        return self.process.returncode, out, err


def started(place: Place, tree: dict[str, Any], folder: Path, *arguments: str) -> Launcher:
    """A launcher that has been started."""
    return Launcher(place, tree, folder, *arguments)
