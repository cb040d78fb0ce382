import pytest
from recipe_pods import container, contexts, environments, words

from jobset_steps.recipes import jax
from jobset_steps.recipes.presets import Tpu
from jobset_steps.spec.check import check
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.jobset import FailurePolicy, JobSet

UPSTREAM = "{{tasks.plan.outputs.parameters.n}}"


def train(**more):
    return jax("train", **({"image": "registry.example/jax:1", "script": "train.py"} | more))


@pytest.mark.parametrize(
    "how", [{}, {"nodes": 4}, {"tpu": Tpu("v5e", "4x4")}, {"tpu": Tpu("v4", "2x2x2"), "slices": 3}]
)
def test_the_result_is_a_plain_jobset_that_passes_every_rule(how):
    jobset = train(failure_policy=FailurePolicy.resilient(3), checkpoints="pvc://ckpt/a", **how)

    assert isinstance(jobset, JobSet)
    assert check(jobset) == ()
    assert with_defaults(jobset) == jobset


def test_every_process_knows_the_coordinator_and_its_number():
    pods = environments(train(nodes=3))

    coordinator = "train-1a2b3c4d-node-0-0.train-1a2b3c4d:8476"
    assert [
        (pod["JAX_COORDINATOR_ADDRESS"], pod["JAX_NUM_PROCESSES"], pod["JAX_PROCESS_ID"]) for pod in pods
    ] == [(coordinator, "3", str(index)) for index in range(3)]
    assert not [name for name in pods[0] if name.startswith("MEGASCALE")]
    assert words(train(nodes=3)) == ["python3", "train.py"]


def test_a_slice_is_a_job_with_a_pod_for_each_of_its_hosts():
    jobset = train(tpu=Tpu("v5e", "4x4"), resources={"requests": {"cpu": 24}})

    [job] = jobset.spec.replicated_jobs
    assert (job.name, job.replicas, job.template.spec.parallelism) == ("slice", 1, 4)
    assert container(jobset)["resources"] == {"limits": {"google.com/tpu": 4}, "requests": {"cpu": 24}}
    assert job.template.spec.template["spec"]["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "4x4",
    }
    assert [pod["JAX_PROCESS_ID"] for pod in environments(jobset)] == ["0", "1", "2", "3"]


def test_several_slices_know_each_other_and_each_has_a_node_pool():
    jobset = train(tpu=Tpu("v5p", "2x2x2"), slices=3)

    assert [pod.rank for pod in contexts(jobset)] == [0, 1, 2, 3, 4, 5]
    pods = environments(jobset)
    assert {pod["MEGASCALE_COORDINATOR_ADDRESS"] for pod in pods} == {
        "train-1a2b3c4d-slice-0-0.train-1a2b3c4d"
    }
    assert {pod["MEGASCALE_NUM_SLICES"] for pod in pods} == {"3"}
    assert [pod["MEGASCALE_SLICE_ID"] for pod in pods] == ["0", "0", "1", "1", "2", "2"]
    assert {pod["JAX_NUM_PROCESSES"] for pod in pods} == {"6"}
    # A number within its slice would be taken for one among all.
    assert not any("JAX_PROCESS_ID" in pod for pod in pods)
    exclusive = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}
    assert jobset.metadata.annotations == exclusive


def test_a_number_of_nodes_from_upstream_sets_the_world_when_it_arrives():
    template = train(nodes=UPSTREAM)
    assert template.check() == ()

    jobset = template.bind({template.holes[0].name: "3"})

    assert [pod["JAX_NUM_PROCESSES"] for pod in environments(jobset)] == ["3"] * 3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tpu": "v5e-16"}, "tpu: must be a Tpu"),
        (
            {"tpu": Tpu("v5e", "4x4"), "nodes": 2},
            "the slice's topology says how many hosts there are, 2 given; none, or 4",
        ),
        ({"slices": 2}, "only TPUs have slices, 2 given"),
        ({"tpu": Tpu("v5e", "4x4"), "slices": 0}, "slices: is a whole number from 1 on"),
        ({"tpu": Tpu("v5e", "4x4"), "slices": UPSTREAM}, "slices: is a whole number from 1 on"),
        ({"nodes": 0}, "nodes: at least 1"),
        ({"env": {"JAX_PROCESS_ID": 1}}, "the recipe sets these itself"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would_pass(wrong, said):
    with pytest.raises(InvalidSpec, match=said):
        train(**wrong)
