"""The demo's training step, unchanged, on a real cluster: a worker crashes, the set restarts, resumes and finishes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.recipes import xgboost
from jobset_steps.spec.jobset import FailurePolicy
from tests.cluster.conftest import PYTHON, ROOT, History, Place
from tests.cluster.steps import started
from tests.cluster.test_launcher_pod import exit_code, launcher_pod, log_of

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


@pytest.fixture
def training(place: Place, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """The demo's JobSet, its data and a claim for its checkpoints: a worker crashes in round 5 of 12."""
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
    yield tree
    for name in ("data", "checkpoints"):
        place.admin.call("DELETE", f"/api/v1/persistentvolumes/{place.name}-{name}")


def restarted_once(outcome: Outcome) -> None:
    """What the demo promises."""
    assert outcome.verdict is Verdict.SUCCEEDED, outcome.message
    assert outcome.restarts.total == 1
    cause = outcome.attempts[0].cause
    assert cause is not None
    assert (cause.exit_code, cause.replicated_job) == (1, "workers")
    assert outcome.metrics["resumed_from"] == 5


def test_d4_the_demos_training_restarts_and_resumes(
    place: Place, training: dict[str, Any], tmp_path: Path
) -> None:
    launcher = started(place, training, tmp_path, "-o", str(tmp_path / "outcome.json"))
    code, out, err = launcher.ended(seconds=300)
    assert code == 0, out + err
    restarted_once(Outcome.model_validate_json((tmp_path / "outcome.json").read_text()))
    assert "round 12/12" in out + err  # the leader's log, streamed


def test_a1_its_launcher_is_a_pod_that_is_killed_in_the_middle_and_started_again(
    place: Place, training: dict[str, Any], history: History, until: Callable[..., Any]
) -> None:
    launcher_pod(place, "first", training)
    until(lambda: "round 2/" in log_of(place, "first"), seconds=120)
    place.admin.call("DELETE", place.path("pods/first"), body={"gracePeriodSeconds": 0})
    launcher_pod(place, "second", training)
    until(lambda: exit_code(place, "second") is not None, seconds=240)
    assert exit_code(place, "second") == 0, log_of(place, "second")
    (record,) = (item for item in place.items("configmaps") if "record" in (item.get("data") or {}))
    restarted_once(Outcome.model_validate(json.loads(record["data"]["record"])["outcome"]))
    assert len(history.uids()) == 1
