"""Launcher steps on the real Argo controller: outputs whatever happened, retries that adopt or train anew, clean ends."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hera.workflows import DAG, Container, Parameter, Steps, Task, TaskResult, Workflow
from hera.workflows.models import ContinueOn

from jobset_steps.argo.hera import JobSetStep
from jobset_steps.outcome import Outcome, Verdict
from tests.cluster.conftest import PYTHON, ROOT, TOOLS, History, Place
from tests.cluster.steps import jobset, replicated
from tests.cluster.workflows import IMAGE, submitted, workflow_rights

ANYWAY = ContinueOn(failed=True, error=True)


@pytest.fixture
def rights(place: Place) -> None:
    workflow_rights(place)


def shell(name: str, script: str, **more: Any) -> Container:
    return Container(
        name=name, image=TOOLS, image_pull_policy="Never", command=["sh", "-c"], args=[script], **more
    )


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def one_step(tree: dict[str, Any], name: str = "wf", **options: Any) -> Workflow:
    """A Workflow of one launcher step, "train"."""
    with Workflow(name=name, entrypoint="main") as workflow, Steps(name="main"):
        JobSetStep("train", tree, **IMAGE, **options)
    return workflow


TRAIN = "[0].train"


@pytest.mark.usefixtures("rights")
def test_a10_values_arrive_byte_for_byte_and_outputs_leave(place: Place, until: Callable[..., Any]) -> None:
    # (Argo itself fills tags of its own into arguments of a Workflow: there, and only there, they do not survive.)
    nasty = "echo \"a: {{b}}\n'c'\" {{workflow.name}} {{pod.name}} $$ $(HOME) ${X} \\ \x01\t\x7f é 😀 <>&"
    big = "x" * 100_000
    script = 'printf %s "$0" | md5sum; printf %s "$1" | wc -c; printf "%s" "$2$3"; echo "$$" "{{c}}"; sleep 1'
    argument = nasty.replace("{{workflow.name}} {{pod.name}} ", "")
    with Workflow(
        name="wf", entrypoint="main", arguments={"argument": argument, "count": "2", "empty": ""}
    ) as workflow:
        made = shell(
            "make",
            f"head -c {len(big)} /dev/zero | tr '\\0' x > /tmp/big; echo {_base64(nasty)} | base64 -d > /tmp/nasty",
            outputs=[
                Parameter(name="big", value_from={"path": "/tmp/big"}),
                Parameter(name="nasty", value_from={"path": "/tmp/nasty"}),
            ],
        )
        with DAG(name="main"):
            make = Task(name="make", template=made)
            worker = replicated("workers", script)
            pod = worker["template"]["spec"]["template"]["spec"]["containers"][0]
            pod["args"] = [
                make.get_parameter("nasty"),
                make.get_parameter("big"),
                workflow.get_parameter("empty"),
                f"[{make.get_parameter('nasty')}] {workflow.get_parameter('argument')}",
            ]
            worker["replicas"] = workflow.get_parameter("count")
            train = JobSetStep("train", jobset(worker), **IMAGE)
            (
                make
                >> train
                >> Task(
                    name="after",
                    template=shell("after", "echo '{{inputs.parameters.v}}'", inputs=[Parameter(name="v")]),
                    arguments={"v": train.verdict},
                    when=f"{train.verdict} == Succeeded",
                )
            )
    run = submitted(place, workflow, until)
    assert run.ended() == "Succeeded", [run.log(pod["metadata"]["name"]) for pod in run.pods("train")]
    (item,) = place.items("jobsets")
    assert item["spec"]["replicatedJobs"][0]["replicas"] == 2
    made_pod = item["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    assert made_pod["args"] == [nasty, big, "", f"[{nasty}] {argument}"]
    assert made_pod["command"][2] == script
    outputs = run.outputs(".train")
    assert (outputs["verdict"], outputs["restarts"], outputs["retryable"]) == ("Succeeded", "0", "false")
    assert json.loads(outputs["outcome"])["jobset"] == item["metadata"]["name"] == outputs["jobset"]
    assert run.nodes()[".after"]["phase"] == "Succeeded"
    assert [owner["name"] for owner in item["metadata"]["ownerReferences"]] == ["wf"]


@pytest.mark.usefixtures("rights")
def test_a_failure_has_outputs_to_branch_on_whether_the_step_fails_or_not(
    place: Place, until: Callable[..., Any]
) -> None:
    with Workflow(name="wf", entrypoint="main") as workflow:
        told = shell("told", "echo '{{inputs.parameters.v}}'", inputs=[Parameter(name="v")])
        with Steps(name="main") as steps:
            tree = jobset(replicated("workers", "echo boom; exit 3"), failurePolicy={"maxRestarts": 1})
            with steps.parallel():
                fails = JobSetStep("fails", tree, continue_on=ANYWAY, **IMAGE)
                branches = JobSetStep("branches", tree, on_failure="branch", **IMAGE)
            with steps.parallel():
                for step in (fails, branches):
                    told(
                        name=f"after-{step.name}",
                        arguments={"v": step.outcome},
                        when=f"{step.verdict} == Failed && {step.restarts} == 1 && {step.retryable} == false",
                    )
    run = submitted(place, workflow, until)
    assert run.ended() == "Succeeded"
    nodes = run.nodes()
    assert (nodes["[0].fails"]["phase"], nodes["[0].branches"]["phase"]) == ("Failed", "Succeeded")
    # a13: what failed for good is not tried again.
    assert nodes["[0].fails(0)"]["outputs"]["exitCode"] == "1"
    assert "[0].fails(1)" not in nodes
    for name in ("fails", "branches"):
        outputs = run.outputs(f"[0].{name}")
        assert (outputs["verdict"], outputs["reason"]) == ("Failed", "ReachedMaxRestarts")
        assert nodes[f"[1].after-{name}"]["phase"] == "Succeeded"
        (given,) = nodes[f"[1].after-{name}"]["inputs"]["parameters"]
        assert json.loads(given["value"])["attempts"][1]["cause"]["exit_code"] == 3


@pytest.mark.usefixtures("rights")
def test_a1_a_launcher_that_is_deleted_comes_back_to_its_jobset(
    place: Place, until: Callable[..., Any], history: History
) -> None:
    tree = jobset(replicated("workers", "sleep 60"))
    run = submitted(place, one_step(tree), until)
    until(lambda: any("Running" in run.log(pod["metadata"]["name"]) for pod in run.pods("train")))
    until(lambda: run.nodes()[f"{TRAIN}(0)"]["phase"] == "Running")
    (pod,) = run.pods("train")
    place.admin.call("DELETE", place.path(f"pods/{pod['metadata']['name']}"))
    assert run.ended(180) == "Succeeded"
    nodes = run.nodes()
    assert nodes[f"{TRAIN}(0)"]["phase"] in ("Error", "Failed")
    assert nodes[f"{TRAIN}(1)"]["phase"] == "Succeeded"
    assert len(history.uids()) == 1
    assert run.outputs(TRAIN)["verdict"] == "Succeeded"


@pytest.mark.usefixtures("rights")
def test_a_failure_that_may_pass_is_trained_again_by_the_preset(
    place: Place, until: Callable[..., Any], history: History
) -> None:
    generation = {"fieldPath": "metadata.annotations['jobset-steps/generation']"}
    tree = jobset(
        replicated(
            "workers",
            '[ "$GENERATION" = 2 ] || sleep 600',
            env=[{"name": "GENERATION", "valueFrom": {"fieldRef": generation}}],
        )
    )
    run = submitted(place, one_step(tree), until)

    def training() -> list[str]:
        pods = place.items("pods?labelSelector=jobset.sigs.k8s.io/jobset-name")
        return [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"]

    (pod,) = until(training)
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    place.admin.call("POST", place.path(f"pods/{pod}/eviction"), body=body)
    assert run.ended(180) == "Succeeded"
    assert run.nodes()[f"{TRAIN}(0)"]["outputs"]["exitCode"] == "75"
    assert json.loads(run.outputs(TRAIN)["outcome"])["generation"] == 2
    assert len(history.uids()) == 2


@pytest.mark.usefixtures("rights")
def test_a_persons_retry_trains_again(place: Place, until: Callable[..., Any], history: History) -> None:
    run = submitted(place, one_step(jobset(replicated("workers", "exit 3"))), until)
    assert run.ended() == "Failed"
    assert len(history.uids()) == 1
    run.retry()
    until(lambda: len(history.uids()) == 2, seconds=150)
    assert run.ended() == "Failed"
    assert json.loads(run.outputs(TRAIN)["outcome"])["generation"] == 2


@pytest.mark.usefixtures("rights")
def test_a_workflow_that_branches_on_a_launcher_that_was_lost_goes_on(
    place: Place, until: Callable[..., Any]
) -> None:
    with Workflow(name="wf", entrypoint="main") as workflow:
        told = shell("told", "true", inputs=[Parameter(name="v")])
        with DAG(name="main"):
            tree = jobset(replicated("workers", "sleep 600"))
            lost = JobSetStep("lost", tree, retries=0, **IMAGE)
            after = Task(
                name="after",
                template=told,
                arguments={"v": lost.outcome},
                when=f"{lost.verdict} == Unknown",
            )
            lost.next(after, on=TaskResult.succeeded | TaskResult.failed | TaskResult.errored)
    run = submitted(place, workflow, until)
    # (A pod that is deleted before Argo saw it run is made again by Argo itself.)
    until(lambda: place.items("jobsets") and run.nodes()[".lost"]["phase"] == "Running")
    (pod,) = run.pods("lost")
    place.admin.call("DELETE", place.path(f"pods/{pod['metadata']['name']}"), body={"gracePeriodSeconds": 0})
    assert run.ended(180) == "Succeeded"
    (given,) = run.nodes()[".after"]["inputs"]["parameters"]
    assert Outcome.model_validate_json(given["value"]).verdict is Verdict.UNKNOWN


def verdicts(place: Place) -> dict[str, str]:
    """What the Records say, by the name of the Workflow."""
    found = {}
    for item in place.items("configmaps?labelSelector=jobset-steps/identity"):
        record = json.loads(item["data"]["record"])
        found[record["run"].rpartition("-")[0]] = (record["outcome"] or {}).get("verdict", "")
    return found


def owners(place: Place) -> set[str]:
    """The Workflows that have a JobSet now."""
    return {item["metadata"]["ownerReferences"][0]["name"] for item in place.items("jobsets")}


@pytest.mark.usefixtures("rights")
def test_a4_however_a_run_is_ended_its_jobset_goes_within_the_grace_period(
    place: Place, until: Callable[..., Any]
) -> None:
    # Pods of this training end at once: the launchers have 31 s from SIGTERM on.
    tree = jobset(replicated("workers", "sleep 600"))
    runs = {
        name: submitted(place, one_step(tree, name), until) for name in ("stopped", "terminated", "deleted")
    }
    until(lambda: owners(place) == set(runs), seconds=120)
    asked = time.monotonic()
    runs["stopped"].change(shutdown="Stop")
    runs["terminated"].change(shutdown="Terminate")
    runs["deleted"].delete()
    took: dict[str, int] = {}

    def gone() -> bool:
        left = owners(place)
        took.update({name: round(time.monotonic() - asked) for name in runs if name not in {*left, *took}})
        return not left

    until(gone)
    print("seconds until the JobSet was gone:", took)
    for name in ("stopped", "terminated"):
        assert runs[name].ended() == "Failed"
        assert f"{TRAIN}(1)" not in runs[name].nodes()
        assert verdicts(place)[name] == "Cancelled"


@pytest.mark.usefixtures("rights")
def test_b3_a_deadline_of_the_workflow_or_of_the_step_takes_the_jobset_along(
    place: Place, until: Callable[..., Any], history: History
) -> None:
    tree = jobset(replicated("workers", "sleep 600"))
    runs = (
        submitted(place, one_step(tree, "workflow"), until, activeDeadlineSeconds=60),
        submitted(place, one_step(tree, "step", deadline=60), until),
    )
    for run in runs:
        assert run.ended(150) == "Failed"
        assert f"{TRAIN}(1)" not in run.nodes()
    assert owners(place) == set()
    assert len(history.uids()) == 2
    assert verdicts(place) == {"workflow": "Cancelled", "step": "Cancelled"}


@pytest.mark.usefixtures("rights")
def test_a_workflow_written_by_hand_refers_to_the_template_of_components(
    place: Place, until: Callable[..., Any]
) -> None:
    shared = yaml.safe_load((ROOT / "components" / "argo" / "workflow-template.yaml").read_text())
    for template in shared["spec"]["templates"]:
        if "container" in template:
            template["container"] |= {"image": PYTHON, "imagePullPolicy": "Never"}
    path = f"/apis/argoproj.io/v1alpha1/namespaces/{place.name}/workflowtemplates"
    place.admin.call("POST", path, body=shared)
    spec = yaml.safe_dump(jobset(replicated("workers", "echo $$; exit 4")))
    run = submitted(
        place,
        yaml.safe_load(
            f"""
            metadata: {{name: wf}}
            spec:
              entrypoint: main
              hooks:
                exit:
                  templateRef: {{name: jobset-step, template: jobset-steps-exit}}
              templates:
              - name: main
                steps:
                - - name: train
                    templateRef: {{name: jobset-step, template: launcher}}
                    arguments:
                      parameters:
                      - {{name: spec, value: {json.dumps(spec)}}}
                      - {{name: on-failure, value: branch}}
                - - name: told
                    template: told
                    when: "{{{{steps.train.outputs.parameters.verdict}}}} == Failed"
              - name: told
                container: {{image: {TOOLS}, imagePullPolicy: Never, command: ["true"]}}
            """
        ),
        until,
    )
    assert run.ended() == "Succeeded"
    assert run.nodes()["[1].told"]["phase"] == "Succeeded"
    assert json.loads(run.outputs("[0].train")["outcome"])["attempts"][0]["cause"]["exit_code"] == 4


@pytest.mark.usefixtures("rights")
def test_what_a_lost_launcher_leaves_is_deleted_at_the_end_of_the_run(
    place: Place, until: Callable[..., Any]
) -> None:
    run = submitted(place, one_step(jobset(replicated("workers", "sleep 600")), retries=0), until)
    until(lambda: place.items("jobsets") and run.nodes()[TRAIN]["phase"] == "Running")
    (pod,) = run.pods("train")
    place.admin.call("DELETE", place.path(f"pods/{pod['metadata']['name']}"), body={"gracePeriodSeconds": 0})
    assert run.ended() in ("Failed", "Error")
    assert run.nodes()[".onExit[0].sweep"]["phase"] == "Succeeded"
    until(lambda: place.items("jobsets") == [])


@pytest.mark.usefixtures("rights")
@pytest.mark.parametrize("mode", ["launcher", "native"])
def test_each_item_of_a_loop_is_a_training_of_its_own(
    place: Place, until: Callable[..., Any], mode: Any
) -> None:
    # (Argo refuses items with tags in them: it looks for tags in the loop itself.)
    texts = ["a 'b' }} \"c\"", "$$d\n$(X)"]
    maps = [{"rate": "0.1 'x' \\n \"\n<&"}]
    options = IMAGE if mode == "launcher" else {}
    with (
        Workflow(name="wf", entrypoint="main", arguments={"texts": json.dumps(texts)}) as workflow,
        DAG(name="main"),
    ):
        for name, item, more in (
            ("texts", "{{item}}", {"with_param": workflow.get_parameter("texts")}),
            ("maps", "rate={{item.rate}}", {"with_items": maps}),
        ):
            worker = replicated("workers", "sleep 1")
            worker["template"]["spec"]["template"]["spec"]["containers"][0]["args"] = [item]
            JobSetStep(name, jobset(worker, name=name), mode=mode, **options, **more)
    run = submitted(place, workflow, until)
    assert run.ended(240) == "Succeeded"
    args = [
        item["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["args"][0]
        for item in place.items("jobsets")
    ]
    assert sorted(args) == sorted([*texts, f"rate={maps[0]['rate']}"])
