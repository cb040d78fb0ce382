import pytest
from recipe_pods import container, contexts, environments, words

from jobset_steps.recipes import Role, leader_workers
from jobset_steps.spec.check import check
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.jobset import FailurePolicy, JobSet

DRIVER = Role(image="driver:1", script="driver.py", resources={"requests": {"cpu": 4}})
ACTORS = Role(
    image="actor:1",
    module="actors.run",
    args=["--speed", 2],
    env={"ROLE": "actor"},
    pod={"nodeSelector": {"pool": "spot"}},
    container={"readinessProbe": {"tcpSocket": {"port": 7000}}, "ports": [{"containerPort": 7000}]},
)
UPSTREAM = "{{tasks.plan.outputs.parameters.n}}"


def made(**more):
    return leader_workers("rl", **({"leader": DRIVER, "workers": ACTORS, "count": 3} | more))


@pytest.mark.parametrize("first", [None, "leader", "workers"])
def test_the_result_is_a_plain_jobset_that_passes_every_rule(first):
    jobset = made(first=first, failure_policy=FailurePolicy.resilient(3), checkpoints="pvc://ckpt")

    assert isinstance(jobset, JobSet)
    assert check(jobset) == ()
    assert with_defaults(jobset) == jobset


def test_each_side_has_a_template_of_its_own():
    jobset = made()

    driver, actor = container(jobset, 0), container(jobset, 1)
    assert (driver["image"], driver["resources"]) == ("driver:1", {"requests": {"cpu": 4}})
    assert (actor["image"], actor["readinessProbe"]) == ("actor:1", {"tcpSocket": {"port": 7000}})
    assert actor["ports"] == [{"name": "rendezvous", "containerPort": 29500}, {"containerPort": 7000}]
    assert words(jobset, 0) == ["python3", "driver.py"]
    assert words(jobset, 1) == ["python3", "-m", "actors.run", "--speed", "2"]
    specs = [job.template.spec.template["spec"] for job in jobset.spec.replicated_jobs]
    assert [spec.get("nodeSelector") for spec in specs] == [None, {"pool": "spot"}]
    assert [env.get("ROLE") for env in environments(jobset)] == [None, "actor", "actor", "actor"]


def test_the_leader_is_rank_0_in_whatever_order_they_start():
    for first in (None, "leader", "workers"):
        pods = {(pod.replicated_job, pod.job_index): pod.rank for pod in contexts(made(first=first))}
        assert pods == {("leader", 0): 0, ("workers", 0): 1, ("workers", 1): 2, ("workers", 2): 3}


def depends_on(jobset):
    return {job.name: [(d.name, d.status) for d in job.depends_on] for job in jobset.spec.replicated_jobs}


def waits(jobset):
    return {
        job.name: "--at-once" not in container(jobset, n)["command"]
        for n, job in enumerate(jobset.spec.replicated_jobs)
    }


def test_who_is_first_is_ready_before_the_others_are_made():
    assert depends_on(made()) == {"leader": [], "workers": []}
    assert depends_on(made(first="leader")) == {"leader": [], "workers": [("leader", "Ready")]}
    assert depends_on(made(first="workers")) == {"workers": [], "leader": [("workers", "Ready")]}


def test_workers_that_come_first_do_not_wait_for_the_leaders_name():
    assert waits(made(first="leader")) == {"leader": True, "workers": True}
    assert waits(made(first="workers")) == {"workers": False, "leader": True}


def test_the_leaders_success_may_be_the_steps():
    assert made().spec.success_policy.target_replicated_jobs == ()
    assert made(succeeds_with="leader").spec.success_policy.target_replicated_jobs == ("leader",)


def test_a_number_of_workers_from_upstream_sets_the_world_when_it_arrives():
    template = made(count=UPSTREAM)
    assert template.check() == ()

    [hole] = template.holes
    jobset = template.bind({hole.name: "5"})

    assert [pod.world_size for pod in contexts(jobset)] == [6] * 6


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"leader": {"image": "i"}}, "leader: must be a Role"),
        ({"first": "both"}, "first: is unknown, 'both' given; None or 'leader' or 'workers'"),
        ({"succeeds_with": "workers"}, "succeeds_with: is unknown"),
        ({"workers": Role(image="i", script="a", env=["A=b"])}, "workers.env: must be a mapping"),  # type: ignore[arg-type]
        ({"workers": Role(image="i")}, "exactly one of script, module and command"),
        (
            {"workers": Role(image="i", script="a", container={"image": "j"})},
            "container: the recipe writes these",
        ),
        ({"count": 0}, "count: at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would_pass(wrong, said):
    with pytest.raises(InvalidSpec, match=said):
        made(**wrong)
