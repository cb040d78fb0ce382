"""`render --engine argo`: YAML that Argo reads, and options that are refused where they would mean nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hera.workflows.models import ClusterWorkflowTemplate, Workflow, WorkflowTemplate

from jobset_steps.argo import argo_step, document
from jobset_steps.spec.budgets import Budgets
from jobset_steps.spec.load import load
from tests.unit.argo.argo_templates import argued
from tests.unit.cli.test_commands import ran, written

MODELS = {
    "workflow": Workflow,
    "template": WorkflowTemplate,
    "cluster-template": ClusterWorkflowTemplate,
}


@pytest.fixture
def spec(tmp_path: Path) -> str:
    return written(tmp_path / "train.yaml", argued("{{workflow.parameters.data}}", {"$hole": "lr"}))


@pytest.mark.parametrize("mode", ["native", "launcher", "plugin"])
@pytest.mark.parametrize("kind", sorted(MODELS))
def test_it_prints_what_the_library_compiles_and_what_argos_models_read(
    spec: str, mode: Any, kind: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = ran(capsys, "render", spec, "--engine", "argo", "--mode", mode, "--kind", kind)
    assert code == 0
    read = yaml.safe_load(out)
    assert read == document(argo_step(load(Path(spec)), mode=mode), kind)
    assert MODELS[kind].model_validate(read).kind == read["kind"]


def test_options_reach_the_step(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--on-failure branch --queue-timeout 12h --run-timeout 6h --retries 2 --slot monday --deadline 2d --report"
    more = "--image registry.example/launcher:2 --service-account trainer --step fine-tune"
    code, out, _ = ran(capsys, "render", spec, "--engine", "argo", *arguments.split(), *more.split())
    assert code == 0
    step = argo_step(
        load(Path(spec)),
        name="fine-tune",
        on_failure="branch",
        budgets=Budgets(queue="12h", run="6h"),
        retries=2,
        slot="monday",
        deadline="2d",
        report=True,
        image="registry.example/launcher:2",
        service_account="trainer",
    )
    assert yaml.safe_load(out) == document(step)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--mode launcher", "--mode: only with --engine argo"),
        ("--kind template", "--kind: only with --engine argo"),
        ("--engine tekton", "--engine tekton: argo"),
        ("--engine argo --kind job", "--kind job: one of workflow, template, cluster-template"),
        ("--engine argo --mode native --on-failure branch", "[native-branch]"),
        ("--engine argo --run-timeout soon", "--run-timeout"),
        ("--engine argo --set lr=1", "Give values with --set workflow.parameters.data=..."),
    ],
)
def test_what_means_nothing_is_refused(
    spec: str, arguments: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(capsys, "render", spec, *arguments.split())
    assert (code, out) == (64, "")
    assert words in err
