"""Whatever way a value takes, what is wrong with it is said in the same words: by bind, Kubeflow, Argo, the plugin, the CLI."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from jobset_steps.cli import main
from jobset_steps.launch.launch import plan_of
from jobset_steps.serve.calls import call_of
from jobset_steps.serve.steps import request_of
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.judge import settle
from jobset_steps.spec.load import load
from jobset_steps.spec.template import SpecTemplate
from tests.unit.launch.test_argo_launcher import ended, given
from tests.unit.launch.test_kfp_options import refused
from tests.unit.serve.test_calls import asked
from tests.unit.spec.examples import changed, container, job, jobset, pod, replicated

TREE = changed(
    jobset(replicated(spec=job(pod(container(args=["--data=$hole{data}"], image={"$hole": "image"}))))),
    "spec.replicatedJobs.0.replicas",
    {"$hole": "nodes"},
)
RIGHT = {"nodes": "2", "data": "d", "image": "python:3.12"}

WRONG: list[tuple[dict[str, str | None], str]] = [
    (
        {"nodes": "four"},
        "spec.replicatedJobs[0].replicas: must be integer, 'four' given; a whole number such as 4 [value-type] "
        "(value of nodes)",
    ),
    (
        {"nodes": "-1"},
        "spec.replicatedJobs[0].replicas: a negative number acts as 0, -1 given; 0 or more [negative-replicas] "
        "(waive with negative-replicas) (value of nodes)",
    ),
    (
        {"nodes": None},
        "spec.replicatedJobs[0].replicas: needs a value (integer) [missing-value] (value of nodes)",
    ),
    (
        {"image": " python"},
        "spec.replicatedJobs[0].template.spec.template.spec.containers[0].image: no spaces around it, ' python' given; python "
        "[image-form] (value of image)",
    ),
    ({"node": "2"}, "node: no hole of this name; did you mean nodes? [unknown-value]"),
]


@pytest.mark.parametrize(("values", "words"), WRONG, ids=[str(values) for values, _ in WRONG])
def test_a_wrong_value_is_said_in_the_same_words_everywhere(
    values: dict[str, str | None],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    passed = {name: value for name, value in {**RIGHT, **values}.items() if value is not None}
    template = load(json.dumps(TREE) + "\n")
    assert isinstance(template, SpecTemplate)
    coded = {name: base64.b64encode(value.encode()).decode() for name, value in passed.items()}

    def bind() -> str:
        with pytest.raises(InvalidSpec) as caught:
            settle(template, passed)
        return str(caught.value)

    def kubeflow() -> str:
        return refused(template.to_json(), {}, capsys, **passed)

    def launcher() -> str:
        body = given() | {"spec": json.loads(template.to_json()), "values": coded}
        code, outputs = ended(tmp_path, monkeypatch, body)
        assert (code, outputs["verdict"]) == (64, "Rejected")
        return capsys.readouterr().out + outputs["outcome"].replace("\\n", "\n")

    def plugin() -> str:
        call = call_of(asked(spec=template.to_json(), values=passed))
        assert call is not None
        with pytest.raises(InvalidSpec) as caught:
            plan_of(request_of(call, "2026-01-01T00:00:00Z"))
        return str(caught.value)

    def shell(command: str) -> Callable[[], str]:
        def said() -> str:
            path = tmp_path / "spec.json"
            path.write_text(json.dumps(TREE))
            settings = [part for name, value in passed.items() for part in ("--set", f"{name}={value}")]
            assert main([command, str(path), *settings]) == 64
            return "".join(capsys.readouterr())

        return said

    ways: Mapping[str, Callable[[], str]] = {
        "bind": bind,
        "Kubeflow": kubeflow,
        "Argo launcher": launcher,
        "Argo plugin": plugin,
        "validate": shell("validate"),
        "render": shell("render"),
        "run": shell("run"),
    }
    for way, said in ways.items():
        assert words in said(), way


def test_an_unknown_rule_to_waive_is_said_too() -> None:
    with pytest.raises(InvalidSpec, match="did you mean no-jobs"):
        settle(load(json.dumps(jobset()) + "\n"), {}, waive=("nojobs",))
