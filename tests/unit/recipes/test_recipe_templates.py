"""Recipes that are given what only the pipeline will know."""

import json
import subprocess
import sys

import pytest
from recipe_pods import container, contexts, environments, words

from jobset_steps.recipes import torchrun, xgboost
from jobset_steps.spec.check import check
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.template import SpecTemplate

NODES = "{{tasks.plan.outputs.parameters.nodes}}"
DATA = "{{tasks.prep.outputs.parameters.path}}"


def value_of(template, source):
    return next(hole.name for hole in template.holes if hole.source == source)


def test_an_upstream_count_is_a_whole_number_and_the_world_follows_it():
    template = torchrun("train", image="i", script="t.py", nodes=NODES, nproc_per_node=2)
    assert isinstance(template, SpecTemplate)
    assert [hole.type for hole in template.holes] == ["integer"]
    assert template.check() == ()

    jobset = template.bind({value_of(template, NODES): "3"})

    job = jobset.spec.replicated_jobs[0].template.spec
    assert (job.parallelism, job.completions) == (3, 3)
    assert [(pod.rank, pod.world_size) for pod in contexts(jobset)] == [(0, 3), (1, 3), (2, 3)]
    assert check(jobset) == ()


def test_a_number_of_workers_from_upstream_sets_the_world_of_leader_and_workers():
    template = xgboost("boost", image="i", script="t.py", workers=NODES)
    assert template.check() == ()

    jobset = template.bind({value_of(template, NODES): "5"})

    assert [(pod.rank, pod.world_size) for pod in contexts(jobset)] == [(rank, 6) for rank in range(6)]
    assert jobset.spec.replicated_jobs[1].replicas == 5


def test_what_is_no_count_is_refused_when_it_arrives():
    template = torchrun("train", image="i", script="t.py", nodes=NODES)

    with pytest.raises(InvalidSpec, match="integer"):
        template.bind({value_of(template, NODES): "many"})


def test_a10_arguments_and_environment_arrive_byte_for_byte_as_text():
    template = torchrun(
        "train", image="i", script="t.py", args=["--data", DATA, f"x={DATA}!"], env={"DATA": DATA, "N": NODES}
    )
    hostile = "a: {{b}}\n'c' \"d\" $hole{e}"

    jobset = template.bind({value_of(template, DATA): hostile, value_of(template, NODES): 4})

    assert words(jobset)[-3:] == ["--data", hostile, f"x={hostile}!"]
    env = {variable["name"]: variable.get("value") for variable in container(jobset)["env"]}
    assert (env["DATA"], env["N"]) == (hostile, "4")


def test_a_place_for_checkpoints_may_come_from_upstream():
    template = torchrun("train", image="i", script="t.py", checkpoints=DATA)

    jobset = template.bind({value_of(template, DATA): "s3://bucket/x"})

    assert environments(jobset)[0]["JOBSET_STEPS_CHECKPOINT_DIR"] == "s3://bucket/x/run-1/train"


def test_a_template_survives_json():
    template = torchrun("train", image="i", script="t.py", nodes=NODES, args=[DATA])

    again = SpecTemplate.from_json(template.to_json())

    values = {value_of(template, NODES): 2, value_of(template, DATA): "d"}
    assert again.bind(values) == template.bind(values)
    assert json.loads(template.to_json())["holes"]


def test_kubeflow_channels_are_recognised_with_their_types():
    from kfp import dsl

    made = {}

    @dsl.component(base_image="python:3.11")
    def plan() -> int:
        return 4

    @dsl.component(base_image="python:3.11")
    def prep() -> str:
        return "d"

    @dsl.pipeline
    def pipeline(rate: float = 0.1):
        nodes, data = plan().output, prep().output
        made["spec"] = torchrun(
            "train",
            image="i",
            script="t.py",
            nodes=nodes,
            args=["--data", data, "--rate", rate],
            env={"N": nodes},
        )
        made["sources"] = [nodes, data, rate]

    template = made["spec"]
    assert {hole.type for hole in template.holes} == {"integer", "string", "number"}
    assert {id(hole.source) for hole in template.holes} == {id(source) for source in made["sources"]}

    values = {hole.name: {"integer": 4, "string": "d", "number": 0.5}[hole.type] for hole in template.holes}
    jobset = template.bind(values)
    assert isinstance(jobset, JobSet)
    assert words(jobset)[-4:] == ["--data", "d", "--rate", "0.5"]
    assert check(jobset) == ()


def test_hera_parameters_are_recognised():
    from hera import workflows

    nodes = workflows.Parameter(name="nodes")

    template = torchrun("train", image="i", script="t.py", nodes=nodes)

    [hole] = template.holes
    assert hole.type == "integer"
    assert template.bind({hole.name: "2"}).spec.replicated_jobs[0].template.spec.parallelism == 2


def test_recipes_import_neither_kfp_nor_hera_nor_what_starts_anything():
    heavy = "kfp hera kubernetes jobset_steps.runner jobset_steps.clusters jobset_steps.launch torch xgboost"
    script = f"import sys, jobset_steps.recipes; print([m for m in {heavy!r}.split() if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
    )

    assert found.stdout.strip() == "[]"
