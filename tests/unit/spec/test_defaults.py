"""Safe defaults: set where nothing was set, and never over what was."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.jobset import JobSet
from tests.conformance.scenarios import manifest, scenario_strategy
from tests.unit.spec.examples import container, jobset, replicated


def defaulted(tree: dict[str, Any]) -> dict[str, Any]:
    return with_defaults(JobSet.from_dict(tree)).to_dict()


BARE = jobset(
    {
        "name": "workers",
        "replicas": 2,
        "template": {"spec": {"parallelism": 4, "template": {"spec": {"containers": [container()]}}}},
    },
    failurePolicy={"maxRestarts": 1},
)


def test_c4_c5_a_bare_job_becomes_one_that_can_be_created() -> None:
    job = defaulted(BARE)["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (job["completions"], job["completionMode"], job["backoffLimit"]) == (4, "Indexed", 0)
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    assert job["podReplacementPolicy"] == "Failed"


def test_c7_the_last_lines_survive_in_the_status() -> None:
    pod = defaulted(BARE)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert pod["spec"]["containers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_c8_a_disrupted_pod_fails_its_job() -> None:
    policy = defaulted(BARE)["spec"]["replicatedJobs"][0]["template"]["spec"]["podFailurePolicy"]
    assert policy["rules"] == [
        {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    ]


def test_c10_several_jobs_restart_together() -> None:
    assert defaulted(BARE)["spec"]["failurePolicy"]["restartStrategy"] == "BlockingRecreate"


def test_c20_c21_network_and_success_policy_are_explicit() -> None:
    spec = defaulted(BARE)["spec"]
    assert spec["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert spec["successPolicy"] == {"operator": "All"}


def test_b11_no_sidecar_is_injected_unless_asked_for() -> None:
    meta = defaulted(BARE)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"]
    key = "sidecar.istio.io/inject"
    assert (meta["labels"][key], meta["annotations"][key]) == ("false", "false")
    pod = {"metadata": {"labels": {key: "true"}}, "spec": {"containers": [container()]}}
    tree = jobset(replicated(spec={"parallelism": 1, "template": pod}))
    meta = defaulted(tree)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"]
    assert meta["labels"][key] == "true"


def test_s8_empty_lists_are_not_written() -> None:
    assert "dependsOn" not in defaulted(jobset(replicated(dependsOn=[])))["spec"]["replicatedJobs"][0]


def kept(before: Any, after: Any) -> bool:
    """Whether everything that was set is still there as it was."""
    if isinstance(before, dict):
        return all(key in after and kept(value, after[key]) for key, value in before.items())
    if isinstance(before, list):
        return len(before) == len(after) and all(map(kept, before, after))
    return bool(before == after)


@given(scenario_strategy())
def test_defaults_keep_what_was_set_and_change_nothing_the_second_time(scenario: Any) -> None:
    tree = manifest(scenario, "image")
    once = defaulted(tree)
    assert kept(tree, once)
    assert defaulted(once) == once
