"""A container's environment is what Kubernetes would make of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from jobset_steps.clusters.local.environment import container_env, downward, expand, quantity

POD: dict[str, Any] = {
    "metadata": {
        "name": "train-w-0-1-abcde",
        "namespace": "team",
        "uid": "u-1",
        "labels": {"app": "train"},
        "annotations": {"jobset.sigs.k8s.io/restart-attempt": "2"},
    },
    "spec": {"hostname": "train-w-0-1"},
}


def env_of(*entries: dict[str, Any], **container: Any) -> dict[str, str]:
    one = {"name": "main", "env": list(entries), **container}
    return container_env(
        one,
        {"main": one},
        field=downward(POD, address="127.70.0.1", node="laptop"),
        capacity={"cpu": Decimal(2), "memory": Decimal(8 * 1024**3)},
        external={"TOKEN": "from-the-shell"}.get,
    )


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)-$(B)", "1-2"),
        ("$(NONE)", "$(NONE)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A $", "$A $"),
        ("$(A", "$(A"),
        ("cost: 5$", "cost: 5$"),
        ("$()", "$()"),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expanded


def test_a_variable_sees_those_before_it_and_not_those_after_it() -> None:
    env = env_of(
        {"name": "EARLY", "value": "$(LATE)"},
        {"name": "LATE", "value": "x"},
        {"name": "BOTH", "value": "$(EARLY)/$(LATE)"},
    )
    assert env == {"EARLY": "$(LATE)", "LATE": "x", "BOTH": "$(LATE)/x"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "train-w-0-1-abcde"),
        ("metadata.namespace", "team"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['app']", "train"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['jobset.sigs.k8s.io/restart-attempt']", "2"),
        ("status.podIP", "127.70.0.1"),
        ("status.hostIP", "127.0.0.1"),
        ("spec.nodeName", "laptop"),
    ],
)
def test_fields_of_the_pod(path: str, value: str) -> None:
    assert env_of({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}) == {"X": value}


def test_a_value_from_a_field_is_not_expanded() -> None:
    POD["metadata"]["labels"]["odd"] = "$(A)"
    field = {"fieldRef": {"fieldPath": "metadata.labels['odd']"}}
    assert env_of({"name": "A", "value": "1"}, {"name": "X", "valueFrom": field})["X"] == "$(A)"


@pytest.mark.parametrize(
    ("ref", "value"),
    [
        ({"resource": "limits.cpu"}, "1"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "500"),
        ({"resource": "requests.memory", "divisor": "1Mi"}, "2048"),
        ({"resource": "limits.memory", "divisor": "1Gi"}, "8"),
        ({"resource": "requests.ephemeral-storage"}, "0"),
    ],
)
def test_resources_are_divided_and_rounded_up_and_default_to_the_machine(
    ref: dict[str, str], value: str
) -> None:
    resources = {"limits": {"cpu": "500m"}, "requests": {"memory": "2Gi"}}
    env = env_of({"name": "X", "valueFrom": {"resourceFieldRef": ref}}, resources=resources)
    assert env == {"X": value}


def test_what_only_a_cluster_has_comes_from_the_shell_or_is_not_set() -> None:
    secret = {"secretKeyRef": {"name": "s", "key": "k"}}
    env = env_of({"name": "TOKEN", "valueFrom": secret}, {"name": "OTHER", "valueFrom": secret})
    assert env == {"TOKEN": "from-the-shell"}


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", "1"), (2, "2"), ("100m", "0.1"), ("2Gi", str(2 * 1024**3)), ("3k", "3000"), ("1e3", "1000"), ("5M", "5000000")],
)  # fmt: skip
def test_quantities(text: str | int, number: str) -> None:
    assert quantity(text) == Decimal(number)


def test_what_is_no_quantity_is_refused() -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantity("2GB")
