"""What Argo's agent asks, and what it is answered."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from jobset_steps.clusters.kubernetes.workflows import NodeView, nodes_of
from jobset_steps.errors import BadInput
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.serve.calls import call_of, ended, running
from jobset_steps.serve.steps import request_of
from jobset_steps.supervisor.inputs import Progress, Say
from tests.unit.spec.examples import jobset, replicated


def asked(node: str = "wf[0].train(0)", **body: Any) -> dict[str, Any]:
    spec = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", **jobset(replicated())}
    return {
        "workflow": {"metadata": {"name": "wf", "namespace": "ns", "uid": "0123456789"}},
        "template": {
            "name": "train",
            "plugin": {"jobset-steps": {"spec": json.dumps(spec), "node": node, **body}},
        },
    }


def request(**body: Any) -> Any:
    call = call_of(asked(**body))
    assert call is not None
    return request_of(call, "2026-01-01T00:00:00Z")


def test_a_template_of_another_plugin_is_not_ours() -> None:
    assert call_of({"template": {"plugin": {"hello": {}}}}) is None
    assert call_of({"template": {"name": "x", "container": {}}}) is None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"node": "{{node.name}}"}, "which Argo fills in"),
        ({"node": ""}, "which Argo fills in"),
        ({"spec": {"kind": "JobSet"}}, "a JobSet as JSON text is missing"),
    ],
)
def test_a_body_that_was_written_wrong_is_told_what_it_lacks(body: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        call_of(asked(**body))


def test_the_identity_is_the_launchers_whatever_the_mode() -> None:
    made = request(options={"on_failure": "branch"}, retry="2", node="wf[0].train(2)")
    assert (made.run, made.step) == ("wf-01234567", "[0].train")
    assert made.engine.retry == 2
    assert made.owner is not None
    assert (made.owner.name, made.owner.uid) == ("wf", "0123456789")


def test_a_try_that_argo_begins_anew_is_another_launcher() -> None:
    call = call_of(asked())
    assert call is not None
    first, again = (request_of(call, began).engine.launcher for began in ("at one", "at two"))
    assert first != again


def test_a_slot_has_no_owner() -> None:
    assert request(options={"slot": "night"}).owner is None


def test_another_namespace_is_refused() -> None:
    with pytest.raises(BadInput, match="trains in the namespace of its Workflow, 'ns'"):
        request(options={"namespace": "elsewhere"})


@pytest.mark.parametrize(
    ("verdict", "on_failure", "phase", "code"),
    [
        (Verdict.SUCCEEDED, "fail", "Succeeded", "0"),
        (Verdict.FAILED, "fail", "Failed", "75"),
        (Verdict.FAILED, "branch", "Succeeded", "0"),
        (Verdict.UNKNOWN, "branch", "Failed", "75"),
    ],
)
def test_an_end_has_outputs_and_an_exit_code_whatever_the_verdict(
    verdict: Verdict, on_failure: Any, phase: str, code: str
) -> None:
    answer = ended(Outcome(verdict=verdict, reason="R", exit_code=75), on_failure)["node"]
    outputs = {each["name"]: each["value"] for each in answer["outputs"]["parameters"]}
    assert (answer["phase"], answer["outputs"]["exitCode"]) == (phase, code)
    assert outputs["verdict"] == verdict.value
    assert Outcome.model_validate_json(outputs["outcome"]).verdict is verdict


def test_progress_is_the_nodes_message() -> None:
    answer = running(Say(Progress.QUEUED, "waits for quota", "Suspended"), 2.0)
    assert answer == {
        "node": {"phase": "Running", "message": "Queued (Suspended): waits for quota"},
        "requeue": "2s",
    }


def test_nodes_of_a_large_workflow_are_unpacked() -> None:
    nodes = {"id": {"name": "wf", "phase": "Running", "startedAt": "t"}}
    packed = base64.b64encode(gzip.compress(json.dumps(nodes).encode())).decode()
    assert (
        nodes_of({"compressedNodes": packed})
        == nodes_of({"nodes": nodes})
        == {"wf": NodeView("Running", "t")}
    )
