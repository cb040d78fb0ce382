"""Names, labels, annotations and pods of child Jobs, as JobSet 0.11.1 and the Job controller write them."""

from __future__ import annotations

import hashlib
from typing import Any

from job_views import replicated

from jobset_steps.semantics.admission import with_api_defaults
from jobset_steps.semantics.children import ChildManifests, child_job_name, pod_name
from jobset_steps.spec.jobset import JobSet

PREFIX = "jobset.sigs.k8s.io/"


def made(
    *jobs: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any
) -> tuple[JobSet, ChildManifests]:
    metadata = {"name": "t", "annotations": annotations or {}}
    jobset = with_api_defaults(
        JobSet.from_dict({"metadata": metadata, "spec": {"replicatedJobs": jobs, **spec}})
    )
    return jobset, ChildManifests(jobset, name="t", uid="u", namespace="ns")


def pod(of: tuple[JobSet, ChildManifests], number: int = 0, index: int | None = 0, **fields: Any) -> Any:
    jobset, manifests = of
    return manifests.pod(
        jobset.spec.replicated_jobs[number],
        fields.pop("job", 0),
        fields.pop("attempt", 0),
        job_uid="ju",
        completion_index=index,
        name="p",
        uid="pu",
        **fields,
    )


def test_every_mark_is_a_label_and_an_annotation_of_the_pod() -> None:
    grouped = replicated("b", 3) | {"groupName": "g"}
    of = made(
        replicated("a", 2),
        grouped,
        replicated("c", 1) | {"groupName": "g"},
        coordinator={"replicatedJob": "a", "jobIndex": 1, "podIndex": 0},
    )

    metadata = pod(of, number=2, attempt=4)["metadata"]

    expected = {
        "jobset-name": "t",
        "jobset-uid": "u",
        "replicatedjob-name": "c",
        "restart-attempt": "4",
        "replicatedjob-replicas": "1",
        "global-replicas": "6",
        "job-index": "0",
        "job-key": hashlib.sha1(b"ns/t-c-0").hexdigest(),
        "job-global-index": "5",
        "group-name": "g",
        "group-replicas": "4",
        "job-group-index": "3",
        "coordinator": "t-a-1-0.t",
    }
    for place in ("labels", "annotations"):
        marks = {
            key.removeprefix(PREFIX): value
            for key, value in metadata[place].items()
            if key.startswith(PREFIX)
        }
        assert marks == expected


def test_a_pod_is_found_by_its_host_name_and_knows_its_index() -> None:
    of = made(replicated("a", 2, 3), network={"subdomain": "net"})

    made_pod = pod(of, index=2, job=1)

    assert (made_pod["spec"]["hostname"], made_pod["spec"]["subdomain"]) == ("t-a-1-2", "net")
    (container,) = made_pod["spec"]["containers"]
    assert container["env"] == [{"name": "JOB_COMPLETION_INDEX", "value": "2"}]
    for place in ("labels", "annotations"):
        assert made_pod["metadata"][place]["batch.kubernetes.io/job-completion-index"] == "2"
    assert made_pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "t-a-1"


def test_without_host_names_or_without_an_index_there_is_none() -> None:
    plain = pod(made(replicated("a"), network={"enableDNSHostnames": False}))
    queue = pod(made(replicated("a")), index=None)

    assert "subdomain" not in plain["spec"]
    assert "hostname" not in queue["spec"]
    assert "env" not in queue["spec"]["containers"][0]


def test_an_index_that_the_author_set_is_kept_and_the_template_is_not_touched() -> None:
    job = replicated("a")
    env = [{"name": "JOB_COMPLETION_INDEX", "value": "mine"}]
    job["template"]["spec"]["template"]["spec"]["containers"][0]["env"] = env
    of = made(job)

    first, second = pod(of, index=0), pod(of, index=1)

    assert first["spec"]["containers"][0]["env"] == env
    assert second["spec"]["hostname"] == "t-a-0-1"
    template = of[0].spec.replicated_jobs[0].template.spec.template
    assert "hostname" not in template["spec"]


def test_exclusive_placement_is_handed_down_as_annotations_only() -> None:
    key = "alpha.jobset.sigs.k8s.io/exclusive-topology"

    metadata = pod(made(replicated("a"), annotations={key: "rack"}))["metadata"]

    assert metadata["annotations"][key] == "rack"
    assert key not in metadata["labels"]


def test_claims_reach_the_pods_that_mount_them() -> None:
    job = replicated("a")
    mounts = [{"name": "data", "mountPath": "/data"}]
    job["template"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = mounts
    claims = [{"templates": [{"metadata": {"name": "data"}, "spec": {}}, {"metadata": {"name": "x"}}]}]

    spec = pod(made(job, volumeClaimPolicies=claims))["spec"]

    assert spec["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-t"}}]


def test_failures_of_an_index_are_written_where_they_are_counted() -> None:
    key = "batch.kubernetes.io/job-index-failure-count"
    of = made(replicated("a"))

    assert pod(of, index_failures=2)["metadata"]["annotations"][key] == "2"
    assert key not in pod(of)["metadata"]["annotations"]


def test_long_job_names_are_cut_so_that_a_pod_can_still_be_named() -> None:
    job = child_job_name("t" * 50, "workers", 7)

    assert pod_name("t-a-0", 3, "abcde") == "t-a-0-3-abcde"
    assert pod_name("t-a-0", None, "abcde") == "t-a-0-abcde"
    assert len(pod_name(job, 3, "abcde")) == 63
