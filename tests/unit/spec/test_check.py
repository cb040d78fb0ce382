"""What the cluster would refuse, or hang on, is refused here: path, rule, and the value that passes."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_steps.errors import BadInput
from tests.unit.spec.examples import (
    changed,
    claim,
    container,
    faults_of,
    job,
    jobset,
    pod,
    replicated,
    rules_of,
)

J = "spec.replicatedJobs.0.template.spec"
JOB = "spec.replicatedJobs[0].template.spec"
POD = f"{JOB}.template.spec"
MAIN = f"{POD}.containers[0]"


def test_the_smallest_jobset_passes_with_and_without_defaults() -> None:
    assert faults_of(jobset()) == ()
    assert faults_of(jobset(), defaults=True) == ()


@pytest.mark.parametrize(
    ("replicas", "completions", "rjob", "length", "passes"),
    [
        (100, 8, "workers", 44, True),
        (100, 8, "workers", 45, False),
        (100, 8, "workers", 60, False),
        (1, 1, "workers", 45, True),
        (1, 1, "workers", 46, False),
        (1, 128, "node", 46, True),
        (1, 128, "node", 47, False),
    ],
)
def test_c1_a_name_is_as_long_as_the_pod_names_leave_room_for(
    replicas: int, completions: int, rjob: str, length: int, passes: bool
) -> None:
    spec = job(parallelism=completions, completions=completions)
    found = faults_of(jobset(replicated(rjob, spec, replicas=replicas), name="x" * length))
    assert (found == ()) is passes
    if not passes:
        assert [fault.path for fault in found] == ["metadata.name"]
        assert f"at most {44 if replicas == 100 else length - 1} characters here, " in str(found[0])


def test_c1_the_message_names_what_the_pod_names_add() -> None:
    spec = job(parallelism=8, completions=8)
    (fault,) = faults_of(jobset(replicated("workers", spec, replicas=100), name="x" * 60))
    assert str(fault) == (
        "metadata.name: at most 44 characters here, 60 given; pod names add '-workers-99-7-abcde' [name-length]"
    )


TWO = jobset(replicated("leader"), replicated("workers"))
SETS: list[tuple[str, dict[str, Any], str, str]] = [
    ("S1 depends on itself", changed(TWO, "spec.replicatedJobs.1.dependsOn", [{"name": "workers", "status": "Ready"}]),
     "spec.replicatedJobs[1].dependsOn[0].name", "depends-on-self"),
    ("depends on a later one", jobset(*(replicated(n) for n in "ab"), replicated("c", dependsOn=[{"name": "d", "status": "Ready"}]), replicated("d")),
     "spec.replicatedJobs[2].dependsOn[0].name", "depends-on-order"),
    ("the first depends", changed(TWO, "spec.replicatedJobs.0.dependsOn", [{"name": "workers", "status": "Ready"}]),
     "spec.replicatedJobs[0].dependsOn", "depends-on-first"),
    ("S2 no replicated job", {**jobset(), "spec": {"replicatedJobs": []}}, "spec.replicatedJobs", "no-jobs"),
    ("S2 no replica at all", jobset(replicated(replicas=0)), "spec.replicatedJobs", "no-jobs"),
    ("S4 success of nothing", changed(jobset(replicated("a", replicas=0), replicated("b")), "spec.successPolicy", {"operator": "All", "targetReplicatedJobs": ["a"]}),
     "spec.successPolicy.targetReplicatedJobs", "success-of-nothing"),
    ("S5 C14 TTL of a child Job", changed(jobset(), f"{J}.ttlSecondsAfterFinished", 60), f"{JOB}.ttlSecondsAfterFinished", "child-ttl"),
    ("S6 pattern", changed(jobset(), "spec.failurePolicy", {"rules": [{"action": "FailJobSet", "onJobFailureMessagePatterns": ["("]}]}),
     "spec.failurePolicy.rules[0].onJobFailureMessagePatterns[0]", "pattern"),
    ("S6 look-ahead", changed(jobset(), "spec.failurePolicy", {"rules": [{"action": "FailJobSet", "onJobFailureMessagePatterns": ["(?=x)"]}]}),
     "spec.failurePolicy.rules[0].onJobFailureMessagePatterns[0]", "pattern"),
    ("S10 negative restarts", changed(jobset(), "spec.failurePolicy", {"maxRestarts": -1}), "spec.failurePolicy.maxRestarts", "negative-restarts"),
    ("S12 rule name", changed(jobset(), "spec.failurePolicy", {"rules": [{"name": "host-maintenance", "action": "FailJobSet"}]}),
     "spec.failurePolicy.rules[0].name", "rule-name"),
    ("action of 0.12", changed(jobset(), "spec.failurePolicy", {"rules": [{"action": "RestartJob"}]}), "spec.failurePolicy.rules[0].action", "jobset-version"),
    ("unknown reason", changed(jobset(), "spec.failurePolicy", {"rules": [{"action": "FailJobSet", "onJobFailureReasons": ["OOM"]}]}),
     "spec.failurePolicy.rules[0].onJobFailureReasons[0]", "enum"),
    ("unknown target", changed(jobset(), "spec.failurePolicy", {"rules": [{"action": "FailJobSet", "targetReplicatedJobs": ["x"]}]}),
     "spec.failurePolicy.rules[0].targetReplicatedJobs[0]", "unknown-job"),
    ("in order and depends", changed(changed(TWO, "spec.startupPolicy", {"startupPolicyOrder": "InOrder"}), "spec.replicatedJobs.1.dependsOn", [{"name": "leader", "status": "Ready"}]),
     "spec.replicatedJobs[1].dependsOn", "depends-on-in-order"),
    ("C2 TTL 0", jobset(ttlSecondsAfterFinished=0), "spec.ttlSecondsAfterFinished", "ttl-too-short"),
    ("C2 TTL 5", jobset(ttlSecondsAfterFinished=5), "spec.ttlSecondsAfterFinished", "ttl-too-short"),
    ("subdomain", jobset(network={"subdomain": "a.b"}), "spec.network.subdomain", "name-form"),
    ("managedBy", jobset(managedBy="kueue"), "spec.managedBy", "domain-path"),
    ("coordinator", jobset(coordinator={"replicatedJob": "x"}), "spec.coordinator.replicatedJob", "unknown-job"),
    ("coordinator index", jobset(coordinator={"replicatedJob": "workers", "jobIndex": 1}), "spec.coordinator.jobIndex", "out-of-range"),
    ("same name twice", jobset(replicated("a"), replicated("a")), "spec.replicatedJobs[1].name", "duplicate"),
    ("upper case", jobset(replicated("Workers")), "spec.replicatedJobs[0].name", "name-form"),
    ("a claim that nobody mounts", jobset(volumeClaimPolicies=[{"templates": [claim("data")]}]),
     "spec.volumeClaimPolicies[0].templates[0].metadata.name", "claim-unused"),
    ("C4 completions", jobset(replicated(spec={"parallelism": 4, "template": pod()})), f"{JOB}.completions", "completions"),
    ("C5 restartPolicy", jobset(replicated(spec=job(pod(restartPolicy="OnFailure"), podFailurePolicy={"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}))),
     f"{POD}.restartPolicy", "restart-policy"),
    ("restartPolicy Always", jobset(replicated(spec=job(pod(restartPolicy="Always")))), f"{POD}.restartPolicy", "restart-policy"),
    ("backoffLimit -1", changed(jobset(), f"{J}.backoffLimit", -1), f"{JOB}.backoffLimit", "negative"),
    ("maxFailedIndexes alone", changed(jobset(), f"{J}.maxFailedIndexes", 1), f"{JOB}.backoffLimitPerIndex", "required"),
    ("indexes", changed(jobset(), f"{J}.successPolicy", {"rules": [{"succeededIndexes": "0-1"}]}), f"{JOB}.successPolicy.rules[0].succeededIndexes", "indexes"),
    ("exit codes out of order", changed(jobset(), f"{J}.podFailurePolicy", {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3, 2]}}]}),
     f"{JOB}.podFailurePolicy.rules[0].onExitCodes.values", "exit-codes"),
    ("exit code 0", changed(jobset(), f"{J}.podFailurePolicy", {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}]}),
     f"{JOB}.podFailurePolicy.rules[0].onExitCodes.values[0]", "exit-codes"),
    ("C4 no image", jobset(replicated(spec=job(pod({"name": "main"})))), f"{MAIN}.image", "required"),
    ("no container", jobset(replicated(spec=job({"spec": {"restartPolicy": "Never", "containers": []}}))), f"{POD}.containers", "required"),
    ("unknown field", jobset(replicated(spec=job(pod(container(imagePulPolicy="Always"))))), f"{MAIN}.imagePulPolicy", "unknown-field"),
    ("a number as a variable", jobset(replicated(spec=job(pod(container(env=[{"name": "A", "value": 1}]))))), f"{MAIN}.env[0].value", "type"),
    ("a bad quantity", jobset(replicated(spec=job(pod(container(resources={"limits": {"cpu": "two"}}))))), f"{MAIN}.resources.limits.cpu", "quantity"),
    ("request above limit", jobset(replicated(spec=job(pod(container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "1500m"}}))))),
     f"{MAIN}.resources.requests.cpu", "request-above-limit"),
    ("a mount without volume", jobset(replicated(spec=job(pod(container(volumeMounts=[{"name": "data", "mountPath": "/d"}]))))), f"{MAIN}.volumeMounts[0].name", "unknown-volume"),
    ("two containers of a name", jobset(replicated(spec=job(pod(container(), container())))), f"{POD}.containers[1].name", "duplicate"),
    ("a port name too long", jobset(replicated(spec=job(pod(container(ports=[{"containerPort": 80, "name": "x" * 16}]))))), f"{MAIN}.ports[0].name", "port-name"),
    ("an enum", jobset(replicated(spec=job(pod(container(imagePullPolicy="always"))))), f"{MAIN}.imagePullPolicy", "enum"),
    ("a volume without source", jobset(replicated(spec=job(pod(volumes=[{"name": "v"}])))), f"{POD}.volumes[0]", "volume-without-source"),
    ("a field path", jobset(replicated(spec=job(pod(container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}]))))),
     f"{MAIN}.env[0].valueFrom.fieldRef.fieldPath", "field-path"),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "path", "rule"), [row[1:] for row in SETS], ids=[row[0] for row in SETS])
def test_one_fault_is_one_message_at_its_place(tree: dict[str, Any], path: str, rule: str) -> None:
    assert rules_of(tree) == [(path, rule)]


def test_s12_a_rule_name_that_would_pass_is_suggested() -> None:
    tree = changed(
        jobset(), "spec.failurePolicy", {"rules": [{"name": "host-maintenance", "action": "FailJobSet"}]}
    )
    (fault,) = faults_of(tree)
    assert fault.passes == "hostMaintenance"


def test_all_faults_come_at_once() -> None:
    tree = jobset(
        replicated("Workers", job(pod({"name": "main"}), backoffLimit=-1)), ttlSecondsAfterFinished=1
    )
    assert {rule for _, rule in rules_of(tree)} == {"name-form", "required", "negative", "ttl-too-short"}


def test_what_the_server_accepts_and_hangs_on_can_be_waived_by_name_and_nothing_else() -> None:
    tree = jobset(replicated(replicas=0), ttlSecondsAfterFinished=5)
    assert rules_of(tree, waive=("no-jobs",)) == [("spec.ttlSecondsAfterFinished", "ttl-too-short")]
    refused = jobset(replicated("Workers"))
    assert rules_of(refused, waive=("name-form",)) == [
        ("waive", "unknown-rule"),
        ("spec.replicatedJobs[0].name", "name-form"),
    ]


def test_a_rule_to_waive_that_is_none_is_named_with_the_one_that_is_close() -> None:
    (fault,) = faults_of(jobset(), waive=("no-job",))
    assert "did you mean no-jobs?" in str(fault)


def test_an_unknown_jobset_version_is_bad_input() -> None:
    with pytest.raises(BadInput, match=r"0\.11"):
        faults_of(jobset(), jobset_version="1.0")
