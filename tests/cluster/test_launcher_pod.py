"""The launcher as a pod, in the image that the project builds: killed in the middle, started again, told to end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import yaml

from tests.cluster.conftest import ACCOUNT, PYTHON, ROOT, Place
from tests.cluster.steps import jobset, replicated


def launcher_pod(
    place: Place, name: str, tree: dict[str, Any], *, owner: dict[str, Any] | None = None, node: str = ""
) -> dict[str, Any]:
    """A pod that runs `jobset-steps run` as the launcher's account; with a Workflow owner it is one of its nodes."""
    config = {"metadata": {"name": f"{name}-spec"}, "data": {"train.yaml": yaml.safe_dump(tree)}}
    place.create("configmaps", config)
    command = ["python", "-m", "jobset_steps.cli", "run", "/spec/train.yaml", "--on", "kubernetes", "--plain"]
    if owner is None:
        command += ["--run", "r1"]
    container = {
        "name": "main",
        "image": PYTHON,
        "imagePullPolicy": "Never",
        "command": command,
        "env": [{"name": "PYTHONPATH", "value": str(ROOT)}],
        "volumeMounts": [{"name": "spec", "mountPath": "/spec"}],
    }
    meta: dict[str, Any] = {"name": name}
    if owner is not None:
        meta |= {"ownerReferences": [owner], "annotations": {"workflows.argoproj.io/node-name": node}}
    pod = {
        "metadata": meta,
        "spec": {
            "serviceAccountName": ACCOUNT,
            "restartPolicy": "Never",
            "containers": [container],
            "volumes": [{"name": "spec", "configMap": {"name": f"{name}-spec"}}],
        },
    }
    return place.create("pods", pod)


def log_of(place: Place, pod: str) -> str:
    try:
        return place.admin.text(place.path(f"pods/{pod}/log"), {"container": "main"})
    except Exception:
        return ""


def exit_code(place: Place, pod: str) -> int | None:
    for status in place.get(f"pods/{pod}")["status"].get("containerStatuses") or ():
        if "terminated" in status["state"]:
            code: int = status["state"]["terminated"]["exitCode"]
            return code
    return None


TREE = jobset(
    replicated("leader", 'echo leads; sleep 15; echo \'{"metrics": {"loss": 0.5}}\' > /dev/termination-log')
)


def test_a1_a_launcher_pod_that_is_deleted_leaves_its_jobset_to_the_next(
    place: Place, until: Callable[..., Any]
) -> None:
    launcher_pod(place, "first", TREE)
    until(lambda: "| leads" in log_of(place, "first"))
    (made,) = place.items("jobsets")
    place.admin.call("DELETE", place.path("pods/first"))
    until(lambda: "first" not in [pod["metadata"]["name"] for pod in place.items("pods")])
    assert [item["metadata"]["uid"] for item in place.items("jobsets")] == [made["metadata"]["uid"]]
    launcher_pod(place, "second", TREE)
    assert until(lambda: (exit_code(place, "second") is not None) and log_of(place, "second"))
    assert exit_code(place, "second") == 0, log_of(place, "second")
    assert "Succeeded" in log_of(place, "second")
    assert [item["metadata"]["uid"] for item in place.items("jobsets")] == [made["metadata"]["uid"]]


def test_a4_b3_a_run_that_is_shut_down_takes_its_jobset_along(
    place: Place, until: Callable[..., Any]
) -> None:
    spec = {"entrypoint": "wait", "templates": [{"name": "wait", "suspend": {}}]}
    workflow = place.create(
        "workflows",
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "wf"}, "spec": spec},
    )
    meta = workflow["metadata"]
    owner = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "name": meta["name"],
        "uid": meta["uid"],
    }
    launcher_pod(
        place, "node", jobset(replicated("workers", "sleep 600")), owner=owner, node="wf[0].train(0)"
    )
    until(lambda: "Running" in log_of(place, "node"))
    (made,) = place.items("jobsets")
    annotations = made["metadata"]["annotations"]
    assert annotations["jobset-steps/step"] == "[0].train"
    assert [each["uid"] for each in made["metadata"]["ownerReferences"]] == [meta["uid"]]
    fresh = place.get("workflows/wf")
    fresh["spec"]["shutdown"] = "Stop"
    place.admin.call("PUT", place.path("workflows/wf"), body=fresh)
    place.admin.call("DELETE", place.path("pods/node"), body={"gracePeriodSeconds": 60})
    until(lambda: place.items("jobsets") == [])
    record = next(
        item for item in place.items("configmaps") if item["metadata"]["name"].startswith("jobset-steps-")
    )
    assert json.loads(record["data"]["record"])["outcome"]["verdict"] == "Cancelled"
