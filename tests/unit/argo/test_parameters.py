"""Text and values on their way through Argo and Kubernetes: nothing is left that either would replace."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest
from hera.workflows import Parameter, Task
from hypothesis import given
from hypothesis import strategies as st

from jobset_steps.argo import argo_step, template
from jobset_steps.argo.parameters import literal, passed, safe_json
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.template import Hole, SpecTemplate
from tests.unit.argo.argo_templates import NASTY, argued, read_back

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.sampled_from(
    [NASTY, "{{{{", "{{{", "$$(X)", ""]
)


@given(TEXTS)
def test_a10_text_is_read_back_as_it_was_and_holds_nothing_to_replace(text: str) -> None:
    written = safe_json({"a": [text, {text: 1}]})
    assert json.loads(written) == {"a": [text, {text: 1}]}
    assert "{{" not in written
    assert "$" not in written
    assert written.isascii()


@given(TEXTS)
def test_a10_a_literal_of_an_expression_is_plain_ascii(text: str) -> None:
    written = literal(text)
    inside = written[1:-1]
    assert written.isascii()
    assert not set(inside) & set("{}$'\"\n`")
    # Every backslash begins an escape of fixed length, which JSON and the expression language read alike.
    assert inside.encode().decode("unicode_escape") == text


@given(TEXTS, TEXTS)
def test_a10_a_launcher_binds_the_very_text_that_was_passed(first: str, second: str) -> None:
    step = argo_step(argued("{{tasks.a.outputs.parameters.x}}", "[{{inputs.parameters.y}}]"))
    names = [value.name for value in step.values]
    request = read_back(template(step), **dict(zip(names, (first, second), strict=True)))
    spec = SpecTemplate.from_json(json.dumps(request["spec"]))
    values = {hole: base64.b64decode(value).decode() for hole, value in request["values"].items()}
    jobset = spec.bind(values).to_dict()
    made = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    assert made["args"] == [first, f"[{second}]"]
    assert (
        made["command"]
        == argued()["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0][
            "command"
        ]
    )


@pytest.mark.parametrize(
    ("reference", "argument"),
    [
        (
            "tasks.prep-1.outputs.parameters.x",
            "{{=sprig.b64enc(tasks['prep-1']['outputs']['parameters']['x'])}}",
        ),
        ("steps.prep.outputs.result", "{{=sprig.b64enc(steps['prep']['outputs']['result'])}}"),
        ("workflow.parameters.x", "{{=sprig.b64enc(workflow['parameters']['x'])}}"),
        # What Argo makes itself holds no tags; as an expression a whole item or list would be no text.
        ("item", "{{item}}"),
        ("workflow.uid", "{{workflow.uid}}"),
        ("workflow.creationTimestamp", "{{workflow.creationTimestamp}}"),
        ("tasks.fan.outputs.parameters", "{{tasks.fan.outputs.parameters}}"),
    ],
)
def test_a_value_is_encoded_where_it_is_first_read(reference: str, argument: str) -> None:
    (value,) = passed([Hole("x", source=f"{{{{{reference}}}}}")])
    assert value.argument == argument
    assert value.is_encoded == ("b64enc" in argument)


def test_texts_of_an_item_lose_the_escapes_that_argo_leaves_in_them() -> None:
    (value,) = passed([Hole("x", source="{{item.lr}}")])
    assert value.argument is not None
    assert value.argument.startswith(
        "{{=sprig.b64enc(item['lr'] contains '\\u005c' and not (item['lr'] matches "
    )
    assert value.argument.endswith(" ? fromJSON('\\u0022' + item['lr'] + '\\u0022') : item['lr'])}}")


def test_what_only_the_template_knows_needs_no_parameter() -> None:
    (value,) = passed([Hole("x", source="{{retries}}")])
    assert (value.name, value.argument, value.expression) == ("", None, "retries")


def test_names_of_parameters_are_argos_and_never_clash() -> None:
    values = passed([Hole("a.b", source="{{workflow.parameters.a}}"), Hole("a-b"), Hole("a/b")])
    assert [value.name for value in values] == ["a-b", "a-b-2", "a-b-3"]
    assert [value.argument for value in values][1:] == [None, None]


def test_hera_parameters_of_one_name_are_told_apart() -> None:
    first, second = (
        Parameter(name="path", value=f"{{{{tasks.{task}.outputs.parameters.path}}}}") for task in ("a", "b")
    )
    step = argo_step(argued(first, second))
    assert [value.argument for value in step.values] == [
        "{{=sprig.b64enc(tasks['a']['outputs']['parameters']['path'])}}",
        "{{=sprig.b64enc(tasks['b']['outputs']['parameters']['path'])}}",
    ]


def test_a_hera_parameter_without_a_value_is_an_input_of_the_template_around() -> None:
    (value,) = argo_step(argued(Parameter(name="lr"))).values
    assert value.argument == "{{=sprig.b64enc(inputs['parameters']['lr'])}}"


def test_a_hera_parameter_with_a_constant_is_that_text() -> None:
    step = argo_step(argued(Parameter(name="lr", value=0.1)))
    (value,) = step.values
    assert value.argument == "MC4x"
    assert value.is_encoded


@pytest.mark.parametrize("source", [SimpleNamespace(name="x"), Task, "a {{tasks.b.outputs.result}} c"])
def test_what_argo_cannot_resolve_is_refused(source: Any) -> None:
    with pytest.raises(InvalidSpec) as refused:
        passed([Hole("x", source=source)])
    assert [fault.rule for fault in refused.value.faults] == ["source"]


def test_counts_from_parameters_become_whole_numbers_when_they_are_bound() -> None:
    tree = argued()
    tree["spec"]["replicatedJobs"][0]["replicas"] = "{{workflow.parameters.nodes}}"
    step = argo_step(tree)
    assert isinstance(step.spec, SpecTemplate)
    jobset = step.spec.bind({"workflow.parameters.nodes": "2"})
    assert isinstance(jobset, JobSet)
    assert jobset.to_dict()["spec"]["replicatedJobs"][0]["replicas"] == 2
