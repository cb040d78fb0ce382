"""What steps compile to, as Argo gets it. `make golden` writes it anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobset_steps.argo import argo_step, document, template, to_yaml
from jobset_steps.spec.budgets import Budgets
from jobset_steps.spec.jobset import FailurePolicy
from tests.unit.argo.argo_templates import argued

MODES = ("native", "launcher", "plugin")


@pytest.mark.parametrize("mode", MODES)
def test_a_step(mode: Any, golden: Callable[[str, str], None]) -> None:
    spec = argued(
        *("--data", "{{tasks.prep.outputs.parameters.path}}"),
        "--seed={{workflow.parameters.seed}}",
        "{{item}}",
        failurePolicy=FailurePolicy.resilient(max_restarts=3).to_dict(),
    )
    golden(f"argo/{mode}.yaml", to_yaml(template(argo_step(spec, mode=mode))))


def test_a_step_with_everything(golden: Callable[[str, str], None]) -> None:
    step = argo_step(
        argued("{{inputs.parameters.data}}"),
        name="fine-tune",
        on_failure="branch",
        budgets=Budgets(queue="12h", run="6h"),
        slot="{{workflow.scheduledTime}}",
        image="registry.example/launcher:2",
        image_pull_policy="IfNotPresent",
        image_pull_secrets=("registry",),
        service_account="trainer",
        retries=2,
        deadline="7d",
        report=True,
    )
    golden("argo/everything.yaml", to_yaml(template(step)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["workflow", "template", "cluster-template"])
def test_a_document(mode: Any, kind: Any, golden: Callable[[str, str], None]) -> None:
    step = argo_step(argued("{{workflow.parameters.data}}", {"$hole": "lr"}), mode=mode)
    golden(f"argo/{kind}-{mode}.yaml", to_yaml(document(step, kind)))
