"""Where a pod may run: node selector, affinity, tolerations, spread constraints.

Source: the Pod API's validation (v1, Kubernetes 1.34), on a pod whose structure is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.rules import forms
from jobset_steps.spec.rules.metadata import label_faults, requirement_faults, selector_faults

__all__ = ["scheduling_faults"]

_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def scheduling_faults(path: str, pod: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Fault]:
    """Faults of a pod's spec at `path`; `labels` are those of the pod."""
    yield from label_faults(f"{path}.nodeSelector", pod.get("nodeSelector"))
    affinity = pod.get("affinity") or {}
    yield from _node_affinity(f"{path}.affinity.nodeAffinity", affinity.get("nodeAffinity") or {})
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity(f"{path}.affinity.{kind}", affinity.get(kind) or {}, labels)
    for index, toleration in enumerate(pod.get("tolerations") or ()):
        yield from _toleration(f"{path}.tolerations[{index}]", toleration)
    for index, constraint in enumerate(pod.get("topologySpreadConstraints") or ()):
        yield from _spread(f"{path}.topologySpreadConstraints[{index}]", constraint, labels)


def _node_affinity(path: str, affinity: Mapping[str, Any]) -> Iterator[Fault]:
    required = affinity.get(_REQUIRED)
    if required is not None:
        here = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        if not required.get("nodeSelectorTerms"):
            yield Fault(here, "required", "at least one term")
        for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
            yield from _node_term(f"{here}[{index}]", term, any_value=False)
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight(f"{here}.weight", preferred)
        yield from _node_term(f"{here}.preference", preferred.get("preference") or {}, any_value=True)


def _node_term(path: str, term: Mapping[str, Any], *, any_value: bool) -> Iterator[Fault]:
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        yield from requirement_faults(here, requirement, numbers=True, any_value=any_value)
    for index, field in enumerate(term.get("matchFields") or ()):
        here = f"{path}.matchFields[{index}]"
        yield from forms.one_of(f"{here}.operator", field.get("operator") or "", ("In", "NotIn"))
        if field.get("key") != "metadata.name":
            yield Fault(f"{here}.key", "enum", "only metadata.name", field.get("key"), "metadata.name")
        values = field.get("values") or []
        if len(values) != 1:
            yield Fault(f"{here}.values", "selector-values", "exactly one value", values)
        for place, value in enumerate(values):
            yield from forms.subdomain(f"{here}.values[{place}]", value)


def _weight(path: str, term: Mapping[str, Any]) -> Iterator[Fault]:
    weight = term.get("weight") or 0
    if not 1 <= weight <= 100:
        yield Fault(path, "out-of-range", "from 1 to 100", weight)


def _pod_affinity(path: str, affinity: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Fault]:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        yield from _pod_term(f"{path}.{_REQUIRED}[{index}]", term, labels)
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight(f"{here}.weight", preferred)
        yield from _pod_term(f"{here}.podAffinityTerm", preferred.get("podAffinityTerm") or {}, labels)


def _pod_term(path: str, term: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Fault]:
    yield from forms.label_key(f"{path}.topologyKey", term.get("topologyKey") or "")
    yield from selector_faults(f"{path}.labelSelector", term.get("labelSelector"))
    yield from selector_faults(f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for index, namespace in enumerate(term.get("namespaces") or ()):
        yield from forms.label(f"{path}.namespaces[{index}]", namespace)
    yield from _match_keys(path, term, labels)


def _match_keys(path: str, term: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Fault]:
    """matchLabelKeys and mismatchLabelKeys: the server adds the pod's own values of them to the selector."""
    selector = term.get("labelSelector")
    match, mismatch = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            yield Fault(f"{path}.{name}", "match-label-keys", "needs a labelSelector", keys)
            continue
        for index, key in enumerate(keys):
            yield from forms.label_key(f"{path}.{name}[{index}]", key)
    seen = set((selector or {}).get("matchLabels") or {})
    expressions = [one.get("key") or "" for one in (selector or {}).get("matchExpressions") or ()]
    if selector is not None:
        expressions += [key for key in match if key in labels]
    for key in expressions:
        if key in match and key in seen:
            yield Fault(
                f"{path}.matchLabelKeys", "duplicate", "is also in the labelSelector", key, "one of the two"
            )
        seen.add(key)
    for index, key in enumerate(match):
        if key in mismatch:
            message = "is also in mismatchLabelKeys"
            yield Fault(f"{path}.matchLabelKeys[{index}]", "duplicate", message, key, "one of the two")


def _toleration(path: str, toleration: Mapping[str, Any]) -> Iterator[Fault]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        yield from forms.label_key(f"{path}.key", key)
    elif operator != "Exists":
        yield Fault(
            f"{path}.operator", "toleration", "only Exists without a key", operator or "Equal", "Exists"
        )
    if operator in ("", "Equal"):
        yield from forms.label_value(f"{path}.value", value)
    elif operator == "Exists" and value:
        yield Fault(f"{path}.value", "toleration", "no value with Exists", value, "remove it")
    elif operator != "Exists":
        yield Fault(f"{path}.operator", "enum", "one of Equal, Exists", operator)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        message = "only NoExecute with tolerationSeconds"
        yield Fault(f"{path}.effect", "toleration", message, effect or None, "NoExecute")


def _spread(path: str, constraint: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Fault]:
    if (constraint.get("maxSkew") or 0) < 1:
        yield Fault(f"{path}.maxSkew", "out-of-range", "at least 1", constraint.get("maxSkew"))
    if not constraint.get("topologyKey"):
        yield Fault(f"{path}.topologyKey", "required", "is required")
    when = constraint.get("whenUnsatisfiable") or ""
    yield from forms.one_of(f"{path}.whenUnsatisfiable", when, ("DoNotSchedule", "ScheduleAnyway"))
    domains = constraint.get("minDomains")
    if domains is not None:
        if domains < 1:
            yield Fault(f"{path}.minDomains", "out-of-range", "at least 1", domains)
        if when != "DoNotSchedule":
            message = "only with whenUnsatisfiable DoNotSchedule"
            yield Fault(f"{path}.minDomains", "min-domains", message, domains, "DoNotSchedule")
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        yield from forms.one_of(f"{path}.{name}", constraint.get(name), ("Honor", "Ignore"))
    yield from selector_faults(f"{path}.labelSelector", constraint.get("labelSelector"))
    yield from _match_keys(path, constraint, labels)
