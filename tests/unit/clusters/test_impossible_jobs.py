"""JobSets that an API server stores and whose Jobs it then refuses, and those that it refuses at once."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_sets import manifest, replicated

from jobset_steps.clusters.simulated import SimulatedCluster
from jobset_steps.errors import ApiError
from jobset_steps.observed import View

DISRUPTION = {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]}


def without(job: dict[str, Any], *path: str) -> dict[str, Any]:
    inner: Any = job["template"]
    for part in path[:-1]:
        inner = inner[0] if isinstance(inner, list) else inner[part]
    inner = inner[0] if isinstance(inner, list) else inner
    del inner[path[-1]]
    return job


IMPOSSIBLE = {
    "c4: Indexed without completions": without(replicated(pods=2), "spec", "completions"),
    "c4: no image": without(replicated(), "spec", "template", "spec", "containers", "0", "image"),
    "c5: podFailurePolicy with JobSet's restartPolicy": without(
        replicated(podFailurePolicy=DISRUPTION), "spec", "template", "spec", "restartPolicy"
    ),
}


def after(seconds: float, jobset: dict[str, Any]) -> View:
    cluster = SimulatedCluster(refuse_impossible=False)
    cluster.create(jobset)
    cluster.advance(seconds)
    return cluster.read("t", events=True)


@pytest.mark.parametrize("job", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_c4_a_job_that_can_never_be_created_leaves_only_events(job: dict[str, Any]) -> None:
    view = after(60, manifest(job))

    assert view.jobset is not None
    assert (view.jobset.replicated_jobs, view.jobset.conditions) == ((), ())
    assert (view.jobs, view.pods) == ((), ())
    (event,) = view.events
    assert (event.kind, event.type, event.reason) == ("JobSet", "Warning", "JobCreationFailed")
    assert event.message.startswith('job "t-w-0" creation failed with error: Job.batch "t-w-0" is invalid: ')
    # Tries after 5, 10, 20, ... ms.
    assert event.count == 14


@pytest.mark.parametrize("job", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_by_default_such_a_jobset_is_refused_at_once(job: dict[str, Any]) -> None:
    cluster = SimulatedCluster()

    with pytest.raises(ApiError) as caught:
        cluster.create(manifest(job))

    assert caught.value.kind == "invalid"
    assert "spec.replicatedJobs[0].template.spec" in caught.value.message
    assert cluster.read("t").jobset is None


def test_jobs_before_the_impossible_one_run_and_those_after_it_are_never_tried() -> None:
    bad = without(replicated("b"), "spec", "completions")

    view = after(60, manifest(replicated("a"), bad, replicated("c")))

    assert [job.name for job in view.jobs] == ["t-a-0"]
    assert view.jobs[0].is_complete
    assert view.jobset is not None
    assert view.jobset.replicated_jobs == ()


REFUSED = {
    "replicated job with a capital": manifest(replicated("A")),
    "s12: rule name with a dash": manifest(
        failurePolicy={"maxRestarts": 1, "rules": [{"name": "a-b", "action": "FailJobSet"}]}
    ),
    "c1: name too long": manifest(replicated("workers", 100, 8), name="n" * 45),
    "unknown field in a container": manifest(),
}
REFUSED["unknown field in a container"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"][
    "containers"
][0]["imag"] = "i"


@pytest.mark.parametrize("jobset", REFUSED.values(), ids=REFUSED.keys())
def test_what_the_api_server_refuses_is_never_stored(jobset: dict[str, Any]) -> None:
    cluster = SimulatedCluster(refuse_impossible=False)

    with pytest.raises(ApiError) as caught:
        cluster.create(jobset)

    assert caught.value.kind == "invalid"
    assert cluster.created == {}


STORED = {
    "s2: no replicated job": manifest() | {"spec": {"replicatedJobs": []}},
    "s2: replicas 0 everywhere": manifest(replicated(replicas=0)),
    "s1: a job that depends on itself": manifest(
        replicated("a"), replicated("b", depends_on=[{"name": "b", "status": "Ready"}])
    ),
}


@pytest.mark.parametrize("jobset", STORED.values(), ids=STORED.keys())
def test_what_the_api_server_stores_and_never_ends_does_so_without_a_word(jobset: dict[str, Any]) -> None:
    view = after(3600, jobset)

    assert view.jobset is not None
    assert (view.jobset.terminal_state, view.jobset.conditions) == ("", ())
    assert not [event for event in view.events if event.kind == "JobSet"]
    assert {job.replicated_job for job in view.jobs} <= {"a"}


def test_a_success_policy_of_nothing_is_met_by_the_first_success() -> None:
    policy = {"operator": "All", "targetReplicatedJobs": ["none"]}

    view = after(60, manifest(replicated("none", 0), replicated("a"), replicated("b"), successPolicy=policy))

    assert view.jobset is not None
    assert view.jobset.terminal_state == "Completed"
