"""The demo's training step, unchanged, on a real cluster: a worker crashes, the set restarts, resumes and finishes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from jobset_steps.launch import plan_of
from jobset_steps.outcome import Verdict
from jobset_steps.recipes import xgboost
from jobset_steps.runner import Hooks, Runner
from jobset_steps.spec.jobset import FailurePolicy
from tests.cluster.conftest import PYTHON, ROOT, Place
from tests.cluster.steps import request

PREPARE = """
import sys, numpy
from sklearn.datasets import load_digits
features, labels = load_digits(return_X_y=True)
numpy.savez(sys.argv[1], features=features, labels=labels)
"""


def claimed(place: Place, name: str, folder: Path) -> None:
    """A claim on a folder of this machine, which is the cluster's node."""
    volume = f"{place.name}-{name}"
    size, mode = {"storage": "1Gi"}, ["ReadWriteMany"]
    spec = {"capacity": size, "accessModes": mode, "hostPath": {"path": str(folder)}, "storageClassName": ""}
    place.admin.call(
        "POST",
        "/api/v1/persistentvolumes",
        body={"metadata": {"name": volume}, "spec": {**spec, "persistentVolumeReclaimPolicy": "Retain"}},
    )
    claim = {
        "accessModes": mode,
        "resources": {"requests": size},
        "storageClassName": "",
        "volumeName": volume,
    }
    place.create("persistentvolumeclaims", {"metadata": {"name": name}, "spec": claim})


def test_d4_the_demos_training_restarts_and_resumes(place: Place, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", PREPARE, str(tmp_path / "data.npz")], check=True)
    for name in ("data", "checkpoints"):
        (tmp_path / name).mkdir()
        claimed(place, name, tmp_path / name)
    (tmp_path / "data.npz").rename(tmp_path / "data" / "data.npz")
    spec = xgboost(
        "train",
        script=ROOT / "pipelines" / "retrain_xgboost_train.py",
        image=PYTHON,
        workers=3,
        args=["--data", "/data/data.npz", "--rounds", 12, "--crash-rank", 2, "--crash-at-round", 5],
        env={"PYTHONPATH": ROOT},
        volumes={"/data": "pvc://data"},
        checkpoints="pvc://checkpoints",
        failure_policy=FailurePolicy.resilient(max_restarts=2),
    )
    tree = spec.to_dict()  # type: ignore[union-attr]
    for replicated in tree["spec"]["replicatedJobs"]:
        for container in replicated["template"]["spec"]["template"]["spec"]["containers"]:
            container["imagePullPolicy"] = "Never"
    lines: list[str] = []
    cluster = place.cluster()
    runner = Runner(cluster)
    outcome = runner.run(plan_of(request(tree, place)), Hooks(deliver=lambda _: None, log=lines.append))
    runner.close()
    cluster.close()
    for name in ("data", "checkpoints"):
        place.admin.call("DELETE", f"/api/v1/persistentvolumes/{place.name}-{name}")
    assert outcome.verdict is Verdict.SUCCEEDED, outcome.message
    assert outcome.restarts.total == 1
    cause = outcome.attempts[0].cause
    assert cause is not None
    assert (cause.exit_code, cause.replicated_job) == (1, "workers")
    assert outcome.metrics["resumed_from"] == 5
    assert "resumed from round 5" in lines
