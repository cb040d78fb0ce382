"""What differs between versions of JobSet: found in a spec, and told."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_steps.cli import main
from jobset_steps.errors import BadInput
from jobset_steps.spec.versions import DIFFERENCES, VERSIONS, known_version
from tests.unit.spec.examples import changed, claim, container, faults_of, job, jobset, pod, replicated

CLAIMS = changed(
    jobset(replicated(spec=job(pod(container(volumeMounts=[{"name": "data", "mountPath": "/data"}]))))),
    "spec.volumeClaimPolicies",
    [{"templates": [claim("data")]}],
)
RESTART_ONE = changed(jobset(), "spec.failurePolicy", {"rules": [{"action": "RestartJob"}]})
BARE_CONDITION = changed(
    jobset(),
    "spec.replicatedJobs.0.template.spec.podFailurePolicy",
    {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
)


@pytest.mark.parametrize(
    ("tree", "path", "since"),
    [
        (CLAIMS, "spec.volumeClaimPolicies", "0.11"),
        (RESTART_ONE, "spec.failurePolicy.rules[0].action", "0.12"),
        (
            BARE_CONDITION,
            "spec.replicatedJobs[0].template.spec.podFailurePolicy.rules[0].onPodConditions[0].status",
            "0.11",
        ),
    ],
)
def test_what_a_version_does_not_have_is_refused_there_and_no_later(
    tree: dict[str, Any], path: str, since: str
) -> None:
    for version in VERSIONS:
        found = [(f.path, f.rule) for f in faults_of(tree, jobset_version=version, waive=("action-gate",))]
        assert found == ([(path, "jobset-version")] if version < since else []), version


def test_a_condition_gets_the_status_that_older_versions_need() -> None:
    assert faults_of(BARE_CONDITION, defaults=True, jobset_version="0.10") == ()


def test_restarts_of_one_job_need_a_feature_gate_and_few_replicas() -> None:
    (fault,) = faults_of(RESTART_ONE, jobset_version="0.12")
    assert (fault.rule, fault.waivable) == ("action-gate", True)
    many = changed(RESTART_ONE, "spec.replicatedJobs.0.replicas", 1025)
    (fault,) = faults_of(many, jobset_version="0.12", waive=("action-gate",))
    assert (fault.path, fault.rule) == ("spec.replicatedJobs[0].replicas", "too-many")
    assert faults_of(changed(jobset(), "spec.replicatedJobs.0.replicas", 1025), jobset_version="0.12") == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_restarts_in_place_are_refused_in_every_version(version: str) -> None:
    tree = changed(jobset(), "spec.failurePolicy", {"restartStrategy": "InPlaceRestart"})
    assert [fault.rule for fault in faults_of(tree, jobset_version=version)] == ["in-place-restart"]


@pytest.mark.parametrize(("given", "version"), [("0.11", "0.11"), ("v0.10.1", "0.10"), ("0.12.0", "0.12")])
def test_a_version_may_be_written_as_its_tag(given: str, version: str) -> None:
    assert known_version(given) == version


@pytest.mark.parametrize("given", ["", "1.0", "0.9", "0", "0.111", "latest", "0.11x"])
def test_a_version_that_is_not_known_says_which_are(given: str) -> None:
    with pytest.raises(BadInput, match=r"known: 0\.10, 0\.11, 0\.12"):
        known_version(given)


@pytest.mark.parametrize("version", VERSIONS)
def test_validate_without_a_spec_says_what_a_version_has(
    version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", "--jobset", version]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("has")]
    assert [
        (line.startswith("has not"), row.what in line) for line, row in zip(said, DIFFERENCES, strict=True)
    ] == [(row.since > version, True) for row in DIFFERENCES]


def test_validate_without_anything_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate"]) == 64
    assert "no SPEC" in capsys.readouterr().err
    assert main(["validate", "--jobset", "0.9"]) == 64
    assert "known: 0.10, 0.11, 0.12" in capsys.readouterr().err
