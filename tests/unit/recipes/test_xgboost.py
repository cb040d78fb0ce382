import pytest
from recipe_pods import contexts, environments, words

from jobset_steps.recipes import xgboost
from jobset_steps.spec.check import check
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.jobset import FailurePolicy, JobSet

IMAGE = "registry.example/boost:1"


def boost(**more):
    return xgboost("boost", **({"image": IMAGE, "script": "train.py", "workers": 3} | more))


def test_the_result_is_a_plain_jobset_that_passes_every_rule():
    jobset = boost(failure_policy=FailurePolicy.resilient(max_restarts=3), checkpoints="pvc://ckpt")

    assert isinstance(jobset, JobSet)
    assert check(jobset) == ()
    assert with_defaults(jobset) == jobset


def test_the_leader_is_rank_0_and_workers_follow():
    pods = contexts(boost())

    assert [(pod.replicated_job, pod.job_index, pod.rank) for pod in pods] == [
        ("leader", 0, 0),
        ("workers", 0, 1),
        ("workers", 1, 2),
        ("workers", 2, 3),
    ]
    assert {pod.world_size for pod in pods} == {4}
    assert {pod.coordinator for pod in pods} == {"train-1a2b3c4d-leader-0-0.train-1a2b3c4d"}
    assert {pod.port for pod in pods} == {9091}
    assert [pod.is_leader for pod in pods] == [True, False, False, False]


def test_c10_a_restart_waits_until_nobody_of_the_attempt_before_is_left():
    assert (
        boost(failure_policy=FailurePolicy(max_restarts=1)).spec.failure_policy.restart_strategy
        == "BlockingRecreate"
    )


def test_every_pod_runs_the_same_script_under_the_entry():
    jobset = boost(args=["--rounds", 40])

    assert words(jobset, 0) == words(jobset, 1) == ["python3", "train.py", "--rounds", "40"]
    assert [pod["args"].split() for pod in environments(jobset)] == [
        ["python3", "train.py", "--rounds", "40"]
    ] * 4


def test_the_leader_may_need_other_resources():
    jobset = boost(resources={"requests": {"cpu": 1}}, leader_resources={"requests": {"cpu": 4}})

    leader, workers = (
        replicated.template.spec.template["spec"]["containers"][0]["resources"]
        for replicated in jobset.spec.replicated_jobs
    )
    assert (leader, workers) == ({"requests": {"cpu": 4}}, {"requests": {"cpu": 1}})


@pytest.mark.parametrize("workers", [1, 12])
def test_the_world_is_workers_and_the_leader(workers):
    assert {pod.world_size for pod in contexts(boost(workers=workers))} == {workers + 1}
