"""`jobset-steps sweep`: which JobSets it deletes, and which never."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from jobset_steps.cli import main
from tests.unit.clusters.kubernetes.api_server import Answer, Request, serving

WORKFLOW = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "controller": True}


def jobset(name: str, workflow: str = "", **status: Any) -> dict[str, Any]:
    owners = [{**WORKFLOW, "name": workflow, "uid": f"uid-{workflow}"}] if workflow else []
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": owners}
    return {"metadata": meta, "spec": {"replicatedJobs": []}, "status": status}


JOBSETS = [
    jobset("of-a-run-that-goes-on", "running"),
    jobset("of-a-run-that-has-ended", "ended"),
    jobset("of-a-run-that-is-gone", "gone"),
    jobset("that-has-ended-itself", "ended", terminalState="Failed"),
    jobset("of-no-run"),
]
PHASES = {"running": "Running", "ended": "Failed"}


def answer(request: Request) -> Answer:
    path = unquote(request.path)
    if request.method == "DELETE":
        return Answer()
    if "/jobsets" in path:
        assert "labelSelector=jobset-steps/identity" in path
        return Answer(body={"items": JOBSETS})
    name = path.rpartition("/")[2]
    if name not in PHASES:
        return Answer(404, {"reason": "NotFound", "message": "not found"})
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    status = {"phase": PHASES[name], "startedAt": started}
    return Answer(body={"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {}, "status": status})


def swept(tmp_path: Path, *arguments: str) -> tuple[int, list[str], list[Any]]:
    with serving(answer, tmp_path) as (kubeconfig, requests, _):
        code = main(["sweep", "--kubeconfig", kubeconfig, "-n", "default", *arguments])
    deleted = [request for request in requests if request.method == "DELETE"]
    return code, [request.path.rpartition("/")[2] for request in deleted], [each.body for each in deleted]


def test_it_deletes_what_a_run_left_that_has_ended_or_gone_and_nothing_else(tmp_path: Path) -> None:
    code, names, bodies = swept(tmp_path)
    assert code == 0
    assert names == ["of-a-run-that-has-ended", "of-a-run-that-is-gone"]
    assert bodies[0] == {"preconditions": {"uid": f"uid-{names[0]}"}, "propagationPolicy": "Foreground"}


def test_an_exit_handler_deletes_what_its_own_run_left_although_that_still_runs(tmp_path: Path) -> None:
    assert swept(tmp_path, "--workflow", "running")[:2] == (0, ["of-a-run-that-goes-on"])
    assert swept(tmp_path, "--workflow", "ended")[:2] == (0, ["of-a-run-that-has-ended"])
    assert swept(tmp_path, "--workflow", "another")[:2] == (0, [])


def test_a_dry_run_only_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert swept(tmp_path, "--dry-run")[:2] == (0, [])
    assert (
        "of-a-run-that-has-ended: the Workflow has ended (Failed): would be deleted"
        in capsys.readouterr().out
    )


def test_a_workflow_is_one_of_a_namespace(tmp_path: Path) -> None:
    with serving(answer, tmp_path) as (kubeconfig, requests, _):
        assert main(["sweep", "--kubeconfig", kubeconfig, "-A", "--workflow", "ended"]) == 64
        assert main(["sweep", "--kubeconfig", kubeconfig, "--workflow", ""]) == 64
    assert requests == []
