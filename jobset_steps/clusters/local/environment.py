"""A container's environment and command as Kubernetes makes them: `$(VAR)`, the downward API, resource fields. Pure.

What only a cluster has (Secrets, ConfigMaps) is asked of a function; a variable it does not know is left out. Source of
the rules: the API reference of Container, EnvVar, ObjectFieldSelector and ResourceFieldSelector, Kubernetes 1.34.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

__all__ = ["container_env", "downward", "expand", "quantity"]

# "$$" is a dollar, "$(NAME)" a variable, any other dollar is itself.
_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)")
_SUFFIXES: dict[str, Decimal] = {
    "": Decimal(1),
    **{suffix: Decimal(10) ** power for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)},
    **{f"{letter}i": Decimal(1024) ** (power + 1) for power, letter in enumerate("KMGTPE")},
}  # fmt: skip


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` replaced by its value, left as it is where there is none; `$$(NAME)` gives a literal `$(NAME)`."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else variables.get(name, match[0])

    return _REFERENCE.sub(value, text)


def quantity(text: str | int | float) -> Decimal:
    """A Kubernetes quantity ("500m", "2Gi", 1) as a number. Raises ValueError."""
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None or match[2] not in _SUFFIXES:
        raise ValueError(f"not a quantity: {text!r}")
    return Decimal(match[1]) * _SUFFIXES[match[2]]


def downward(manifest: Mapping[str, Any], *, address: str, node: str) -> Callable[[str], str | None]:
    """Answers fieldPath of a fieldRef for one pod; None for one that the API does not know."""
    meta, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    plain = {
        "metadata.name": str(meta.get("name", "")),
        "metadata.namespace": str(meta.get("namespace", "default")),
        "metadata.uid": str(meta.get("uid", "")),
        "spec.nodeName": node,
        "spec.serviceAccountName": str(spec.get("serviceAccountName") or "default"),
        "status.podIP": address,
        "status.podIPs": address,
        "status.hostIP": "127.0.0.1",
        "status.hostIPs": "127.0.0.1",
    }

    def answer(path: str) -> str | None:
        keyed = _KEYED.fullmatch(path)
        if keyed is None:
            return plain.get(path)
        return str((meta.get(keyed[1]) or {}).get(keyed[2], ""))

    return answer


def container_env(
    container: Mapping[str, Any],
    containers: Mapping[str, Mapping[str, Any]],
    *,
    field: Callable[[str], str | None],
    capacity: Mapping[str, Decimal],
    external: Callable[[str], str | None],
) -> dict[str, str]:
    """The variables of one container, in order, before anything is rewritten for this machine.

    `containers` are all of the pod by name (for resourceFieldRef), `capacity` what the machine has of "cpu" and
    "memory" (what limits default to), `external` gives a variable whose value only a cluster has.
    """
    env: dict[str, str] = {}
    for entry in container.get("env") or ():
        name, source = str(entry["name"]), entry.get("valueFrom")
        value: str | None
        if not source:
            value = expand(str(entry.get("value") or ""), env)
        elif "fieldRef" in source:
            value = field(str(source["fieldRef"].get("fieldPath", "")))
        elif "resourceFieldRef" in source:
            value = _resource(source["resourceFieldRef"], container, containers, capacity)
        else:
            value = external(name)
        if value is not None:
            env[name] = value
    return env


def _resource(
    ref: Mapping[str, Any],
    container: Mapping[str, Any],
    containers: Mapping[str, Mapping[str, Any]],
    capacity: Mapping[str, Decimal],
) -> str | None:
    """A resource of a container, divided and rounded up; a missing limit is the machine's, a missing request 0."""
    kind, _, resource = str(ref.get("resource", "")).partition(".")
    of = containers.get(str(ref.get("containerName") or ""), container)
    stated = ((of.get("resources") or {}).get(kind) or {}).get(resource)
    amount = quantity(stated) if stated is not None else Decimal(0)
    if stated is None and kind == "limits":
        if resource not in capacity:
            return None
        amount = capacity[resource]
    divisor = quantity(ref.get("divisor") or 1) or Decimal(1)
    return str(math.ceil(amount / divisor))
