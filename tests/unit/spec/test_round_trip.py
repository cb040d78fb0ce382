"""YAML and JSON in and out lose nothing; whatever has the wrong shape is a readable fault."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from kubernetes import client

from jobset_steps.spec import spec_hash
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.load import load
from tests.conformance.scenarios import manifest, scenario_strategy
from tests.unit.spec.examples import changed, jobset


@given(scenario_strategy())
def test_a_round_trip_loses_nothing(scenario: Any) -> None:
    tree = manifest(scenario, "image")
    read = JobSet.from_dict(tree)
    assert read.to_dict() == tree
    assert JobSet.from_yaml(read.to_yaml()) == read
    assert load(json.dumps(tree)) == read


def test_every_field_of_the_api_is_kept() -> None:
    tree = jobset(
        network={"enableDNSHostnames": False, "subdomain": "s", "publishNotReadyAddresses": False},
        successPolicy={"operator": "Any", "targetReplicatedJobs": ["workers"]},
        failurePolicy={
            "maxRestarts": 0,
            "restartStrategy": "Recreate",
            "rules": [{"name": "a", "action": "FailJobSet"}],
        },
        startupPolicy={"startupPolicyOrder": "AnyOrder"},
        suspend=False,
        coordinator={"replicatedJob": "workers", "jobIndex": 0, "podIndex": 0},
        managedBy="example.com/x",
        ttlSecondsAfterFinished=600,
        volumeClaimPolicies=[
            {
                "templates": [{"metadata": {"name": "d"}, "spec": {}}],
                "retentionPolicy": {"whenDeleted": "Retain"},
            }
        ],
    )
    assert JobSet.from_dict(tree).to_dict() == tree


def test_a_pod_template_may_be_a_model_of_the_kubernetes_client() -> None:
    pod = client.V1PodTemplateSpec(
        spec=client.V1PodSpec(
            containers=[client.V1Container(name="main", image="i", image_pull_policy="Never")]
        )
    )
    tree = changed(jobset(), "spec.replicatedJobs.0.template.spec.template", pod)
    read = JobSet.from_dict(tree).to_dict()["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert read == {"spec": {"containers": [{"name": "main", "image": "i", "imagePullPolicy": "Never"}]}}


def test_a_pod_template_may_hold_models_of_hera() -> None:
    from hera.workflows.models import Container

    pod = {"spec": {"containers": [Container(name="main", image="i", image_pull_policy="Never")]}}
    tree = changed(jobset(), "spec.replicatedJobs.0.template.spec.template", pod)
    read = JobSet.from_dict(tree).to_dict()["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert read == {"spec": {"containers": [{"name": "main", "image": "i", "imagePullPolicy": "Never"}]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\n", "line 2, column 1"),
        ("a: 1\na: 2\n", "'a' is written twice"),
        ("---\na: 1\n---\nb: 2\n", "one JobSet document"),
        ("- 1\n- 2\n", "a mapping"),
        ("\n", "one JobSet document"),
        ("apiVersion: v1\nkind: Pod\n", "kind"),
        ("no-such-file.yaml", "cannot be read"),
        ("a: !!int x\n", "line 1, column 4: 'x' is no int here"),
        ("a: !!bool x\n", "'x' is no bool here"),
        (f"a: {'9' * 5000}\n", "is no int here"),
        ("a: .inf\n", "'.inf' is no float here"),
        ("a: !!timestamp x\n", "timestamp"),
        ("a: !!binary eA==\n", "binary"),
        ('a: "x\\0"\n', "cannot stand in a command"),
        ('a: "\\ud800"\n', "cannot stand in a command"),
        ("&a [*a]\n", "an alias stands within what it names"),
        (
            "".join(f"a{i}: &a{i} [{f'*a{i - 1}, ' * 9 if i else 'x'}]\n" for i in range(9)),
            "aliases make",
        ),
        (f"a: {'[' * 200}{']' * 200}\n", "more than 100 levels deep"),
        (f"a: {'[' * 5000}{']' * 5000}\n", "too deep"),
    ],
)
def test_what_cannot_be_read_is_one_message(text: str, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        load(text)


def test_times_of_day_and_addresses_with_ports_stay_text() -> None:
    tree = changed(
        jobset(), "spec.replicatedJobs.0.template.spec.template.spec.containers.0.args", ["12:30", "1:2.5"]
    )
    text = yaml.safe_dump(tree).replace("'12:30'", "12:30").replace("'1:2.5'", "1:2.5")
    assert load(text) == JobSet.from_dict(tree)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("spec.replicatedJobs.0.replicas", "2", "spec.replicatedJobs[0].replicas: "),
        ("spec.replicatedJobs.0.replicas", True, "spec.replicatedJobs[0].replicas: "),
        ("spec.suspend", "yes", "spec.suspend: "),
        ("spec.failurePolicy", {"maxRestart": 1}, "did you mean maxRestarts?"),
        ("spec.replicatedJob", [], "did you mean replicatedJobs?"),
        ("spec.successPolicy", {"operator": "None"}, "one of 'All' or 'Any'"),
        ("metadata.labels", {"a": 1}, "metadata.labels.a: "),
        ("spec.replicatedJobs.0.template", None, "spec.replicatedJobs[0].template"),
    ],
)
def test_a_wrong_shape_names_its_place(path: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        JobSet.from_dict(changed(jobset(), path, value))
    assert message in str(caught.value)


def test_the_hash_is_over_content_and_not_over_order() -> None:
    tree = jobset()
    assert spec_hash(tree) == spec_hash(dict(reversed(tree.items())))
    assert spec_hash(tree) != spec_hash(changed(tree, "metadata.name", "other"))


def test_faults_within_a_pod_template_are_told_along_with_a_wrong_shape_around_it() -> None:
    tree = changed(changed(jobset(), "spec.suspend", "yes"), "spec.replicatedJobs.0.replicas", "two")
    pod = {
        "spec": {
            "containers": [
                {"name": "main", "image": "i", "imagePulPolicy": "Never", "env": [{"name": "A", "value": 1}]}
            ]
        }
    }
    with pytest.raises(InvalidSpec) as caught:
        JobSet.from_dict(changed(tree, "spec.replicatedJobs.0.template.spec.template", pod))
    assert sorted(fault.rule for fault in caught.value.faults) == ["type", "type", "type", "unknown-field"]
