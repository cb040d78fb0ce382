"""Holes: recognised without importing an engine, filled byte for byte, with the declared types."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.load import load
from jobset_steps.spec.template import SpecTemplate, template_of
from tests.unit.spec.examples import changed, container, job, jobset, pod, replicated


def with_args(*args: Any, **more: Any) -> dict[str, Any]:
    return jobset(replicated(spec=job(pod(container(args=list(args)))), **more))


def template(tree: dict[str, Any]) -> SpecTemplate:
    found = template_of(tree)
    assert isinstance(found, SpecTemplate)
    return found


def args_of(found: JobSet) -> list[str]:
    args: list[str] = found.spec.replicated_jobs[0].template.spec.template["spec"]["containers"][0]["args"]
    return args


@given(st.text())
def test_a10_text_arrives_byte_for_byte(text: str) -> None:
    found = template(with_args({"$hole": "whole"}, "--data=$hole{part}!"))
    bound = found.bind({"whole": text, "part": text})
    assert args_of(bound) == [text, f"--data={text}!"]
    assert args_of(SpecTemplate.from_json(found.to_json()).bind({"whole": text, "part": text})) == args_of(
        bound
    )


def test_a10_a_value_that_looks_like_a_hole_is_not_filled_again() -> None:
    found = template(with_args("$hole{a}", "$hole{b}"))
    assert args_of(found.bind({"a": "$hole{b}", "b": "{{b}}"})) == ["$hole{b}", "{{b}}"]


@pytest.mark.parametrize("value", ["4", 4, "4.0", 4.0])
def test_a10_a_count_arrives_as_an_integer(value: Any) -> None:
    found = template(
        changed(with_args("x"), "spec.replicatedJobs.0.replicas", {"$hole": "nodes", "type": "integer"})
    )
    replicas = found.bind({"nodes": value}).spec.replicated_jobs[0].replicas
    assert (replicas, type(replicas)) == (4, int)


@pytest.mark.parametrize("value", ["four", "4.5", "", True, None, [], "1e400", "NaN"])
def test_a_count_that_is_none_is_a_fault(value: Any) -> None:
    found = template(
        changed(with_args("x"), "spec.replicatedJobs.0.replicas", {"$hole": "nodes", "type": "integer"})
    )
    with pytest.raises(InvalidSpec, match="nodes: must be integer"):
        found.bind({"nodes": value})


def test_every_wrong_value_is_named_at_once() -> None:
    found = template(
        changed(with_args("$hole{data}"), "spec.suspend", {"$hole": "suspend", "type": "boolean"})
    )
    with pytest.raises(InvalidSpec) as caught:
        found.bind({"suspend": "maybe", "dat": "x"})
    assert [fault.rule for fault in caught.value.faults] == [
        "unknown-value",
        "value-type",
        "missing-value",
    ] or [fault.rule for fault in caught.value.faults] == ["unknown-value", "missing-value", "value-type"]
    assert "did you mean data?" in str(caught.value)


def test_a10_upstream_outputs_of_argo_are_holes_and_other_braces_are_text() -> None:
    found = template(
        with_args("{{tasks.prep.outputs.parameters.data}}", "{{inputs.parameters.n}}/x", "a: {{b}}")
    )
    assert [hole.name for hole in found.holes] == [
        "tasks.prep.outputs.parameters.data",
        "inputs.parameters.n",
    ]
    bound = found.bind({"tasks.prep.outputs.parameters.data": "d", "inputs.parameters.n": "7"})
    assert args_of(bound) == ["d", "7/x", "a: {{b}}"]


def test_what_can_be_checked_now_is_and_what_a_hole_decides_is_not() -> None:
    tree = changed(with_args("x"), "spec.replicatedJobs.0.replicas", {"$hole": "nodes", "type": "integer"})
    tree = changed(tree, "spec.replicatedJobs.0.name", "Workers")
    tree = changed(
        tree, "spec.replicatedJobs.0.template.spec.backoffLimit", {"$hole": "limit", "type": "integer"}
    )
    assert [fault.path for fault in template(tree).check()] == ["spec.replicatedJobs[0].name"]


def test_yaml_holds_holes_too() -> None:
    read = load(JobSet.from_dict(with_args("$hole{data}")).to_yaml())
    assert isinstance(read, SpecTemplate)
    assert [hole.name for hole in read.holes] == ["data"]


def test_a_tree_without_holes_is_a_jobset() -> None:
    assert isinstance(template_of(with_args("x")), JobSet)
