"""A step's name follows from its identity, always fits, and its references to itself follow it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobset_steps.spec.check import check
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.naming import checkpoint_key, instantiate, label_safe, marks, step_name
from tests.unit.spec.examples import container, job, jobset, pod, replicated

NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,60}[a-z0-9])?", fullmatch=True)
DIGEST = "0123456789"


@given(NAMES, st.integers(1, 100), st.integers(1, 200), st.integers(1, 12))
def test_c1_a_derived_name_always_fits(base: str, replicas: int, completions: int, generation: int) -> None:
    spec = job(parallelism=completions, completions=completions)
    tree = JobSet.from_dict(jobset(replicated("workers", spec, replicas=replicas), name=base))
    name = step_name(tree, DIGEST, generation)
    named = tree.model_copy(update={"metadata": tree.metadata.model_copy(update={"name": name})})
    assert check(with_defaults(named)) == ()
    assert DIGEST[:8] in name


def test_b5_two_runs_and_two_generations_have_different_names() -> None:
    tree = JobSet.from_dict(jobset())
    names = {
        step_name(tree, "aaaaaaaaaa", 1),
        step_name(tree, "bbbbbbbbbb", 1),
        step_name(tree, "aaaaaaaaaa", 2),
    }
    assert names == {"train-aaaaaaaa", "train-bbbbbbbb", "train-aaaaaaaa-g2"}


@pytest.mark.parametrize(
    ("text", "follows"),
    [
        ("train-workers-0-0.train", "new-workers-0-0.new"),
        ("train-workers-0-0.train.default.svc:29500", "new-workers-0-0.new.default.svc:29500"),
        ("tcp://train-workers-0-12", "tcp://new-workers-0-12"),
        ("a,train-workers-0-0,b", "a,new-workers-0-0,b"),
        ("pretrain-workers-0-0", "pretrain-workers-0-0"),
        ("train-workers-0-0-x", "train-workers-0-0-x"),
        ("train-other-0-0", "train-other-0-0"),
        ("train", "train"),
        ("/data/train.csv", "/data/train.csv"),
    ],
)
def test_a_jobset_that_names_its_own_pods_goes_on_naming_them(text: str, follows: str) -> None:
    spec = job(pod(container(command=["run", text], args=[text], env=[{"name": "A", "value": text}])))
    manifest = instantiate(
        JobSet.from_dict(jobset(replicated("workers", spec))),
        name="new",
        namespace="ns",
        labels={},
        annotations={},
    )
    found = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    assert (found["command"][1], found["args"][0], found["env"][0]["value"]) == (follows, follows, follows)


def test_a3_marks_and_owner_reach_jobset_jobs_and_pods() -> None:
    labels, annotations = marks(digest=DIGEST, run="r", step="s", slot="", generation=1, spec_hash="h")
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "wf", "uid": "u"}
    manifest = instantiate(
        JobSet.from_dict(jobset()),
        name="new",
        namespace="ns",
        labels=labels,
        annotations=annotations,
        owner=owner,
    )
    template = manifest["spec"]["replicatedJobs"][0]["template"]
    for meta in (manifest["metadata"], template["metadata"], template["spec"]["template"]["metadata"]):
        assert meta["labels"]["jobset-steps/identity"] == DIGEST
    assert manifest["metadata"]["ownerReferences"] == [{**owner, "blockOwnerDeletion": False}]


def test_a18_the_queue_label_stays_on_the_jobset() -> None:
    tree = jobset()
    tree["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    manifest = instantiate(JobSet.from_dict(tree), name="new", namespace="ns", labels={}, annotations={})
    template = manifest["spec"]["replicatedJobs"][0]["template"]
    assert manifest["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "q"}
    assert "kueue" not in str(template)


@given(st.text(max_size=200))
def test_a_label_value_is_always_allowed_and_tells_different_runs_apart(text: str) -> None:
    safe = label_safe(text)
    assert len(safe) <= 63
    assert re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", safe)
    assert label_safe(text + "x") != safe


def test_d4_checkpoints_are_keyed_by_run_and_step_and_by_slot_where_there_is_one() -> None:
    assert checkpoint_key("run-1", "train") == "run-1/train"
    assert checkpoint_key("run-1", "train", "2026-12-01") == "2026-12-01/train"
    assert ".." not in checkpoint_key("../../etc", "..")
