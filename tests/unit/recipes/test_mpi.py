import pytest
from recipe_pods import container, contexts, environments, words

from jobset_steps.recipes import mpi
from jobset_steps.spec.check import check
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.jobset import FailurePolicy, JobSet

UPSTREAM = "{{tasks.plan.outputs.parameters.n}}"


def simulate(**more):
    return mpi("sim", **({"image": "registry.example/sim:1", "command": ["./sim"], "workers": 3} | more))


def test_the_result_is_a_plain_jobset_that_passes_every_rule():
    jobset = simulate(failure_policy=FailurePolicy.resilient(3), checkpoints="pvc://ckpt/a")

    assert isinstance(jobset, JobSet)
    assert check(jobset) == ()
    assert with_defaults(jobset) == jobset


def test_the_launcher_knows_how_many_ranks_to_start_and_what():
    jobset = simulate(slots_per_worker=8, mpirun_args=["--bind-to", "none"], args=["--steps", 9])

    launcher, workers = words(jobset, 0), words(jobset, 1)
    assert launcher[:2] == workers[:2] == ["python3", "-c"]
    assert launcher[2] == workers[2]
    assert launcher[3:] == ["launch", "3", "8", "--bind-to", "none", "./sim", "--steps", "9"]
    assert workers[3:] == ["serve"]


def test_workers_are_ranked_and_reach_the_launcher():
    launcher, *workers = contexts(simulate())

    assert [pod.rank for pod in workers] == [0, 1, 2]
    assert {pod.world_size for pod in workers} == {3}
    assert {pod.coordinator for pod in workers} == {"train-1a2b3c4d-launcher-0-0.train-1a2b3c4d"}
    assert {pod.port for pod in (launcher, *workers)} == {2222}
    # The launcher waits for no name: it is the one that the others wait for.
    assert "--at-once" in container(simulate(), 0)["command"]
    assert "--at-once" not in container(simulate(), 1)["command"]


def test_every_pod_knows_its_address_and_what_only_pods_of_this_jobset_know():
    pods = environments(simulate())

    assert {pod["JOBSET_STEPS_POD_IP"] for pod in pods} == {"10.0.0.1"}
    assert {pod["JOBSET_STEPS_JOBSET_UID"] for pod in pods} == {"u"}


def test_only_workers_have_what_training_needs():
    jobset = simulate(
        resources={"limits": {"nvidia.com/gpu": 8}}, volumes={"/data": "pvc://data"}, checkpoints="pvc://ckpt"
    )

    launcher, workers = container(jobset, 0), container(jobset, 1)
    assert not {"resources", "volumeMounts"} & set(launcher)
    assert workers["resources"] == {"limits": {"nvidia.com/gpu": 8}}
    assert [mount["mountPath"] for mount in workers["volumeMounts"]] == ["/data", "/jobset-steps/checkpoints"]
    own = container(simulate(launcher_resources={"requests": {"cpu": 1}}), 0)["resources"]
    assert own == {"requests": {"cpu": 1}}


def test_numbers_from_upstream_reach_mpirun_and_the_world():
    template = simulate(workers=UPSTREAM, slots_per_worker="{{tasks.plan.outputs.parameters.s}}")
    assert template.check() == ()

    jobset = template.bind({hole.name: 4 if hole.source == UPSTREAM else 2 for hole in template.holes})

    assert words(jobset, 0)[3:] == ["launch", "4", "2", "./sim"]
    assert [pod.world_size for pod in contexts(jobset)] == [4] * 5
    assert check(jobset) == ()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"workers": 0}, "workers: at least 1"),
        ({"slots_per_worker": 0}, "slots_per_worker: at least 1"),
        ({"mpirun_args": "--bind-to none"}, "mpirun_args: is a list of words, not one text"),
        ({"env": {"JOBSET_STEPS_POD_IP": "x"}}, "the recipe sets these itself"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would_pass(wrong, said):
    with pytest.raises(InvalidSpec, match=said):
        simulate(**wrong)
