"""What a launcher of an Argo step takes from its template and its pod, and how it ends where that is wrong."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from jobset_steps.argo import argo_step, template
from jobset_steps.errors import BadInput
from jobset_steps.launch import argo
from jobset_steps.launch.launch import plan_of
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.spec.budgets import Budgets
from tests.unit.argo.argo_templates import NASTY, argued, read_back

POD = {
    "JOBSET_STEPS_POD_UID": "pod-uid",
    "JOBSET_STEPS_NODE": "wf-x[0].train(1:lr:0.1)(2)",
    "JOBSET_STEPS_WORKFLOW": "wf-x",
    "JOBSET_STEPS_WORKFLOW_UID": "0123456789abcdef",
}


def given(*args: Any, values: dict[str, str] | None = None, **options: Any) -> dict[str, Any]:
    return read_back(template(argo_step(argued(*args), **options)), **(values or {}))


def test_identity_and_owner_come_from_the_environment_and_nothing_is_asked() -> None:
    request, place = argo.request_of(given(), POD)
    assert (request.run, request.step) == ("wf-x-01234567", "[0].train(1:lr:0.1)")
    assert (request.engine.launcher, request.engine.retry) == ("pod-uid", 2)
    assert request.owner == place.owner
    assert request.owner is not None
    assert (request.owner.kind, request.owner.name, request.owner.uid) == (
        "Workflow",
        "wf-x",
        "0123456789abcdef",
    )


def test_options_and_values_arrive() -> None:
    asked = given(
        "{{workflow.parameters.x}}",
        values={"workflow-parameters-x": NASTY},
        on_failure="branch",
        budgets=Budgets(run="6h"),
        waive=("ttl-too-short",),
    )
    request, _ = argo.request_of(asked, POD)
    assert (request.on_failure, request.budgets.run, request.waive) == ("branch", 21600, ("ttl-too-short",))
    assert request.values == {"workflow.parameters.x": NASTY}
    assert (request.grace, plan_of(request).grace) == (55, 55)


def test_a_slot_outlives_its_workflow_so_it_has_no_owner() -> None:
    request, place = argo.request_of(given(slot="monday"), POD)
    assert (request.slot, request.owner) == ("monday", None)
    assert place.owner is not None


def test_a_slot_of_a_schedule_arrives_as_a_value_does() -> None:
    text = template(argo_step(argued(), slot="{{workflow.scheduledTime}}"))["inputs"]["artifacts"][0]["raw"][
        "data"
    ]
    tag = "{{=sprig.b64enc(inputs.parameters['slot'])}}"
    assert text.count(tag) == 1
    asked = json.loads(text.replace(tag, base64.b64encode(b"2026-12-01T03:00:00Z").decode()))
    assert argo.request_of(asked, POD)[0].slot == "2026-12-01T03:00:00Z"


def test_a_jobset_elsewhere_has_no_owner() -> None:
    request, _ = argo.request_of(given(namespace="other", waive=("other-namespace",)), POD)
    assert (request.namespace, request.owner) == ("other", None)


@pytest.mark.parametrize("missing", sorted(POD))
def test_a_launcher_that_does_not_know_whom_it_serves_does_not_guess(missing: str) -> None:
    with pytest.raises(BadInput, match=missing):
        argo.request_of(given(), {key: value for key, value in POD.items() if key != missing})


def ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any] | str
) -> tuple[int, dict[str, str]]:
    for name, value in POD.items():
        monkeypatch.setenv(name, value)
    source, folder = tmp_path / "request.json", tmp_path / "outputs"
    source.write_text(asked if isinstance(asked, str) else json.dumps(asked))
    code = argo.main([str(source), str(folder)])
    return code, {path.name: path.read_text() for path in folder.iterdir()}


def test_a_value_that_cannot_be_bound_ends_as_rejected_with_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = given()
    asked["spec"] = {
        "tree": argued() | {"metadata": {"name": "train", "annotations": {"a": {"$hole": "n"}}}},
        "holes": [{"name": "n", "type": "integer"}],
    }
    asked["values"] = {"n": base64.b64encode(b"four").decode()}
    code, outputs = ended(tmp_path, monkeypatch, asked)
    assert code == 64
    assert "metadata.annotations.a: must be integer, 'four' given" in capsys.readouterr().out
    assert outputs["verdict"] == "Rejected"
    outcome = Outcome.model_validate_json(outputs["outcome"])
    assert (outcome.verdict, outcome.exit_code) == (Verdict.REJECTED, 64)
    # A final verdict ends a step that branches well.
    asked["options"]["on_failure"] = "branch"
    assert ended(tmp_path, monkeypatch, asked)[0] == 0


def test_a_value_that_argo_left_unresolved_is_never_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = given()
    asked["values"] = {"x": "{{inputs.parameters.x}}"}
    code, outputs = ended(tmp_path, monkeypatch, asked)
    assert (code, outputs["verdict"]) == (64, "Rejected")
    assert "x: Argo did not resolve its value" in capsys.readouterr().out


def test_a_request_that_is_no_json_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, outputs = ended(tmp_path, monkeypatch, "{{")
    assert (code, outputs["verdict"]) == (64, "Rejected")
    assert "JSONDecodeError" in capsys.readouterr().out
