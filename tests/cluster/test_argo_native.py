"""Native steps on the real Argo controller, with nothing of ours on the cluster: what they give, and where they end."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

import pytest
from hera.workflows import DAG, Container, Parameter, Steps, Task, Workflow

from jobset_steps.argo.hera import JobSetStep
from jobset_steps.clusters.kubernetes.sweep import sweep
from tests.cluster.conftest import TOOLS, History, Place
from tests.cluster.steps import jobset, replicated
from tests.cluster.workflows import Run, submitted, workflow_rights

LONG = jobset(replicated("workers", "sleep 600"))
TRAIN = "[0].train"


@pytest.fixture(autouse=True)
def rights(place: Place) -> None:
    workflow_rights(place)
    # Nothing but what components/argo gives.
    place.admin.call("DELETE", place.path("rolebindings/jobset-steps-launcher"))
    place.admin.call("DELETE", place.path("rolebindings/jobset-steps-dry-run"))


def one_step(tree: dict[str, Any], name: str = "wf", **options: Any) -> Workflow:
    with Workflow(name=name, entrypoint="main") as workflow, Steps(name="main"):
        JobSetStep("train", tree, mode="native", **options)
    return workflow


def test_a10_text_arrives_byte_for_byte_and_the_verdict_is_an_output(
    place: Place, until: Callable[..., Any]
) -> None:
    nasty = "echo \"a: {{b}}\n'c'\" }} {{workflow.name}} {{pod.name}} $$ $(HOME) ${X} \\ \x01\t é 😀 <>&"
    script = "echo \"$0\" '{{c}}' $$ 'é 😀' 'train-workers-0-0'; sleep 1"
    with Workflow(name="wf", entrypoint="main", arguments={"empty": ""}) as workflow:
        made = Container(
            name="make",
            image=TOOLS,
            image_pull_policy="Never",
            command=["sh", "-c"],
            args=[f"echo {base64.b64encode(nasty.encode()).decode()} | base64 -d > /tmp/nasty"],
            outputs=[Parameter(name="nasty", value_from={"path": "/tmp/nasty"})],
        )
        told = Container(name="told", image=TOOLS, image_pull_policy="Never", command=["true"])
        with DAG(name="main"):
            make = Task(name="make", template=made)
            worker = replicated("workers", script)
            worker["template"]["spec"]["template"]["spec"]["containers"][0]["args"] = [
                make.get_parameter("nasty"),
                f'it\'s [{make.get_parameter("nasty")}] "😀"\n{{{{d}}}}',
                workflow.get_parameter("empty"),
            ]
            train = JobSetStep("train", jobset(worker), mode="native")
            when = f"{train.verdict} == Succeeded && {train.restarts} == 0"
            make >> train >> Task(name="told", template=told, when=when)
    run = submitted(place, workflow, until)
    assert run.ended() == "Succeeded", run.read()["status"]
    (item,) = place.items("jobsets")
    name = item["metadata"]["name"]
    pod = item["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    assert pod["args"] == [nasty, f'it\'s [{nasty}] "😀"\n{{{{d}}}}', ""]
    assert pod["command"][2] == script.replace("train-workers", f"{name}-workers")
    assert run.outputs(".train") == {"verdict": "Succeeded", "restarts": "0", "jobset": name}
    assert run.nodes()[".told"]["phase"] == "Succeeded"
    (owner,) = item["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["blockOwnerDeletion"]) == ("Workflow", "wf", False)
    assert item["metadata"]["annotations"]["jobset-steps/step"] == "train"


def test_a1_a2_a_waiter_that_is_deleted_comes_back_to_its_jobset(
    place: Place, until: Callable[..., Any], history: History
) -> None:
    run = submitted(place, one_step(jobset(replicated("workers", "sleep 40"))), until)
    until(lambda: place.items("jobsets") and run.nodes()[f"{TRAIN}(0)"]["phase"] == "Running")
    (pod,) = run.pods("train")
    place.admin.call("DELETE", place.path(f"pods/{pod['metadata']['name']}"))
    assert run.ended(180) == "Succeeded"
    assert run.nodes()[f"{TRAIN}(1)"]["phase"] == "Succeeded"
    assert len(history.uids()) == 1


def test_a13_a_failed_training_is_not_tried_again_and_is_left_to_look_at(
    place: Place, until: Callable[..., Any], history: History
) -> None:
    run = submitted(place, one_step(jobset(replicated("workers", "exit 3"))), until)
    assert run.ended() == "Failed"
    assert f"{TRAIN}(1)" not in run.nodes()
    assert run.nodes()[".onExit[0].sweep"]["phase"] == "Skipped"
    (item,) = place.items("jobsets")
    assert item["status"]["terminalState"] == "Failed"
    # A person's retry reads the same JobSet again: it trains only where that was deleted.
    run.retry()
    until(lambda: run.phase() == "Running")
    assert run.ended() == "Failed"
    assert len(history.uids()) == 1
    place.admin.call("DELETE", place.path(f"jobsets/{item['metadata']['name']}"))
    until(lambda: place.items("jobsets") == [])
    run.retry()
    until(lambda: len(history.uids()) == 2, seconds=120)
    assert run.ended() == "Failed"


def test_a4_a_run_that_is_ended_takes_its_jobset_along_by_the_exit_handler_the_owner_or_the_sweep(
    place: Place, until: Callable[..., Any]
) -> None:
    runs: dict[str, Run] = {
        name: submitted(place, one_step(LONG, name, **options), until, **spec)
        for name, options, spec in (
            ("stopped", {}, {}),
            ("terminated", {}, {}),
            ("deleted", {}, {}),
            ("outlived", {}, {"activeDeadlineSeconds": 60}),
            ("too-slow", {"deadline": 60}, {}),
        )
    }

    def owners() -> set[str]:
        return {item["metadata"]["ownerReferences"][0]["name"] for item in place.items("jobsets")}

    until(lambda: owners() >= {"stopped", "terminated", "deleted"})
    asked = time.monotonic()
    runs["stopped"].change(shutdown="Stop")
    runs["terminated"].change(shutdown="Terminate")
    runs["deleted"].delete()
    took: dict[str, int] = {}

    def gone() -> bool:
        left = owners()
        took.update({name: round(time.monotonic() - asked) for name in runs if name not in {*left, *took}})
        return left <= {"terminated"}

    until(gone, seconds=150)
    print("seconds until the JobSet was gone:", took)
    for name in ("stopped", "terminated", "outlived", "too-slow"):
        assert runs[name].ended() == "Failed"
        assert f"{TRAIN}(1)" not in runs[name].nodes()
    # Terminate runs no exit handler: this one is the sweep CronJob's.
    assert owners() == {"terminated"}
    (swept,) = sweep(place.admin, place.name, time.time())
    assert (swept.why, swept.error) == ("the Workflow is shut down (Terminate)", "")
    until(lambda: owners() == set())
