"""How soon a Workflow ends once its training has: each mode beside a hand-written resource template, and Argo's own floors.

    python -m benchmarks.argo --rounds 16 [--kubeconfig FILE]     # make bench-argo

Needs a cluster with JobSet, Argo with executor plugins, and the images of the test cluster. In each round every kind runs
one Workflow, all at once, so that whatever else the machine does meets all alike; trainings of one round last as long as
each other and those of the next a little longer, since Argo looks at a Workflow every ten seconds: the rounds together
spread evenly over these. Measured, in seconds:

- native, launcher, plugin, template: JobSet terminal -> Workflow ended
- container: process exit -> Workflow ended, of a bare container step
- bareplugin: answer -> Workflow ended, of a plugin step that is answered at once
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from jobset_steps.argo import argo_step, document
from tests.cluster.conftest import ACCOUNT, PYTHON, TOOLS, Place, administrator, new_place
from tests.cluster.plugin import install_plugin
from tests.cluster.steps import jobset, replicated
from tests.cluster.workflows import pod_patch, workflow_rights

LOOK = 0.1
"""Seconds between looks at the server; the error of each figure."""
KINDS = ("native", "launcher", "plugin", "template", "container", "bareplugin")


def workflow(kind: str, name: str, lasts: float) -> dict[str, Any]:
    """The Workflow of a kind, with a training that lasts so many seconds."""
    training = jobset(replicated("workers", f"sleep {lasts:g}"))
    if kind in ("native", "launcher", "plugin", "bareplugin"):
        options: dict[str, Any] = {
            "mode": kind.removeprefix("bare"),
            "image": PYTHON,
            "image_pull_policy": "Never",
        }
        step = argo_step(
            training, name="train", on_failure="fail" if kind == "native" else "branch", **options
        )
        made = document(step)
        made["metadata"] = {"name": name}
        if kind == "bareplugin":
            for template in made["spec"]["templates"]:
                if "plugin" in template:
                    template["plugin"]["jobset-steps"]["values"] = {"x": ""}  # refused, so answered at once
    else:
        template = {"name": "train"} | (
            _container(lasts) if kind == "container" else _resource(name, training)
        )
        made = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": name},
            "spec": {"entrypoint": "train", "templates": [template]},
        }
    made["spec"] |= {"serviceAccountName": ACCOUNT, "podSpecPatch": json.dumps(pod_patch())}
    return made


def _container(lasts: float) -> dict[str, Any]:
    script = f"sleep {lasts:g}; echo $(date +%s)"
    return {"container": {"image": TOOLS, "imagePullPolicy": "Never", "command": ["sh", "-c", script]}}


def _resource(name: str, training: dict[str, Any]) -> dict[str, Any]:
    """What people write today."""
    tree = {**training, "metadata": {"name": f"{name}-set"}}
    return {
        "resource": {
            "action": "create",
            "setOwnerReference": True,
            "successCondition": "status.terminalState == Completed",
            "failureCondition": "status.terminalState == Failed",
            "manifest": json.dumps(tree),
        }
    }


class Round:
    """One Workflow of one kind, from its creation to its end."""

    def __init__(self, place: Place, kind: str, name: str, lasts: float) -> None:
        self._place, self.kind, self._name, self._lasts = place, kind, name, lasts
        self.seconds: float | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        place, path = self._place, f"workflows/{self._name}"
        place.create("workflows", workflow(self.kind, self._name, self._lasts))
        began: float | None = None
        end = time.monotonic() + 180
        while time.monotonic() < end:
            if began is None:
                began = self._training_ended()
            read = place.get(path)
            if (read.get("status") or {}).get("phase") in ("Succeeded", "Failed", "Error"):
                now = time.time()
                began = began if began is not None else self._training_ended()
                self.seconds = None if began is None else now - began
                return
            time.sleep(LOOK)

    def _training_ended(self) -> float | None:
        if self.kind == "container":
            return self._exited()
        if self.kind == "bareplugin":
            return self._answered()
        for item in self._place.items("jobsets"):
            owners = item["metadata"].get("ownerReferences") or [{}]
            if owners[0].get("name") == self._name and (item.get("status") or {}).get("terminalState"):
                return time.time()
        return None

    def _exited(self) -> float | None:
        """When the process wrote its last line, which it does as it ends."""
        return self._line(f"workflows.argoproj.io/workflow={self._name}", "main", str.isdigit)

    def _answered(self) -> float | None:
        return self._line(
            f"workflows.argoproj.io/workflow={self._name}", "jobset-steps", lambda line: "no hole" in line
        )

    def _line(self, selector: str, container: str, wanted: Any) -> float | None:
        for pod in self._place.items(f"pods?labelSelector={selector}"):
            try:
                query = {"container": container, "timestamps": "true"}
                text = self._place.admin.text(self._place.path(f"pods/{pod['metadata']['name']}/log"), query)
            except Exception:
                continue
            for line in text.splitlines():
                stamp, _, words = line.partition(" ")
                if wanted(words):
                    return datetime.fromisoformat(stamp).timestamp()
        return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.argo", description=__doc__)
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--kubeconfig", default=None)
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    took: dict[str, list[float]] = {kind: [] for kind in kinds}
    kubeconfig = options.kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    client = administrator(kubeconfig)
    with tempfile.TemporaryDirectory() as folder, new_place(client, kubeconfig, Path(folder)) as place:
        workflow_rights(place)
        install_plugin(place)
        for number in range(options.rounds):
            lasts = 5 + 10 * number / options.rounds
            runs = [Round(place, kind, f"{kind}-{number}", lasts) for kind in kinds]
            for run in runs:
                run.thread.join()
                if run.seconds is not None:
                    took[run.kind].append(run.seconds)
            told = ", ".join(
                f"{run.kind} {run.seconds:.1f}" if run.seconds else f"{run.kind} -" for run in runs
            )
            print(f"round {number + 1}/{options.rounds}: {told}", flush=True)
    if silent := [kind for kind in kinds if len(took[kind]) < options.rounds]:
        print(f"not every round gave a figure: {', '.join(silent)}", file=sys.stderr)
        return 1
    medians = {kind: statistics.median(seconds) for kind, seconds in took.items()}
    print("medians in seconds: " + ", ".join(f"{kind} {median:.1f}" for kind, median in medians.items()))
    if "launcher" in medians and "container" in medians:
        print(f"launcher {medians['launcher'] / medians['container']:.2f} x container (at most 1.15)")
    if "plugin" in medians and "bareplugin" in medians:
        print(f"plugin {medians['plugin'] / medians['bareplugin']:.2f} x bareplugin (at most 1.1)")
    floor = medians.get("template", 1.0)
    print(", ".join(f"{kind} {median / floor:.2f}" for kind, median in medians.items() if kind != "template"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
