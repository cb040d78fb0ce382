"""What this machine cannot give a JobSet is said before anything starts: faults stop it, notices do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobset_steps.clusters.local import cannot_give, cannot_run


def jobset(container: dict[str, Any], **pod: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "command": ["true"], **container}], **pod}}
    job = {"name": "w", "replicas": 2, "template": {"spec": {"completions": 2, "template": template}}}
    return {"metadata": {"name": "t"}, "spec": {"replicatedJobs": [job]}}


def said(manifest: dict[str, Any]) -> str:
    return "\n".join(cannot_give(manifest))


def test_an_image_entry_point_is_a_fault_that_says_what_to_set() -> None:
    (fault,) = cannot_run(jobset({"image": "nvcr.io/x", "command": None}))
    assert fault.path == "spec.replicatedJobs[0].template.spec.template.spec.containers[0].command"
    assert fault.rule == "local-command"
    assert 'command: ["python", "train.py"]' in str(fault)


def test_a_host_path_that_is_not_there_is_a_fault_unless_it_may_be_made(tmp_path: Path) -> None:
    def mounting(**host: str) -> dict[str, Any]:
        return jobset({}, volumes=[{"name": "h", "hostPath": host}])

    assert cannot_run(mounting(path=str(tmp_path))) == ()
    assert cannot_run(mounting(path=str(tmp_path / "new"), type="DirectoryOrCreate")) == ()
    (fault,) = cannot_run(mounting(path=str(tmp_path / "new")))
    assert (fault.rule, fault.given) == ("local-host-path", str(tmp_path / "new"))


def test_all_faults_are_named_at_once() -> None:
    manifest = jobset(
        {"command": [], "volumeMounts": [{"name": "v", "mountPath": "/"}]},
        initContainers=[{"name": "i", "image": "x"}],
    )
    assert [fault.rule for fault in cannot_run(manifest)] == ["local-command", "local-command", "local-mount"]


def test_what_runs_as_it_is_has_nothing_to_be_told() -> None:
    container = {
        "env": [{"name": "A", "value": "1"}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
        "volumeMounts": [{"name": "v", "mountPath": "/data"}],
        "workingDir": "/data/in",
    }
    manifest = jobset(container, volumes=[{"name": "v", "emptyDir": {}}])
    assert [text for text in cannot_give(manifest) if "127.0.0.1" not in text] == []


@pytest.mark.parametrize(
    ("container", "pod", "words"),
    [
        ({"image": "repo/train:1"}, {}, "images are not used (repo/train:1)"),
        ({"resources": {"limits": {"nvidia.com/gpu": 8}}}, {}, "w/main: nvidia.com/gpu (8) is not given"),
        (
            {"env": [{"name": "NO_SUCH_VARIABLE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
            {},
            "w/main: NO_SUCH_VARIABLE is not set: the Secret s does not exist here (export NO_SUCH_VARIABLE to give it)",
        ),
        ({"envFrom": [{"configMapRef": {"name": "c"}}]}, {}, "variables from the ConfigMap c are not set"),
        (
            {},
            {"volumes": [{"name": "s", "secret": {"secretName": "x"}}]},
            "w: volume s (secret) is an empty directory",
        ),
        ({}, {"nodeSelector": {"pool": "a100"}}, "w: nodeSelector not used"),
        ({"livenessProbe": {"exec": {"command": ["x"]}}}, {}, "w/main: livenessProbe not used"),
        ({"readinessProbe": {"exec": {"command": ["x"]}}}, {}, "w/main: its readinessProbe is not asked"),
        ({"workingDir": "/no/such/directory"}, {}, "w/main: workingDir /no/such/directory does not exist"),
    ],
)
def test_what_is_missing_is_named_and_runs_without(
    container: dict[str, Any], pod: dict[str, Any], words: str
) -> None:
    manifest = jobset(container, **pod)
    assert cannot_run(manifest) == ()
    assert words in said(manifest)


def test_the_same_is_said_once() -> None:
    manifest = jobset({"image": "x"})
    manifest["spec"]["replicatedJobs"] *= 3
    assert len([text for text in cannot_give(manifest) if "images" in text]) == 1
