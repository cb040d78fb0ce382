"""A JobSet as the API server reads it: null, sizes of numbers, what a cluster adds, owners, and names it completes."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.jobset import JobSet
from tests.unit.spec.examples import changed, claim, container, job, jobset, pod, replicated, rules_of

J = "spec.replicatedJobs.0.template.spec"
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}


def with_claim(**spec: Any) -> dict[str, Any]:
    mounts = container(volumeMounts=[{"name": "data", "mountPath": "/d"}])
    return jobset(
        replicated(spec=job(pod(mounts))), volumeClaimPolicies=[{"templates": [claim("data", **spec)]}]
    )


@pytest.mark.parametrize(
    "path",
    [
        "spec.network",
        "spec.failurePolicy",
        "spec.replicatedJobs.0.dependsOn",
        "metadata.labels",
        f"{J}.podFailurePolicy",
    ],
)
def test_null_counts_as_unset(path: str) -> None:
    assert JobSet.from_dict(changed(jobset(), path, None)) == JobSet.from_dict(jobset())


def test_null_among_mappings_is_an_empty_mapping() -> None:
    found = rules_of(changed(jobset(), "spec.failurePolicy", {"rules": [{"action": "FailJobSet"}]}))
    assert found == []
    tree = changed(jobset(), f"{J}.podFailurePolicy", {"rules": [None]})
    assert [path.rpartition("podFailurePolicy.")[2] for path, _ in rules_of(tree)] == [
        "rules[0].action",
        "rules[0]",
    ]


def test_a_label_that_is_null_is_not_there() -> None:
    read = JobSet.from_dict(changed(jobset(), "metadata.labels", {"a": None, "b": "c"}))
    assert read.metadata.labels == {"b": "c"}


def test_a_whole_number_may_be_written_as_a_fraction() -> None:
    assert (
        JobSet.from_dict(changed(jobset(), "spec.replicatedJobs.0.replicas", 2.0))
        .spec.replicated_jobs[0]
        .replicas
        == 2
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.replicatedJobs.0.replicas", 2**31),
        ("spec.ttlSecondsAfterFinished", -(2**31) - 1),
        (f"{J}.completions", 2**31),
        (f"{J}.activeDeadlineSeconds", 2**63),
        (f"{J}.completions", 1.5),
    ],
)
def test_a_number_that_the_api_has_no_room_for_is_a_fault_of_type(path: str, value: Any) -> None:
    with pytest.raises(InvalidSpec) as caught:
        JobSet.from_dict(changed(jobset(), path, value))
    assert [fault.rule for fault in caught.value.faults] == ["type"]


def test_what_a_cluster_adds_is_left_out() -> None:
    tree = {**jobset(), "status": {"restarts": 1}}
    tree["metadata"] |= {
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [],
    }
    assert JobSet.from_dict(tree).to_dict() == jobset()


@pytest.mark.parametrize(
    ("owners", "found"),
    [
        ([OWNER], []),
        ([{**OWNER, "uid": ""}], [("[0].uid", "required")]),
        ([{**OWNER, "blocksOwner": True}], [("[0].blocksOwner", "unknown-field")]),
        ([{**OWNER, "controller": "yes"}], [("[0].controller", "type")]),
        ([{**OWNER, "controller": True}, {**OWNER, "controller": True}], []),
        (
            [{**OWNER, "controller": True}, {**OWNER, "name": "c", "controller": True}],
            [("[1].controller", "owner")],
        ),
        ([{**OWNER, "kind": "Event"}], [("[0]", "owner")]),
    ],
)
def test_an_owner_is_complete(owners: list[dict[str, Any]], found: list[tuple[str, str]]) -> None:
    tree = changed(jobset(), "metadata.ownerReferences", owners)
    assert rules_of(tree) == [(f"metadata.ownerReferences{path}", rule) for path, rule in found]


def test_the_domain_of_an_annotation_may_have_capitals_and_that_of_a_label_may_not() -> None:
    assert rules_of(changed(jobset(), "metadata.annotations", {"EX.com/a": "b"})) == []
    assert rules_of(changed(jobset(), "metadata.labels", {"EX.com/a": "b"})) == [
        ("metadata.labels.EX.com/a", "key-form")
    ]


@pytest.mark.parametrize(("length", "fits"), [(41, True), (42, False)])
def test_c1_a_name_that_the_server_completes_leaves_room_for_five_characters(length: int, fits: bool) -> None:
    tree = jobset(replicated("worker"))
    tree["metadata"] = {"generateName": "x" * length}
    assert rules_of(tree) == ([] if fits else [("metadata.generateName", "name-length")])


def test_an_order_of_nothing_is_refused_and_nothing_at_all_only_hangs() -> None:
    tree = changed(jobset(), "spec", {"startupPolicy": {"startupPolicyOrder": "InOrder"}})
    assert rules_of(tree, waive=("no-jobs",)) == [("spec.replicatedJobs", "required")]
    assert rules_of(changed(jobset(), "spec", {}), waive=("no-jobs",)) == []


def test_a_base_of_names_is_looked_at_beside_a_name() -> None:
    assert rules_of(changed(jobset(), "metadata.generateName", "train-")) == []
    assert rules_of(changed(jobset(), "metadata.generateName", "-")) == [
        ("metadata.generateName", "name-form")
    ]
    assert rules_of(changed(jobset(), "metadata.generateName", "a.")) == [
        ("metadata.generateName", "name-form")
    ]


@pytest.mark.parametrize(("length", "fits"), [(45, True), (46, False)])
def test_c1_a_replicated_job_without_replicas_has_a_child_name_too(length: int, fits: bool) -> None:
    tree = jobset(replicated("worker"), replicated("none22", replicas=0), name="x" * length)
    assert rules_of(tree) == ([] if fits else [("metadata.name", "name-length")])


@pytest.mark.parametrize(
    ("spec", "path", "rule"),
    [
        ({"accessModes": []}, "spec.accessModes", "required"),
        ({"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]}, "spec.accessModes", "access-modes"),
        ({"resources": {"requests": {"storage": "0"}}}, "spec.resources.requests.storage", "required"),
        ({"storageClassName": "Fast"}, "spec.storageClassName", "name-form"),
        ({"dataSource": {"kind": "VolumeSnapshot", "name": "a"}}, "spec.dataSource.apiGroup", "required"),
        (
            {"dataSource": {"apiGroup": "", "kind": "VolumeSnapshot", "name": "a"}},
            "spec.dataSource.kind",
            "data-source",
        ),
        ({"acessModes": []}, "spec.acessModes", "unknown-field"),
    ],
)
def test_a_claim_that_could_never_be_made_is_a_fault(spec: dict[str, Any], path: str, rule: str) -> None:
    assert rules_of(with_claim(**spec)) == [(f"spec.volumeClaimPolicies[0].templates[0].{path}", rule)]


def test_a_policy_without_rules_is_a_fault_whether_or_not_jobs_are_made() -> None:
    tree = changed(
        jobset(replicated(), replicated("b", replicas=0)),
        "spec.replicatedJobs.1.template.spec.podFailurePolicy",
        {},
    )
    assert rules_of(tree) == [("spec.replicatedJobs[1].template.spec.podFailurePolicy.rules", "required")]
