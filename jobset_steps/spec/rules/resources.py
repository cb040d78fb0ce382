"""Rules of resources: names, amounts, requests against limits, claims; of containers and of a pod as a whole.

Source: the Pod API's validation and defaults (v1, Kubernetes 1.34), on a pod whose structure is right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.rules import forms
from jobset_steps.spec.rules.quantity import amount_of

__all__ = ["divisor_faults", "pod_resource_faults", "resource_faults"]

_OWN = ("cpu", "memory", "ephemeral-storage")
_HUGE = "hugepages-"


def resource_faults(
    path: str, resources: Mapping[str, Any], claims: Iterable[str], *, whole_pod: bool = False
) -> Iterator[Fault]:
    """Faults of the resources of a container, or of a whole pod; `claims` are the names of the pod's claims."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            here = f"{path}.{kind}.{name}"
            yield from _name(here, name, whole_pod=whole_pod)
            yield from _amount(here, name, value)
    for name, value in requests.items():
        here, request, limit = f"{path}.requests.{name}", amount_of(value), amount_of(limits.get(name))
        exact = not _is_native(name) or name.startswith(_HUGE)
        if limit is None and exact:
            yield Fault(
                here, "request-without-limit", "needs a limit of the same amount", value, f"limits: {value}"
            )
        elif limit is not None and request is not None:
            if exact and request != limit:
                yield Fault(here, "request-above-limit", f"must be the limit, {limits[name]}", value)
            elif request > limit:
                yield Fault(here, "request-above-limit", f"at most the limit, {limits[name]}", value)
    names = {*limits, *requests}
    if any(name.startswith(_HUGE) for name in names) and not names & {"cpu", "memory"}:
        yield Fault(path, "huge-pages", "huge pages need cpu or memory beside them", passes="a cpu limit")
    known, seen = set(claims), set[str]()
    for index, claim in enumerate(resources.get("claims") or ()):
        here, name = f"{path}.claims[{index}].name", claim.get("name") or ""
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            yield Fault(here, "unknown-claim", "no such claim in the pod", name, f"resourceClaims: {listed}")
        if claim.get("request"):
            yield from forms.label(f"{path}.claims[{index}].request", claim["request"])
        if name in seen:
            yield Fault(here, "duplicate", "is there already", name, "each once")
        seen.add(name)


def pod_resource_faults(path: str, pod: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults of the resources that a pod states for all its containers together; `path` is the pod spec's."""
    resources = pod.get("resources")
    if resources is None:
        return
    path = f"{path}.resources"
    if "claims" in resources:
        yield Fault(f"{path}.claims", "pod-claims", "claims are for containers", passes="remove it")
    yield from resource_faults(
        path, {k: v for k, v in resources.items() if k != "claims"}, (), whole_pod=True
    )
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    containers = pod.get("containers") or []
    for index, container in enumerate(containers):
        for name, value in ((container.get("resources") or {}).get("limits") or {}).items():
            whole, own = amount_of(limits.get(name)), amount_of(value)
            if whole is not None and own is not None and own > whole:
                message = f"containers[{index}] may use {value}"
                yield Fault(
                    f"{path}.limits.{name}", "pod-resources", message, limits[name], f"at least {value}"
                )
    for name, total in _together(pod).items():
        stated = requests.get(name, limits.get(name))
        if stated is not None and total > (amount_of(stated) or 0):
            kind = "requests" if name in requests else "limits"
            message = f"its containers request {total.normalize():f} together"
            yield Fault(f"{path}.{kind}.{name}", "pod-resources", message, stated)


def _together(pod: Mapping[str, Any]) -> dict[str, Decimal]:
    """What a pod's containers request, as the scheduler adds it up: each init container before those that stay."""
    total: dict[str, Decimal] = {}
    sidecars: dict[str, Decimal] = {}
    highest: dict[str, Decimal] = {}
    for container in pod.get("containers") or ():
        _add(total, _requests(container))
    for container in pod.get("initContainers") or ():
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(total, own)
            _add(sidecars, own)
            own = dict(sidecars)
        else:
            _add(own, sidecars)
        for name, amount in own.items():
            highest[name] = max(highest.get(name, Decimal(0)), amount)
    return {
        name: max(total.get(name, Decimal(0)), highest.get(name, Decimal(0))) for name in {*total, *highest}
    }


def _requests(container: Mapping[str, Any]) -> dict[str, Decimal]:
    """A container's requests; what is not requested is the limit."""
    resources = container.get("resources") or {}
    stated = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: amount_of(value) or Decimal(0) for name, value in stated.items()}


def _add(total: dict[str, Decimal], more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Decimal(0)) + amount


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _name(path: str, name: str, *, whole_pod: bool) -> Iterator[Fault]:
    wrong = list(forms.label_key(path, name))
    yield from wrong
    if wrong:
        return
    if whole_pod:
        if name not in ("cpu", "memory") and not name.startswith(_HUGE):
            yield Fault(path, "resource-name", "cpu, memory or hugepages-<size> for a whole pod", name)
    elif "/" not in name:
        if name not in _OWN and not name.startswith(_HUGE):
            message = f"one of {', '.join(_OWN)}, hugepages-<size>, or a name with a domain"
            yield Fault(path, "resource-name", message, name, "such as nvidia.com/gpu")
    elif not _is_native(name) and (
        name.startswith("requests.") or list(forms.label_key(path, f"requests.{name}"))
    ):
        message = "a domain that does not begin with 'requests.' and leaves room for it"
        yield Fault(path, "resource-name", message, name, "such as nvidia.com/gpu")


def _amount(path: str, name: str, value: Any) -> Iterator[Fault]:
    amount = amount_of(value)
    if amount is None:
        return
    if amount < 0:
        yield Fault(path, "quantity", "at least 0", value)
    if not _is_native(name) and math.ceil(amount * 1000) % 1000:
        yield Fault(path, "quantity", "a whole number", value, str(math.ceil(amount)))
    if name.startswith(_HUGE):
        size = amount_of(name.removeprefix(_HUGE))
        if size is None or size <= 0 or size % 1 or math.ceil(amount) % size:
            yield Fault(
                path,
                "huge-pages",
                "a multiple of the page size",
                value,
                f"such as {name.removeprefix(_HUGE)}",
            )


_DECIMAL = {Decimal(10) ** power for power in (0, 3, 6, 9, 12, 15, 18)}
_BINARY = {Decimal(1024) ** power for power in (1, 2, 3, 4, 5, 6)}


def divisor_faults(path: str, resource: str, divisor: Any) -> Iterator[Fault]:
    """The unit in which the downward API gives a resource."""
    amount = amount_of(divisor)
    if not amount:
        return
    text = str(divisor).strip()
    binary, exponent = text.endswith("i"), bool(re.search(r"[eE][+-]?\d", text))
    if resource.endswith(".cpu"):
        right = amount in (1, Decimal("0.001")) and not (exponent and amount != 1)
        passes = "1 or 1m"
    else:
        right = amount == 1 or amount in (_BINARY if binary else set() if exponent else _DECIMAL)
        passes = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi or 1Ei"
    if not right:
        yield Fault(path, "divisor", f"one of {passes}", divisor, passes)
