import pytest
from recipe_pods import contexts, environments, words

from jobset_steps.recipes import ddp
from jobset_steps.spec.check import check
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.jobset import FailurePolicy, JobSet
from jobset_steps.worker.processes import variables

UPSTREAM = "{{tasks.plan.outputs.parameters.n}}"


def train(**more):
    return ddp("train", **({"image": "registry.example/train:1", "script": "train.py"} | more))


def test_the_result_is_a_plain_jobset_that_passes_every_rule():
    jobset = train(nodes=4, failure_policy=FailurePolicy.resilient(3), checkpoints="pvc://ckpt/a")

    assert isinstance(jobset, JobSet)
    assert check(jobset) == ()
    assert with_defaults(jobset) == jobset


def test_every_process_has_what_env_init_reads():
    pods = environments(train(nodes=2, nproc_per_node=3), attempt=1)

    assert {pod["MASTER_ADDR"] for pod in pods} == {"train-1a2b3c4d-node-0-0.train-1a2b3c4d"}
    assert {pod["MASTER_PORT"] for pod in pods} == {"29500"}
    found = [variables(pod, local, 3) for pod in pods for local in range(3)]
    assert [(one["RANK"], one["LOCAL_RANK"], one["WORLD_SIZE"]) for one in found] == [
        (str(rank), str(rank % 3), "6") for rank in range(6)
    ]


def test_the_starter_runs_the_script_as_often_as_said_under_the_entry():
    said = words(train(nproc_per_node=3, args=["--lr", 0.1]))

    assert said[:2] == ["python3", "-c"]
    assert said[3:] == ["3", "python3", "train.py", "--lr", "0.1"]
    assert words(train(script=None, command=["./train"]))[3:] == ["1", "./train"]


def test_another_port_is_the_rendezvous_port_and_the_masters():
    jobset = train(master_port=1234)

    assert contexts(jobset)[0].port == 1234
    assert environments(jobset)[0]["MASTER_PORT"] == "1234"


def test_numbers_from_upstream_set_the_world_when_they_arrive():
    template = train(nodes=UPSTREAM, nproc_per_node="{{tasks.plan.outputs.parameters.p}}")
    assert template.check() == ()

    jobset = template.bind({hole.name: 3 if hole.source == UPSTREAM else 2 for hole in template.holes})

    assert [pod.world_size for pod in contexts(jobset)] == [3, 3, 3]
    assert words(jobset)[3] == "2"
    assert check(jobset) == ()


def test_the_masters_address_is_not_the_authors_to_set():
    with pytest.raises(InvalidSpec, match=r"the recipe sets these itself, \['MASTER_PORT'\] given"):
        train(env={"MASTER_PORT": 1})
