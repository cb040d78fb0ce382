"""Holes: recognised without importing an engine, filled byte for byte, with the declared types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.holes import template_of
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.load import load
from jobset_steps.spec.template import SpecTemplate
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


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
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
    with pytest.raises(
        InvalidSpec, match=r"spec\.replicatedJobs\[0\]\.replicas: must be integer, .* \(value of nodes\)"
    ):
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


@pytest.mark.parametrize("value", [None, float("nan"), "NaN", "Infinity", "1e999"])
def test_a_number_is_a_number_and_null_is_no_value(value: Any) -> None:
    tree = jobset(
        replicated(spec=job(pod(container(resources={"limits": {"cpu": {"$hole": "n", "type": "number"}}}))))
    )
    with pytest.raises(InvalidSpec, match="must be number"):
        template(tree).bind({"n": value})


@pytest.mark.parametrize("type_", ["string", "integer", "number", "boolean", "list", "object"])
def test_null_is_no_value_of_any_type(type_: str) -> None:
    with pytest.raises(InvalidSpec, match="null"):
        template(changed(jobset(), "metadata.annotations.a", {"$hole": "x", "type": type_})).bind({"x": None})


def test_text_with_nul_is_refused_as_it_is_in_a_file() -> None:
    with pytest.raises(InvalidSpec, match="NUL"):
        template(with_args("$hole{x}")).bind({"x": "a\0b"})


LABELLED = "spec.replicatedJobs.0.template.spec.template.metadata.labels.nodes"


def test_where_a_hole_stands_decides_what_its_value_becomes() -> None:
    """The same count: a number as a count, text in a label, in a word and in a variable."""
    tree = changed(with_args({"$hole": "n"}, "-n$hole{n}"), "spec.replicatedJobs.0.replicas", {"$hole": "n"})
    found = template(changed(tree, LABELLED, {"$hole": "n"}))
    assert [(hole.name, hole.type) for hole in found.holes] == [("n", "integer")]
    assert found.check() == ()
    bound = found.bind({"n": "4.0"})
    assert bound.spec.replicated_jobs[0].replicas == 4
    assert args_of(bound) == ["4", "-n4"]
    assert bound.spec.replicated_jobs[0].template.spec.template["metadata"]["labels"]["nodes"] == "4"


@pytest.mark.parametrize(
    ("path", "value", "type_"),
    [
        ("spec.suspend", True, "boolean"),
        ("spec.ttlSecondsAfterFinished", 3600, "integer"),
        ("metadata.labels", {"a": "b"}, "object"),
        ("spec.replicatedJobs.0.template.spec.template.spec.containers.0.command", ["a"], "list"),
        ("spec.replicatedJobs.0.template.spec.template.spec.restartPolicy", "Never", "string"),
        ("spec.replicatedJobs.0.template.spec.template.spec.containers.0.ports", [], "list"),
    ],
)
def test_a_hole_without_a_type_has_that_of_its_place(path: str, value: Any, type_: str) -> None:
    found = template(changed(jobset(), path, {"$hole": "x"}))
    assert [hole.type for hole in found.holes] == [type_]
    text = value if isinstance(value, str) else json.dumps(value)
    assert found.bind({"x": text}) == JobSet.from_dict(changed(jobset(), path, value))


def test_a_hole_of_two_types_names_both_places() -> None:
    tree = changed(jobset(), "spec.replicatedJobs.0.replicas", {"$hole": "x"})
    with pytest.raises(InvalidSpec) as caught:
        template_of(changed(tree, "spec.suspend", {"$hole": "x"}))
    (fault,) = caught.value.faults
    assert {fault.path, fault.message.rpartition(" at ")[2]} == {
        "spec.suspend",
        "spec.replicatedJobs[0].replicas",
    }
    with pytest.raises(InvalidSpec, match="must be"):
        template_of(changed(jobset(), "spec.suspend", {"$hole": "x", "type": "list"}))


TWO = jobset(
    replicated("leader"),
    replicated("workers", dependsOn=[{"name": "leader", "status": "Ready"}]),
    failurePolicy={"rules": [{"action": "FailJobSet", "targetReplicatedJobs": ["workers"]}]},
    coordinator={"replicatedJob": "workers", "jobIndex": 0},
)
MOUNTED = jobset(
    replicated(
        spec=job(
            pod(
                container(volumeMounts=[{"name": "data", "mountPath": "/d"}]),
                volumes=[{"name": "data", "emptyDir": {}}],
            )
        )
    )
)


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        (TWO, "spec.replicatedJobs.0.name"),
        (TWO, "spec.replicatedJobs.1.name"),
        (TWO, "spec.failurePolicy.rules.0.targetReplicatedJobs.0"),
        (
            changed(changed(TWO, "spec.coordinator.jobIndex", 2), "spec.replicatedJobs.1.replicas", 3),
            "spec.replicatedJobs.1.replicas",
        ),
        (MOUNTED, "spec.replicatedJobs.0.template.spec.template.spec.volumes"),
        (MOUNTED, "spec.replicatedJobs.0.template.spec.template.spec.volumes.0.name"),
        (MOUNTED, "spec.replicatedJobs.0.template.spec.template.spec.containers"),
        (
            changed(jobset(), "spec.replicatedJobs.0.template.spec.parallelism", 1),
            "spec.replicatedJobs.0.template.spec.completions",
        ),
    ],
)
def test_what_a_value_could_mend_elsewhere_waits_for_it(tree: dict[str, Any], path: str) -> None:
    assert template(changed(tree, path, {"$hole": "x"})).check() == ()


# Faults that no value of a hole elsewhere could mend.
FAULTS = [
    ("spec.replicatedJobs.0.template.spec.backoffLimit", -1),
    ("spec.replicatedJobs.0.template.spec.template.spec.restartPolicy", "Sometimes"),
    ("spec.replicatedJobs.0.template.spec.template.spec.containers.0.env", [{"name": "a=b"}]),
    ("spec.replicatedJobs.0.template.spec.template.spec.containers.0.imag", "x"),
    ("metadata.labels", {"a b": "c"}),
    ("spec.maxRestarts", 1),
]


@st.composite
def punched(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """(a JobSet that is right, the same with holes, dotted paths of the holes) with the values that were there."""
    whole = draw(st.sampled_from([TWO, MOUNTED, with_args("a", "b"), EVERYTHING]))
    places = [path for path in leaves(whole, "") if not path.endswith(("apiVersion", "kind"))]
    chosen = draw(st.lists(st.sampled_from(places), min_size=1, max_size=3, unique=True))
    chosen = [path for path in chosen if not any(path.startswith(f"{other}.") for other in chosen)]
    tree = whole
    for number, path in enumerate(chosen):
        tree = changed(tree, path, {"$hole": f"h{number}"})
    return whole, tree, chosen


def leaves(node: Any, path: str) -> list[str]:
    """Dotted paths of all values below the metadata's and the spec's own."""
    found = []
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, item in items:
        at = f"{path}.{key}" if path else str(key)
        if "." in at:
            found.append(at)
        found += leaves(item, at)
    return found


def at(tree: Any, path: str) -> Any:
    for part in path.split("."):
        tree = tree[int(part)] if isinstance(tree, list) else tree[part]
    return tree


EVERYTHING = jobset(
    replicated(
        spec=job(
            pod(
                container(
                    command=["python", "-m", "train"],
                    env=[{"name": "A", "value": "1"}],
                    resources={"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
                    ports=[{"name": "http", "containerPort": 80}],
                    readinessProbe={"httpGet": {"port": "http"}, "periodSeconds": 5},
                    volumeMounts=[{"name": "shm", "mountPath": "/dev/shm"}],
                ),
                volumes=[{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
                nodeSelector={"disk": "ssd"},
                terminationGracePeriodSeconds=30,
            ),
            parallelism=4,
            completions=4,
            backoffLimit=0,
            podFailurePolicy={
                "rules": [
                    {
                        "action": "FailJob",
                        "onExitCodes": {"containerName": "main", "operator": "In", "values": [3, 4]},
                    }
                ]
            },
        ),
        replicas=3,
    ),
    replicated("eval", dependsOn=[{"name": "workers", "status": "Complete"}]),
    coordinator={"replicatedJob": "workers", "jobIndex": 2, "podIndex": 3},
    successPolicy={"operator": "All", "targetReplicatedJobs": ["eval"]},
    network={"enableDNSHostnames": True, "subdomain": "net"},
    suspend=False,
    ttlSecondsAfterFinished=3600,
)


@given(punched())
def test_a_right_jobset_with_holes_raises_no_alarm_and_is_itself_again(
    made: tuple[dict[str, Any], dict[str, Any], list[str]],
) -> None:
    whole, tree, chosen = made
    found = template(tree)
    assert found.check() == ()
    values = {f"h{number}": at(whole, path) for number, path in enumerate(chosen)}
    as_text = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    expected = JobSet.from_dict(whole).to_yaml()
    assert found.bind(values).to_yaml() == expected
    assert SpecTemplate.from_json(found.to_json()).bind(as_text).to_yaml() == expected


@given(punched(), st.sampled_from(FAULTS))
def test_a_fault_outside_of_holes_is_found_before_any_value_is_known(
    made: tuple[dict[str, Any], dict[str, Any], list[str]], fault: tuple[str, Any]
) -> None:
    _, tree, chosen = made
    path, wrong = fault
    related = any(
        path == other or path.startswith(f"{other}.") or other.startswith(f"{path}.") for other in chosen
    )
    assume(not related)
    assert template(changed(tree, path, wrong)).check() != ()
