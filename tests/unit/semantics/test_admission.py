"""What the API server fills in before it stores a JobSet."""

from __future__ import annotations

from job_views import replicated

from jobset_steps.semantics.admission import admit, with_api_defaults
from jobset_steps.spec.jobset import JobSet


def test_the_defaults_of_the_webhook_are_filled_in() -> None:
    job = replicated("a")
    del job["replicas"]
    rules = [{"action": "FailJobSet"}, {"name": "mine", "action": "FailJobSet"}]
    jobset = JobSet.from_dict(
        {"metadata": {"name": "t"}, "spec": {"replicatedJobs": [job], "failurePolicy": {"rules": rules}}}
    )

    spec = with_api_defaults(jobset).to_dict()["spec"]

    assert spec["successPolicy"] == {"operator": "All"}
    assert spec["startupPolicy"] == {"startupPolicyOrder": "AnyOrder"}
    assert spec["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert spec["failurePolicy"]["maxRestarts"] == 0
    assert spec["failurePolicy"]["restartStrategy"] == "Recreate"
    assert [rule["name"] for rule in spec["failurePolicy"]["rules"]] == ["failurePolicyRule0", "mine"]
    (stored,) = spec["replicatedJobs"]
    assert (stored["replicas"], stored["groupName"]) == (1, "default")
    assert stored["template"]["spec"]["completionMode"] == "Indexed"
    assert stored["template"]["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"


def test_what_the_author_wrote_stays() -> None:
    written = {
        "metadata": {"name": "t"},
        "spec": {
            "replicatedJobs": [replicated("a", 0) | {"groupName": "g"}],
            "network": {"enableDNSHostnames": False, "subdomain": "s"},
            "successPolicy": {"operator": "Any"},
        },
    }

    spec = admit(written).jobset.spec

    assert spec.network is not None
    assert (spec.network.enable_dns_hostnames, spec.network.subdomain) == (False, "s")
    assert (spec.replicated_jobs[0].replicas, spec.replicated_jobs[0].group_name) == (0, "g")
    assert spec.success_policy is not None
    assert spec.success_policy.operator == "Any"
    assert spec.failure_policy is None
