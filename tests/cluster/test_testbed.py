"""What the project takes for granted of the real controllers, seen on the cluster that the tests run on.

Nothing of the product is used here. All JobSets of the table are made at once, and each test looks at its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobset_steps.clusters.kubernetes.client import Client
from jobset_steps.errors import ApiError
from tests.cluster.conftest import ARGO, Place, executor_rights, new_place
from tests.cluster.harness.addons import CLUSTER_QUEUE
from tests.cluster.steps import jobset, replicated
from tests.cluster.test_demo import claimed

WELL, BAD = "true", "exit 1"


def changed(job: dict[str, Any], *gone: str, **more: Any) -> dict[str, Any]:
    """A replicated job with other fields in its Job's spec."""
    spec = job["template"]["spec"]
    for name in gone:
        del spec[name]
    spec.update(more)
    return job


def without(job: dict[str, Any], field: str, *, of: str) -> dict[str, Any]:
    """A replicated job whose pod template, or its first container, lacks a field."""
    pod = job["template"]["spec"]["template"]["spec"]
    del (pod if of == "pod" else pod["containers"][0])[field]
    return job


ON_EXIT = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]}
ON_DISRUPTION = {
    "backoffLimit": 0,
    "podFailurePolicy": {
        "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    },
}
BY_NAME = {
    "maxRestarts": 1,
    "rules": [{"name": "never", "action": "FailJobSet", "onJobFailureMessagePatterns": ["("]}],
}

NEVER_CREATED = {
    "no-completions": jobset(changed(replicated("w", WELL), "completions")),
    "restart-on-failure": jobset(
        without(changed(replicated("w", WELL), podFailurePolicy=ON_EXIT), "restartPolicy", of="pod")
    ),
    "no-image": jobset(without(replicated("w", WELL), "image", of="container")),
}
WITHOUT_A_TRACE = {
    "empty": jobset(),
    "self": jobset(
        replicated("a", WELL), {**replicated("b", WELL), "dependsOn": [{"name": "b", "status": "Ready"}]}
    ),
    "zero": jobset(replicated("w", WELL, replicas=0)),
}
TABLE = {
    **NEVER_CREATED,
    **WITHOUT_A_TRACE,
    "well": jobset(replicated("w", "echo well said", job={"backoffLimit": 0})),
    "nobody": jobset(replicated("w", WELL), managedBy="example.com/nobody"),
    "all-of-none": jobset(
        replicated("w", WELL),
        replicated("long", "sleep 300"),
        replicated("none", WELL, replicas=0),
        successPolicy={"operator": "All", "targetReplicatedJobs": ["none"]},
    ),
    "minus": jobset(replicated("w", BAD, job={"backoffLimit": 0}), failurePolicy={"maxRestarts": -1}),
    "pattern": jobset(replicated("w", BAD, job={"backoffLimit": 0}), failurePolicy=BY_NAME),
    "exhausts": jobset(replicated("w", BAD, job={"backoffLimit": 0}), failurePolicy={"maxRestarts": 2}),
    "depends": jobset(
        replicated("a", BAD, job={"backoffLimit": 0}),
        {**replicated("b", "sleep 300"), "dependsOn": [{"name": "a", "status": "Complete"}]},
    ),
    "names": jobset(
        replicated("w", "until nslookup names-w-0-1.names.$NS.svc.cluster.local; do sleep 0.2; done", pods=2)
    ),
    "evicted": jobset(replicated("w", "sleep 300", job=ON_DISRUPTION)),
}


@pytest.fixture(scope="module")
def bench(admin: Client, kubeconfig: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A namespace with every JobSet of the table."""
    with new_place(admin, kubeconfig, Path(tmp_path_factory.mktemp("bench"))) as place:
        for name, tree in TABLE.items():
            tree["metadata"]["name"] = name
            for job in tree["spec"]["replicatedJobs"]:
                for container in job["template"]["spec"]["template"]["spec"]["containers"]:
                    container["env"] += [{"name": "NS", "value": place.name}]
            place.create("jobsets", tree)
        yield place


Look = Callable[[str], dict[str, Any]]


@pytest.fixture
def ended(bench: Place, until: Callable[..., Any]) -> Look:
    """The status of a JobSet of the table once it has ended."""

    def status(name: str) -> dict[str, Any]:
        def terminal() -> dict[str, Any] | None:
            found: dict[str, Any] = bench.get(f"jobsets/{name}").get("status") or {}
            return found if found.get("terminalState") else None

        return until(terminal, seconds=90)  # type: ignore[no-any-return]

    return status


def condition(status: dict[str, Any], type_: str) -> dict[str, Any]:
    return next((c for c in status.get("conditions") or () if c["type"] == type_), {})


def events_of(place: Place, name: str) -> list[dict[str, Any]]:
    return place.items(f"events?fieldSelector=involvedObject.kind=JobSet,involvedObject.name={name}")


def jobs_of(place: Place, name: str) -> list[str]:
    found = place.items(f"jobs?labelSelector=jobset.sigs.k8s.io/jobset-name={name}")
    return sorted(job["metadata"]["name"] for job in found)


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (jobset({**replicated("w", WELL), "dependsOn": []}), "DependsOn"),
        (
            jobset(replicated("w", WELL), failurePolicy={"rules": [{"name": "a-b", "action": "FailJobSet"}]}),
            "a-b",
        ),
        (jobset(replicated("A", WELL)), "lower case"),
        (jobset(replicated("w", WELL), name="x" * 60), "exceed 63 characters"),
    ],
    ids=["empty-depends-on", "s12-rule-name", "replicated-job-name", "c1-long-name"],
)
def test_webhooks_refuse_with_403(place: Place, tree: dict[str, Any], words: str) -> None:
    with pytest.raises(ApiError) as caught:
        place.create("jobsets", tree)
    assert caught.value.kind == "invalid"
    assert words in caught.value.message
    assert "denied the request" in caught.value.message


@pytest.mark.parametrize("name", NEVER_CREATED)
def test_c4_c5_child_jobs_that_the_api_refuses_hang_and_leave_one_event(
    bench: Place, until: Callable[..., Any], name: str
) -> None:
    found = until(lambda: [e for e in events_of(bench, name) if e["reason"] == "JobCreationFailed"])
    assert found[0]["type"] == "Warning"
    assert "is invalid" in found[0]["message"]
    item = bench.get(f"jobsets/{name}")
    assert item.get("status") in (None, {})
    assert jobs_of(bench, name) == []


@pytest.mark.parametrize("name", WITHOUT_A_TRACE)
def test_s1_s2_some_jobsets_are_admitted_and_never_run(bench: Place, ended: Look, name: str) -> None:
    ended("exhausts")  # made later, run three times since: the controller has seen them all
    status = bench.get(f"jobsets/{name}").get("status") or {}
    assert not status.get("terminalState")
    assert events_of(bench, name) == []
    assert jobs_of(bench, name) == (["self-a-0"] if name == "self" else [])


def test_restarts_is_absent_until_a_controller_has_written_a_status(bench: Place, ended: Look) -> None:
    assert ended("well")["restarts"] == 0
    assert "status" not in bench.get("jobsets/nobody")
    assert jobs_of(bench, "nobody") == []


def test_s4_a_success_policy_on_nothing_is_met_by_the_first_success_of_anything(ended: Look) -> None:
    status = ended("all-of-none")
    assert (status["terminalState"], condition(status, "Completed")["reason"]) == (
        "Completed",
        "AllJobsCompleted",
    )


@pytest.mark.parametrize(
    ("name", "restarts", "counted"), [("minus", 0, 0), ("pattern", 1, 1), ("exhausts", 2, 2)]
)
def test_s6_s10_restarts_are_counted_up_to_the_maximum(
    ended: Look, name: str, restarts: int, counted: int
) -> None:
    status = ended(name)
    assert condition(status, "Failed")["reason"] == "ReachedMaxRestarts"
    assert (status["restarts"], status.get("restartsCountTowardsMax", 0)) == (restarts, counted)


def test_a_failed_dependency_ends_the_set_at_once(bench: Place, ended: Look) -> None:
    failed = condition(ended("depends"), "Failed")
    assert failed["reason"] == "FailedJobs"
    assert "(first failed job: depends-a-0)" in failed["message"]
    assert "depends-b-0" not in jobs_of(bench, "depends")


def test_an_unknown_field_is_dropped_without_a_word_unless_validation_is_strict(place: Place) -> None:
    tree = jobset(replicated("w", WELL, imagePullPolice="Never"), suspend=True)
    with pytest.raises(ApiError, match="imagePullPolice"):
        place.admin.call("POST", place.path("jobsets"), query={"fieldValidation": "Strict"}, body=tree)
    made = place.create("jobsets", tree)
    assert "imagePullPolice" not in str(made["spec"])


def test_c21_pods_find_each_other_by_name(ended: Look) -> None:
    assert ended("names")["terminalState"] == "Completed"


def test_logs_of_a_pod_that_has_ended_can_be_read(bench: Place, ended: Look) -> None:
    ended("well")
    (pod,) = bench.items("pods?labelSelector=jobset.sigs.k8s.io/jobset-name=well")
    assert bench.admin.text(bench.path(f"pods/{pod['metadata']['name']}/log"), {}) == "well said\n"


def test_c12_an_eviction_is_a_disruption_in_the_jobs_own_words(
    bench: Place, ended: Look, until: Callable[..., Any]
) -> None:
    def running() -> list[dict[str, Any]]:
        pods = bench.items("pods?labelSelector=jobset.sigs.k8s.io/jobset-name=evicted")
        return [pod for pod in pods if pod["status"]["phase"] == "Running"]

    name = until(running)[0]["metadata"]["name"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    bench.admin.call("POST", bench.path(f"pods/{name}/eviction"), body=body)
    assert condition(ended("evicted"), "Failed")["reason"] == "FailedJobs"
    failed = condition(bench.get("jobs/evicted-w-0")["status"], "Failed")
    assert failed["reason"] == "PodFailurePolicy"
    assert "DisruptionTarget" in failed["message"]


def test_kueue_admits_a_jobset_into_its_queue(place: Place, until: Callable[..., Any]) -> None:
    place.local_queue("q", CLUSTER_QUEUE)
    job = replicated("w", WELL, resources={"requests": {"cpu": "10m"}})
    place.create("jobsets", jobset(job, labels={"kueue.x-k8s.io/queue-name": "q"}))
    until(lambda: (place.get("jobsets/train").get("status") or {}).get("terminalState") == "Completed")
    (workload,) = place.items("workloads")
    assert condition(workload["status"], "QuotaReserved")["reason"] == "QuotaReserved"


def test_a_pod_with_two_volumes_of_one_claim_never_starts(
    place: Place, tmp_path: Path, until: Callable[..., Any]
) -> None:
    claimed(place, "work", tmp_path)

    def volumes(*names: str) -> dict[str, Any]:
        claim = {"persistentVolumeClaim": {"claimName": "work"}}
        return {"volumes": [{"name": name, **claim} for name in names]}

    def mounts(*names: str) -> list[dict[str, str]]:
        return [{"name": name, "mountPath": f"/{name}"} for name in names]

    place.create(
        "jobsets", jobset(replicated("w", WELL, pod=volumes("a", "b"), volumeMounts=mounts("a", "b")))
    )
    alone = replicated("w", WELL, pod=volumes("a"), volumeMounts=mounts("a"))
    place.create("jobsets", jobset(alone, name="alone"))
    until(lambda: (place.get("jobsets/alone").get("status") or {}).get("terminalState") == "Completed")
    twice = place.items("pods?labelSelector=jobset.sigs.k8s.io/jobset-name=train")
    assert [pod["status"]["phase"] for pod in twice] == ["Pending"]
    place.admin.call("DELETE", f"/api/v1/persistentvolumes/{place.name}-work")


def test_a_workflow_runs(place: Place, until: Callable[..., Any]) -> None:
    executor_rights(place)
    container = {"image": "testbed.local/tools:1", "command": ["echo", "hello"], "imagePullPolicy": "Never"}
    spec = {"entrypoint": "main", "templates": [{"name": "main", "container": container}]}
    place.create("workflows", {**ARGO, "metadata": {"name": "wf"}, "spec": spec})
    assert until(lambda: (place.get("workflows/wf").get("status") or {}).get("phase")) != "Error"
    until(lambda: place.get("workflows/wf")["status"]["phase"] == "Succeeded")
