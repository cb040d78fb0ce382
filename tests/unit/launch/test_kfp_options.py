"""What a Kubeflow task is given as plain data, by anybody's hand: wrong options end with 64 and every fault."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from jobset_steps.launch import kfp
from tests.unit.spec.examples import changed, jobset

ARTIFACTS: Any = {name: SimpleNamespace(uri="", path="") for name in ("metrics", "model", "report")}


def refused(spec: str, options: dict[str, Any], capsys: pytest.CaptureFixture[str], **values: Any) -> str:
    with pytest.raises(SystemExit) as ended:
        kfp.run(spec, values, options, **ARTIFACTS)
    assert ended.value.code == 64
    return capsys.readouterr().err


def test_every_wrong_option_is_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    options = {"foo": 1, "bar": 2, "on_failure": "x", "budgets": {"rum": "1h", "run": "soon"}, "waive": 5}
    said = refused(json.dumps(jobset()), options, capsys)
    for word in ("foo", "bar", "on_failure", "budgets.rum", "budgets.run", "waive"):
        assert f"options: {word}: not known" in said or f"options.{word}: " in said, said


@pytest.mark.parametrize(
    "template",
    [
        {"tree": {"metadata": {"$hole": "unknown"}}, "holes": []},
        {"tree": {}, "holes": [{"name": "a", "type": "int"}]},
        {"tree": {}, "holes": [{"name": ["a"], "type": "string"}]},
        {"tree": {}, "holes": 3},
    ],
)
def test_a_template_that_is_none_is_a_fault(template: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert "not a template" in refused(json.dumps(template), {}, capsys)


def test_whole_numbers_in_lists_and_mappings_stay_whole() -> None:
    tree = changed(
        jobset(), "spec.replicatedJobs.0.template.spec.template.spec.containers.0.args", ["$hole{a}"]
    )
    text = json.dumps({"tree": tree, "holes": [{"name": "a", "type": "object"}]})
    request = kfp._request(text, {"a": {"layers": [128.0, 0.5], "n": 4.0}}, {}, "")
    assert request.values == {"a": {"layers": [128, 0.5], "n": 4}}
    assert all(type(value) is int for value in (request.values["a"]["n"], request.values["a"]["layers"][0]))
