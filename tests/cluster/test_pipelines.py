"""The example pipelines on the real Argo controller: a fine-tuning that crashes and resumes, a night that trains once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobset_steps.outcome import Outcome, Verdict
from pipelines import finetune_ddp, nightly_retrain
from tests.cluster.conftest import ACCOUNT, PYTHON, TORCH, History, Place
from tests.cluster.test_demo import claimed
from tests.cluster.workflows import Run, pod_patch, submitted, workflow_rights

NIGHT = "workflows.argoproj.io/scheduled-time"


@pytest.fixture
def claim(place: Place, tmp_path: Path) -> Iterator[str]:
    """A claim on a folder that all pods can write to."""
    workflow_rights(place)
    folder = tmp_path / "work"
    folder.mkdir()
    folder.chmod(0o777)
    claimed(place, "work", folder)
    yield "work"
    place.admin.call("DELETE", f"/api/v1/persistentvolumes/{place.name}-work")


def outcome_of(run: Run, node: str) -> Outcome:
    return Outcome.model_validate_json(run.outputs(node)["outcome"])


def test_finetune_ddp_crashes_resumes_is_evaluated_and_promoted(
    place: Place, claim: str, history: History, until: Callable[..., Any]
) -> None:
    run = submitted(place, finetune_ddp.finetune(image=TORCH, launcher=PYTHON, claim=claim), until)
    assert run.ended(seconds=400) == "Succeeded"
    outcome = outcome_of(run, ".train")
    assert outcome.verdict is Verdict.SUCCEEDED, outcome.message
    assert outcome.restarts.total == 1
    assert outcome.attempts[0].cause is not None
    assert (outcome.attempts[0].cause.replicated_job, outcome.attempts[0].cause.exit_code) == ("node", 1)
    assert (outcome.metrics["resumed_from"], outcome.metrics["world_size"]) == (20, 4)
    phases = {name: node["phase"] for name, node in run.nodes().items()}
    assert (phases[".promote"], phases[".report"]) == ("Succeeded", "Skipped")
    assert float(json.loads(run.outputs(".evaluate")["evaluation"])["perplexity"]) < 20
    assert len(history.uids()) == 1


def test_nightly_retrain_trains_a_night_once_whoever_asks_again(
    place: Place, claim: str, history: History, until: Callable[..., Any]
) -> None:
    # Given the schedule, which comes due within a minute
    cron = nightly_retrain.nightly(
        image=PYTHON, launcher=PYTHON, claim=claim, schedule="* * * * *", rounds=5
    ).to_dict()
    cron = json.loads(json.dumps(cron))
    cron["spec"]["workflowSpec"] |= {"serviceAccountName": ACCOUNT, "podSpecPatch": json.dumps(pod_patch())}
    place.create("cronworkflows", cron)
    made = until(lambda: place.items("workflows"), seconds=90)[0]
    first = Run(place, made["metadata"]["name"], until)
    assert cron["spec"]["concurrencyPolicy"] == "Forbid"
    # When somebody submits the same night once more while it trains
    night = made["metadata"]["annotations"][NIGHT]
    until(lambda: place.items("jobsets"), seconds=90)
    again = place.create(
        "workflows",
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"generateName": "again-", "annotations": {NIGHT: night}},
            "spec": cron["spec"]["workflowSpec"],
        },
    )
    place.admin.call(
        "DELETE", place.path("cronworkflows/nightly-retrain"), body={"propagationPolicy": "Orphan"}
    )
    second = Run(place, again["metadata"]["name"], until)
    # Then both tell the same training
    assert (first.ended(seconds=240), second.ended(seconds=240)) == ("Succeeded", "Succeeded")
    assert outcome_of(first, ".train").verdict is Verdict.SUCCEEDED, outcome_of(first, ".train")
    assert outcome_of(second, ".train").uid == outcome_of(first, ".train").uid
    assert len(history.uids()) == 1
