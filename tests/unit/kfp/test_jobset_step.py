"""A JobSet as a Kubeflow task: what is compiled, what is refused, what can never be cached."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from kfp import compiler, components, dsl

from jobset_steps import kfp as steps
from jobset_steps.kfp import jobset_step
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.jobset import JobSet
from tests.unit.spec.examples import changed, container, job, jobset, pod, replicated

ROOT = Path(__file__).resolve().parents[3]
IMAGE = "python:3.12"


class Prepared(NamedTuple):
    count: int
    rate: float
    names: list
    text: str


@dsl.component(base_image=IMAGE)
def prepare() -> Prepared:
    return (2, 0.1, ["a"], "x")


@dsl.component(base_image=IMAGE)
def told(
    verdict: str, outcome: str, restarts: int, model: dsl.Input[dsl.Model], metrics: dsl.Input[dsl.Metrics]
) -> None:
    print(verdict, outcome, restarts, model, metrics)


def with_args(*args: Any, replicas: Any = 1) -> dict[str, Any]:
    tree = jobset(replicated(spec=job(pod(container(command=["train"], args=list(args))))))
    tree["spec"]["replicatedJobs"][0]["replicas"] = replicas
    return tree


def canonical(text: str) -> str:
    """Compiled YAML as JSON: how text is laid out in it depends on which other libraries were imported before."""
    documents = list(yaml.safe_load_all(text))
    documents[0].pop("sdkVersion")
    return json.dumps(documents, indent=1, sort_keys=True) + "\n"


def compiled(body: Callable[[], Any], tmp_path: Path) -> tuple[str, dict[str, Any]]:
    @dsl.pipeline(name="p")
    def pipeline() -> None:
        body()

    target = tmp_path / "p.yaml"
    compiler.Compiler().compile(pipeline, str(target))
    return target.read_text(), next(yaml.safe_load_all(target.read_text()))


def test_upstream_outputs_become_typed_inputs(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    def body() -> None:
        before = prepare()
        task = jobset_step(
            with_args(
                "--text",
                before.outputs["text"],
                f"--rate={before.outputs['rate']}",
                replicas=before.outputs["count"],
            ),
            on_failure="branch",
        )
        told(**{name: task.outputs[name] for name in ("verdict", "outcome", "restarts", "model", "metrics")})

    text, made = compiled(body, tmp_path)
    inputs = made["components"]["comp-train"]["inputDefinitions"]["parameters"]
    assert {name: value["parameterType"] for name, value in inputs.items()} == {
        "in_prepare_count": "NUMBER_INTEGER",
        "in_prepare_rate": "NUMBER_DOUBLE",
        "in_prepare_text": "STRING",
        "options": "STRUCT",
        "spec": "STRING",
    }
    golden("kfp/step.json", canonical(text))


def test_items_of_a_loop_and_parts_of_them_keep_their_types(tmp_path: Path) -> None:
    def body() -> None:
        with dsl.ParallelFor([{"count": 1}]) as item:
            jobset_step(with_args(item, replicas=item.count))

    _, made = compiled(body, tmp_path)
    inputs = made["components"]["comp-train"]["inputDefinitions"]["parameters"]
    types = {value["parameterType"] for name, value in inputs.items() if name.startswith("in_")}
    assert types == {"NUMBER_INTEGER", "STRUCT"}


def test_what_a_default_mends_is_no_fault(tmp_path: Path) -> None:
    tree = with_args("--text", "x")
    del tree["spec"]["replicatedJobs"][0]["template"]["spec"]["completions"]
    compiled(lambda: jobset_step(tree), tmp_path)
    compiled(
        lambda: jobset_step(changed(tree, "spec.replicatedJobs.0.replicas", prepare().outputs["count"])),
        tmp_path,
    )


def test_b4_a_training_step_is_never_cached(tmp_path: Path) -> None:
    _, made = compiled(lambda: jobset_step(with_args()), tmp_path)
    assert not made["root"]["dag"]["tasks"]["train"].get("cachingOptions", {}).get("enableCache")
    with pytest.raises(InvalidSpec, match="cached"):
        compiled(lambda: jobset_step(with_args()).set_caching_options(True), tmp_path)


def test_every_fault_is_told_when_the_pipeline_is_written(tmp_path: Path) -> None:
    bad = changed(
        changed(with_args(), "spec.replicatedJobs.0.name", "Workers"), "spec.ttlSecondsAfterFinished", 1
    )
    with pytest.raises(InvalidSpec) as caught:
        compiled(lambda: jobset_step(bad, on_failure="ignore"), tmp_path)
    assert [fault.rule for fault in caught.value.faults] == ["name-form", "ttl-too-short", "enum"]


def test_a_jobset_without_holes_is_a_step_too(tmp_path: Path) -> None:
    _, made = compiled(lambda: jobset_step(JobSet.from_dict(with_args())), tmp_path)
    assert set(made["components"]["comp-train"]["inputDefinitions"]["parameters"]) == {"options", "spec"}


def test_a_hole_that_no_task_fills_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="no upstream output"):
        compiled(lambda: jobset_step(with_args("$hole{data}")), tmp_path)


def test_the_component_file_is_up_to_date_and_kfp_loads_it(tmp_path: Path) -> None:
    steps.main([str(tmp_path / "made.yaml")])
    path = ROOT / "components" / "kfp" / "jobset_step.yaml"
    assert canonical(path.read_text()) == canonical((tmp_path / "made.yaml").read_text())
    loaded = components.load_component_from_file(str(path))
    assert set(loaded.component_spec.outputs) == {
        "verdict",
        "outcome",
        "restarts",
        "metrics",
        "model",
        "report",
    }
