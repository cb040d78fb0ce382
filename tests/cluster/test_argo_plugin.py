"""Plugin steps on the real Argo controller: one agent for all steps of a workflow, killed, stopped, retried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hera.workflows import DAG, Container, Parameter, Steps, Task, Workflow

from jobset_steps.argo.hera import JobSetStep
from jobset_steps.outcome import Outcome
from tests.cluster.conftest import PYTHON, TOOLS, History, Place
from tests.cluster.plugin import install_plugin
from tests.cluster.steps import jobset, replicated
from tests.cluster.workflows import Run, submitted, workflow_rights

TRAIN = "[0].train(0)"
SOON = 60.0
"""Seconds within which a JobSet must be gone once its Workflow is over."""


@pytest.fixture
def plugin(place: Place) -> None:
    workflow_rights(place)
    install_plugin(place)


def one_step(tree: dict[str, Any], **options: Any) -> Workflow:
    with Workflow(name="wf", entrypoint="main") as workflow, Steps(name="main"):
        JobSetStep("train", tree, mode="plugin", image=PYTHON, image_pull_policy="Never", **options)
    return workflow


def outcome_of(run: Run, node: str) -> Outcome:
    return Outcome.model_validate_json(run.outputs(node)["outcome"])


def agents(place: Place) -> list[dict[str, Any]]:
    return [pod for pod in place.items("pods") if pod["metadata"]["name"].endswith("-agent")]


def shell(name: str, script: str) -> Container:
    return Container(
        name=name,
        image=TOOLS,
        image_pull_policy="Never",
        command=["sh", "-c", script],
        inputs=[Parameter(name="v")],
    )


@pytest.mark.usefixtures("plugin")
def test_steps_of_one_workflow_end_as_they_ended_and_the_workflow_branches(
    place: Place, history: History, until: Callable[..., Any]
) -> None:
    options = {"mode": "plugin", "image": PYTHON, "image_pull_policy": "Never"}
    fails = replicated("workers", "echo no data; exit 65", job={"backoffLimit": 0})
    with (
        Workflow(name="wf", entrypoint="main", arguments={"words": 'a "b" {c}\n$(d)'}) as workflow,
        DAG(name="main"),
    ):
        said = replicated("workers", 'test "$0" = "$(printf \'a "b" {c}\\n$(d)\')"')
        said["template"]["spec"]["template"]["spec"]["containers"][0]["args"] = [
            workflow.get_parameter("words")
        ]
        good = JobSetStep("good", jobset(said), **options)
        branched = JobSetStep("branched", jobset(fails), on_failure="branch", **options)
        failed = JobSetStep("failed", jobset(fails), **options)
        tell = shell("tell", "echo {{inputs.parameters.v}}")
        good >> Task(
            name="promote", template=tell, when=f"{good.verdict} == Succeeded", arguments={"v": good.verdict}
        )
        branched >> Task(
            name="report",
            template=tell,
            when=f"{branched.verdict} == Failed",
            arguments={"v": branched.reason},
        )
        assert failed is not None
    run = submitted(place, workflow, until)
    run.ended(seconds=240)
    phases = {name: node["phase"] for name, node in run.nodes().items()}
    assert ".good" in phases, run.read()["status"]
    assert (phases[".good"], phases[".branched"], phases[".failed"]) == ("Succeeded", "Succeeded", "Failed")
    assert (phases[".promote"], phases[".report"]) == ("Succeeded", "Succeeded")
    assert outcome_of(run, ".failed(0)").attempts[0].cause.exit_code == 65  # type: ignore[union-attr]
    assert run.outputs(".good")["restarts"] == "0"
    assert len(history.uids()) == 3


@pytest.mark.usefixtures("plugin")
def test_an_agent_that_is_killed_in_the_middle_is_followed_by_one_that_goes_on(
    place: Place, history: History, until: Callable[..., Any]
) -> None:
    run = submitted(place, one_step(jobset(replicated("workers", "sleep 45"))), until)
    until(lambda: place.items("jobsets"), seconds=120)
    (agent,) = agents(place)
    name = agent["metadata"]["name"]
    place.admin.call("DELETE", place.path(f"pods/{name}"), body={"gracePeriodSeconds": 0})
    assert run.ended(seconds=240) == "Succeeded"
    assert len(history.uids()) == 1


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("how", ["Stop", "Terminate", "deadline", "delete"])
def test_a14_a_workflow_that_is_over_takes_its_jobset_along(
    place: Place, until: Callable[..., Any], how: str
) -> None:
    run = submitted(place, one_step(jobset(replicated("workers", "sleep 600"))), until)
    until(lambda: place.items("jobsets"), seconds=120)
    if how == "delete":
        run.delete()
    elif how == "deadline":
        run.change(activeDeadlineSeconds=0)
    else:
        run.change(shutdown=how)
    until(lambda: place.items("jobsets") == [], seconds=SOON)


@pytest.mark.usefixtures("plugin")
def test_a_persons_retry_of_a_failed_step_trains_again(
    place: Place, history: History, until: Callable[..., Any]
) -> None:
    run = submitted(place, one_step(jobset(replicated("workers", "exit 64", job={"backoffLimit": 0}))), until)
    assert run.ended(seconds=240) == "Failed"
    until(lambda: agents(place) == [], seconds=60)
    run.retry()
    until(lambda: len(history.uids()) == 2, seconds=120)
    assert run.ended(seconds=240) == "Failed"
    assert len(history.uids()) == 2
