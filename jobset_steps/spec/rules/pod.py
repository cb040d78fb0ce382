"""Rules of a pod template beyond its structure: what the API refuses when the Job controller creates the pod.

Source: the Pod API's validation (v1, Kubernetes 1.34). Structure (names, types, enums) is held first; these rules read only
what has the right shape, with null as the server reads it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.rules import forms
from jobset_steps.spec.rules.container import Around, container_faults
from jobset_steps.spec.rules.metadata import annotation_faults, finalizer_faults, label_faults
from jobset_steps.spec.rules.resources import pod_resource_faults, resource_faults
from jobset_steps.spec.rules.scheduling import scheduling_faults
from jobset_steps.spec.rules.security import os_faults, pod_security_faults
from jobset_steps.spec.rules.structure import settled, structure_faults
from jobset_steps.spec.rules.volumes import is_dropped, volume_faults

__all__ = ["pod_faults"]

_JOB_LABELS = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)
_SEARCH = re.compile(r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*")
_GRACE = 30


def pod_faults(
    path: str,
    template: Mapping[str, Any],
    claims: frozenset[str] = frozenset(),
    *,
    host_names: bool = True,
    made: bool = True,
) -> Iterator[Fault]:
    """Faults of one pod template at `path`.

    `claims` are the volumes that JobSet adds for its volumeClaimPolicies, `host_names` whether it sets the pods'
    subdomain, `made` whether any pod will be made: if none is, only the structure counts.
    """
    shape = list(structure_faults(path, template, "PodTemplateSpec"))
    if not made:
        shape = [fault for fault in shape if fault.rule != "enum"]
    yield from shape
    if shape or not made:
        return
    template = settled(template, "PodTemplateSpec")
    labels = (template.get("metadata") or {}).get("labels") or {}
    yield from label_faults(f"{path}.metadata.labels", labels)
    meta = template.get("metadata") or {}
    yield from annotation_faults(f"{path}.metadata.annotations", meta.get("annotations"))
    yield from finalizer_faults(f"{path}.metadata.finalizers", meta.get("finalizers") or (), of_pod=True)
    for name in _JOB_LABELS:
        if name in labels:
            message = "is the Job controller's to set"
            yield Fault(f"{path}.metadata.labels.{name}", "job-label", message, labels[name], "remove it")
    pod, path = template.get("spec") or {}, f"{path}.spec"
    yield from _settings(path, pod)
    yield from _host_name(path, pod, host_names=host_names)
    yield from _dns(path, pod)
    yield from _lists(path, pod)
    yield from pod_security_faults(path, pod)
    yield from scheduling_faults(path, pod, {**labels, **dict.fromkeys(_JOB_LABELS, "")})
    yield from pod_resource_faults(path, pod)
    yield from resource_faults(f"{path}.overhead", {"limits": pod.get("overhead") or {}}, ())
    yield from volume_faults(f"{path}.volumes", pod.get("volumes") or [])
    yield from _containers(path, pod, claims)


def _settings(path: str, pod: Mapping[str, Any]) -> Iterator[Fault]:
    deadline = pod.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        yield Fault(f"{path}.activeDeadlineSeconds", "out-of-range", f"from 1 to {2**31 - 1}", deadline)
    grace = pod.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        message = "a negative number acts as 1"
        yield Fault(
            f"{path}.terminationGracePeriodSeconds", "negative-grace", message, grace, "0 or more", True
        )
    for name in ("serviceAccountName", "serviceAccount", "nodeName", "priorityClassName"):
        if pod.get(name) and not (name == "serviceAccount" and pod.get("serviceAccountName")):
            yield from forms.subdomain(f"{path}.{name}", pod[name])
    if "runtimeClassName" in pod:
        yield from forms.subdomain(f"{path}.runtimeClassName", pod["runtimeClassName"])
    preemption = pod.get("preemptionPolicy")
    yield from forms.one_of(f"{path}.preemptionPolicy", preemption, ("Never", "PreemptLowerPriority"))
    if pod.get("nodeName") and pod.get("schedulingGates"):
        yield Fault(
            f"{path}.nodeName", "scheduling-gate", "not together with schedulingGates", pod["nodeName"]
        )
    if pod.get("ephemeralContainers"):
        message = "are added to running pods only"
        yield Fault(f"{path}.ephemeralContainers", "ephemeral-container", message, passes="containers")
    for name, whose, passes in (
        ("overhead", "the runtime class's", "runtimeClassName"),
        ("priority", "the priority class's", "priorityClassName"),
        ("preemptionPolicy", "the priority class's", "priorityClassName"),
    ):
        if pod.get(name) and not (name == "preemptionPolicy" and pod[name] == "PreemptLowerPriority"):
            message = f"is {whose} to set: where it differs the pod is refused"
            yield Fault(f"{path}.{name}", "pod-computed", message, pod[name], passes, True)


def _host_name(path: str, pod: Mapping[str, Any], *, host_names: bool) -> Iterator[Fault]:
    for field in ("hostname", "subdomain"):
        if pod.get(field):
            if field == "hostname" or not host_names:
                yield from forms.label(f"{path}.{field}", pod[field])
            message = "is JobSet's to set, so that pods find each other"
            yield Fault(f"{path}.{field}", "pod-host-name", message, pod[field], "remove it", True)
    if "hostnameOverride" in pod:
        message = (
            "is dropped without a word while the feature gate HostnameOverride is off, as it is by default"
        )
        yield Fault(
            f"{path}.hostnameOverride", "dropped-field", message, pod["hostnameOverride"], "remove it", True
        )


def _dns(path: str, pod: Mapping[str, Any]) -> Iterator[Fault]:
    config, here = pod.get("dnsConfig"), f"{path}.dnsConfig"
    servers, searches = ((config or {}).get(name) or [] for name in ("nameservers", "searches"))
    if pod.get("dnsPolicy") == "None" and not servers:
        yield Fault(f"{here}.nameservers", "required", "at least one with dnsPolicy None")
    if len(servers) > 3:
        yield Fault(f"{here}.nameservers", "too-many", "at most 3", len(servers))
    for index, server in enumerate(servers):
        yield from _address(f"{here}.nameservers[{index}]", server)
    if len(searches) > 32 or len(" ".join(searches)) > 2048:
        yield Fault(f"{here}.searches", "too-many", "at most 32, and 2048 characters in all", len(searches))
    for index, search in enumerate(searches):
        plain = search.removesuffix(".")
        if search != "." and (not _SEARCH.fullmatch(plain) or len(plain) > 253):
            yield Fault(
                f"{here}.searches[{index}]", "name-form", "lower case letters, digits, '-', '_', '.'", search
            )
    for index, option in enumerate((config or {}).get("options") or ()):
        yield from forms.required(f"{here}.options[{index}]", option, "name")
    for index, alias in enumerate(pod.get("hostAliases") or ()):
        yield from _address(f"{path}.hostAliases[{index}].ip", alias.get("ip") or "")
        for place, name in enumerate(alias.get("hostnames") or ()):
            yield from forms.subdomain(f"{path}.hostAliases[{index}].hostnames[{place}]", name)


def _address(path: str, value: str) -> Iterator[Fault]:
    try:
        # The server still takes leading zeros.
        ipaddress.ip_address(re.sub(r"(^|[.:])0+(?=[0-9])", r"\1", value) if "%" not in value else "")
    except ValueError:
        yield Fault(path, "address", "an IP address", value, "such as 10.0.0.1")


def _lists(path: str, pod: Mapping[str, Any]) -> Iterator[Fault]:
    for index, gate in enumerate(pod.get("readinessGates") or ()):
        yield from forms.label_key(
            f"{path}.readinessGates[{index}].conditionType", gate.get("conditionType") or ""
        )
    for index, gate in enumerate(pod.get("schedulingGates") or ()):
        yield from forms.label_key(f"{path}.schedulingGates[{index}].name", gate.get("name") or "")
    for index, claim in enumerate(pod.get("resourceClaims") or ()):
        here = f"{path}.resourceClaims[{index}]"
        yield from forms.label(f"{here}.name", claim.get("name") or "")
        kinds = [kind for kind in ("resourceClaimName", "resourceClaimTemplateName") if kind in claim]
        if len(kinds) != 1:
            yield Fault(here, "one-of", "exactly one of resourceClaimName and resourceClaimTemplateName")
        for kind in kinds:
            yield from forms.subdomain(f"{here}.{kind}", claim[kind])


def _containers(path: str, pod: Mapping[str, Any], claims: frozenset[str]) -> Iterator[Fault]:
    containers, init = pod.get("containers") or [], pod.get("initContainers") or []
    if containers == []:
        yield Fault(f"{path}.containers", "required", "at least one container")
    listed = [(f"{path}.containers[{i}]", c) for i, c in enumerate(containers)]
    listed = [(f"{path}.initContainers[{i}]", c) for i, c in enumerate(init)] + listed
    volumes = {volume.get("name") or "": volume for volume in pod.get("volumes") or ()}
    dropped = frozenset(name for name, volume in volumes.items() if is_dropped(volume))
    volumes.update({claim: {"persistentVolumeClaim": {}} for claim in claims})
    around = Around(
        volumes={name: volume for name, volume in volumes.items() if name not in dropped},
        dropped=dropped,
        claims=tuple(claim.get("name") or "" for claim in pod.get("resourceClaims") or ()),
        grace=pod.get("terminationGracePeriodSeconds", _GRACE),
        never=pod.get("restartPolicy") == "Never",
        host_users=pod.get("hostUsers") is not False,
    )
    seen: dict[str, str] = {}
    for here, container in listed:
        name = container.get("name") or ""
        if name and name in seen:
            yield Fault(f"{here}.name", "duplicate", f"is also the name of {seen[name]}", name, "each once")
        seen.setdefault(name, here)
        yield from container_faults(here, container, around, init=".initContainers[" in here)
        if not around.host_users and container.get("volumeDevices"):
            yield Fault(f"{here}.volumeDevices", "host-sharing", "not together with hostUsers: false")
    yield from _host_ports(path, pod, containers)
    for index, container in enumerate(init):
        yield from _host_ports(path, pod, [container], f"{path}.initContainers[{index}]")
    yield from os_faults(path, pod, listed)


def _host_ports(
    path: str, pod: Mapping[str, Any], containers: list[Any], where: str | None = None
) -> Iterator[Fault]:
    """Ports of the node: each once; with hostNetwork they are the container's own."""
    seen: set[tuple[str, str, int]] = set()
    for index, container in enumerate(containers):
        for place, port in enumerate(container.get("ports") or ()):
            here = f"{where or f'{path}.containers[{index}]'}.ports[{place}].hostPort"
            own, host = port.get("containerPort") or 0, port.get("hostPort") or 0
            if pod.get("hostNetwork"):
                if host not in (0, own) and where is None:
                    yield Fault(here, "host-port", "is the containerPort with hostNetwork", host, str(own))
                host = host or own
            identity = (port.get("protocol") or "TCP", port.get("hostIP") or "", host)
            if host and identity in seen:
                yield Fault(here, "duplicate", "is another port's", host, "each once")
            seen.add(identity)
