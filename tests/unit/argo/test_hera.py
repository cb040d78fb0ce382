"""JobSetStep among Hera's own steps: in DAGs, Steps and parallel blocks, in loops, with its template and exit handler."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hera.workflows import (
    DAG,
    Container,
    CronWorkflow,
    Parameter,
    Step,
    Steps,
    Task,
    Workflow,
    WorkflowTemplate,
)

import jobset_steps
from jobset_steps.argo.hera import JobSetStep
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.spec.fault import InvalidSpec
from tests.unit.argo.argo_templates import argued


def echo() -> Container:
    return Container(
        name="echo", image="busybox", outputs=[Parameter(name="path", value_from={"path": "/tmp/path"})]
    )


def templates(workflow: Workflow) -> dict[str, dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=r"(?s).*Expected `Plugin`")
        made: dict[str, Any] = workflow.to_dict()
    return {each["name"]: each for each in made["spec"]["templates"]}


def test_a_step_of_a_dag_is_a_task(golden: Callable[[str, str], None]) -> None:
    with Workflow(generate_name="wf-", entrypoint="main", arguments={"lr": 0.1}) as workflow:
        once = echo()
        with DAG(name="main"):
            prep = Task(name="prep", template=once)
            train = JobSetStep(
                "train", argued(prep.get_parameter("path"), f"--lr={workflow.get_parameter('lr')}")
            )
            prep >> train >> Task(name="told", template=once, when=f"{train.verdict} == Succeeded")
    golden("argo/hera-dag.json", json.dumps(workflow.to_dict(), indent=1) + "\n")
    (_, task, told) = templates(workflow)["main"]["dag"]["tasks"]
    assert (task["name"], task["template"], task["depends"]) == ("train", "train", "prep")
    assert [each["value"] for each in task["arguments"]["parameters"]] == [
        "{{=sprig.b64enc(tasks['prep']['outputs']['parameters']['path'])}}",
        "{{=sprig.b64enc(workflow['parameters']['lr'])}}",
    ]
    assert told["depends"] == "train"
    assert isinstance(train, Task)


def test_in_steps_and_parallel_blocks_it_is_a_step() -> None:
    with Workflow(name="wf", entrypoint="main") as workflow:
        once = echo()
        with Steps(name="main") as steps:
            first = JobSetStep("first", argued())
            with steps.parallel():
                JobSetStep("second", argued(first.verdict))
                Step(name="told", template=once, when=f"{first.verdict} == Succeeded")
    made = templates(workflow)["main"]["steps"]
    assert [[step["name"] for step in group] for group in made] == [["first"], ["second", "told"]]
    assert "get(steps, 'first')" in made[1][1]["when"]
    assert isinstance(first, Step)


def test_it_loops_as_hera_steps_do() -> None:
    with Workflow(name="wf", entrypoint="main") as workflow, DAG(name="main"):
        JobSetStep("each", argued("{{item.lr}}"), with_items=[{"lr": "1"}, {"lr": "2"}])
        JobSetStep("all", argued("{{item}}"), with_param="{{workflow.parameters.rates}}")
    each, every = templates(workflow)["main"]["dag"]["tasks"]
    assert each["withItems"] == [{"lr": "1"}, {"lr": "2"}]
    assert each["arguments"]["parameters"][0]["value"].startswith("{{=sprig.b64enc(item['lr']")
    assert every["withParam"] == "{{workflow.parameters.rates}}"
    assert every["arguments"]["parameters"][0]["value"] == "{{item}}"


def test_the_same_template_stands_once_and_another_of_its_name_beside_it() -> None:
    with Workflow(name="wf", entrypoint="a") as workflow:
        with DAG(name="a"):
            JobSetStep("train", argued())
        with DAG(name="b"):
            JobSetStep("train", argued())
        with DAG(name="c"):
            JobSetStep("train", argued("other"))
    made = templates(workflow)
    assert sorted(made) == ["a", "b", "c", "jobset-steps-exit", "jobset-steps-sweep", "train", "train-2"]
    used = [made[name]["dag"]["tasks"][0]["template"] for name in "abc"]
    assert used == ["train", "train", "train-2"]


@pytest.mark.parametrize("kind", [Workflow, WorkflowTemplate, CronWorkflow])
def test_the_exit_handler_comes_with_the_first_step(kind: Any) -> None:
    more = {"schedules": ["0 3 * * *"]} if kind is CronWorkflow else {}
    with kind(name="wf", entrypoint="main", **more) as workflow, Steps(name="main"):
        JobSetStep("a", argued(), mode="native")
        assert workflow.on_exit == "jobset-steps-exit"
        assert "resource" in workflow.templates[-1].model_dump(exclude_none=True)
        # What a launcher's sweep finds includes what native steps made.
        JobSetStep("b", argued())
    names = [template.name for template in workflow.templates]
    assert sorted(names) == ["a", "b", "jobset-steps-exit", "jobset-steps-sweep", "main"]
    sweep = next(each for each in workflow.templates if each.name == "jobset-steps-sweep")
    assert sweep.container is not None


def test_an_exit_handler_of_the_authors_own_stays_and_can_call_ours() -> None:
    with Workflow(name="wf", entrypoint="main", on_exit="mine") as workflow:
        with Steps(name="mine"):
            Step(name="sweep", template="jobset-steps-sweep")
        with Steps(name="main"):
            JobSetStep("train", argued())
    assert workflow.on_exit == "mine"
    assert "jobset-steps-sweep" in templates(workflow)


def test_a_plugins_body_is_in_what_hera_submits() -> None:
    with Workflow(name="wf", entrypoint="main") as workflow, DAG(name="main"):
        JobSetStep("train", argued("{{workflow.parameters.x}}"), mode="plugin")
    body = templates(workflow)["train"]["plugin"]["jobset-steps"]
    assert body["values"] == {
        "workflow.parameters.x": "{{=sprig.b64dec(inputs.parameters['workflow-parameters-x'])}}"
    }
    assert json.loads(body["spec"])["tree"]["metadata"] == {"name": "train"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(?s).*Expected `Plugin`")
        assert '"jobset-steps"' in workflow.build().model_dump_json(by_alias=True)


def test_an_output_waits_for_what_comes_late_and_not_for_what_never_comes() -> None:
    with Workflow(name="wf", entrypoint="main"), DAG(name="main"):
        train = JobSetStep("train", argued())
        outputs = (train.verdict, train.outcome, train.restarts, train.metrics, train.reason, train.retryable)
    for output in (*outputs, train.jobset):
        assert output.startswith("{{=get(get(get(get(tasks, 'train') ?? {}")
        # Argo looks again only for an error with these words in it.
        assert " is missing" in output
        assert "duration('60s')" in output
    default = train.outcome.split("duration('60s') ? '")[1].split("'")[0].encode().decode("unicode_escape")
    assert Outcome.model_validate_json(default).verdict is Verdict.UNKNOWN


def test_a_native_step_says_which_outputs_it_has() -> None:
    with Workflow(name="wf", entrypoint="main"), DAG(name="main"):
        train = JobSetStep("train", argued(), mode="native")
        assert "'verdict'" in train.verdict
        with pytest.raises(InvalidSpec, match="mode launcher"):
            _ = train.outcome


def test_faults_are_told_where_the_step_is_written() -> None:
    with Workflow(name="wf", entrypoint="main"), DAG(name="main"), pytest.raises(InvalidSpec) as refused:
        JobSetStep("train", argued(), on_failure="sometimes", mode="native")  # type: ignore[arg-type]
    assert [fault.rule for fault in refused.value.faults] == ["enum"]


def test_it_is_a_public_name() -> None:
    assert jobset_steps.JobSetStep is JobSetStep
