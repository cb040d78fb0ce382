"""Rules of a pod template beyond its structure: what the API refuses when the Job controller creates the pod.

Source: the Pod API's validation (v1, Kubernetes 1.34). Structure (names, types, enums) is held first; these rules read only
what has the right shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.rules import forms
from jobset_steps.spec.rules.quantity import amount_of
from jobset_steps.spec.rules.structure import structure_faults

__all__ = ["pod_faults"]

_PORT_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def pod_faults(
    path: str, template: Mapping[str, Any], claims: frozenset[str] = frozenset()
) -> Iterator[Fault]:
    """Faults of one pod template at `path`. `claims` are the volumes that JobSet adds for its volumeClaimPolicies."""
    shape = list(structure_faults(path, template, "PodTemplateSpec"))
    yield from shape
    if shape:
        return
    for kind in ("labels", "annotations"):
        for key, value in ((template.get("metadata") or {}).get(kind) or {}).items():
            yield from forms.label_key(f"{path}.metadata.{kind}.{key}", key)
            if kind == "labels":
                yield from forms.label_value(f"{path}.metadata.labels.{key}", value or "")
    spec = template.get("spec") or {}
    path = f"{path}.spec"
    containers, init = spec.get("containers") or [], spec.get("initContainers") or []
    if not containers:
        yield Fault(f"{path}.containers", "required", "at least one container")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        yield Fault(f"{path}.activeDeadlineSeconds", "out-of-range", "at least 1", deadline)
    yield from forms.nonnegative(
        f"{path}.terminationGracePeriodSeconds", spec.get("terminationGracePeriodSeconds")
    )
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            yield from forms.label(f"{path}.{field}", spec[field])
            message = "is JobSet's to set, so that pods find each other"
            yield Fault(f"{path}.{field}", "pod-host-name", message, spec[field], "remove it", True)
    volumes = [volume.get("name") or "" for volume in spec.get("volumes") or ()]
    yield from _volumes(f"{path}.volumes", spec.get("volumes") or [], volumes)
    names = [(f"{path}.initContainers[{i}]", c) for i, c in enumerate(init)]
    names += [(f"{path}.containers[{i}]", c) for i, c in enumerate(containers)]
    seen: dict[str, str] = {}
    for here, container in names:
        name = container.get("name") or ""
        if name in seen:
            yield Fault(f"{here}.name", "duplicate", f"is also the name of {seen[name]}", name, "each once")
        seen.setdefault(name, here)
        yield from _container(here, container, {*volumes, *claims}, init=".initContainers[" in here)


def _volumes(path: str, volumes: list[Any], names: list[str]) -> Iterator[Fault]:
    yield from forms.duplicates(path, "name", names)
    for index, volume in enumerate(volumes):
        here = f"{path}[{index}]"
        yield from forms.label(f"{here}.name", names[index])
        sources = [key for key, value in volume.items() if key != "name" and value is not None]
        if len(sources) != 1:
            message = "exactly one source"
            yield Fault(here, "volume-source", message, ", ".join(sources) or None, "such as emptyDir: {}")


def _container(path: str, container: Mapping[str, Any], volumes: set[str], *, init: bool) -> Iterator[Fault]:
    yield from forms.label(f"{path}.name", container.get("name") or "")
    if not container.get("image"):
        yield Fault(f"{path}.image", "required", "is required", passes="such as python:3.12")
    elif container["image"] != container["image"].strip():
        yield Fault(
            f"{path}.image",
            "image-form",
            "no spaces around it",
            container["image"],
            container["image"].strip(),
        )
    restart = container.get("restartPolicy")
    if restart is not None and (not init or restart != "Always"):
        message = "only Always, and only in initContainers (a sidecar)"
        yield Fault(
            f"{path}.restartPolicy", "container-restart", message, restart, "restartPolicy of the pod"
        )
    yield from _ports(f"{path}.ports", container.get("ports") or [])
    yield from _env(f"{path}.env", container.get("env") or [])
    yield from _mounts(f"{path}.volumeMounts", container.get("volumeMounts") or [], volumes)
    yield from _resources(f"{path}.resources", container.get("resources") or {})


def _ports(path: str, ports: list[Any]) -> Iterator[Fault]:
    yield from forms.duplicates(path, "name", (port["name"] for port in ports if port.get("name")))
    for index, port in enumerate(ports):
        here, number = f"{path}[{index}]", port.get("containerPort") or 0
        if not 1 <= number <= 65535:
            yield Fault(f"{here}.containerPort", "out-of-range", "from 1 to 65535", number)
        host = port.get("hostPort")
        if host is not None and host != 0 and not 1 <= host <= 65535:
            yield Fault(f"{here}.hostPort", "out-of-range", "from 1 to 65535", host)
        name = port.get("name")
        if name is not None and not _is_port_name(name):
            message = "at most 15 lower case letters, digits and '-', at least one letter, no '--'"
            yield Fault(f"{here}.name", "port-name", message, name)


def _is_port_name(name: str) -> bool:
    return (
        len(name) <= 15
        and bool(_PORT_NAME.fullmatch(name))
        and "--" not in name
        and any(c.isalpha() for c in name)
    )


def _env(path: str, env: list[Any]) -> Iterator[Fault]:
    for index, variable in enumerate(env):
        here = f"{path}[{index}]"
        yield from forms.env_name(f"{here}.name", variable.get("name") or "")
        source = variable.get("valueFrom")
        if source is None:
            continue
        if variable.get("value"):
            yield Fault(here, "one-of", "value or valueFrom, not both")
        kinds = [kind for kind, value in source.items() if value is not None]
        if len(kinds) != 1:
            yield Fault(f"{here}.valueFrom", "one-of", "exactly one source", ", ".join(kinds) or None)
        field = (source.get("fieldRef") or {}).get("fieldPath")
        if source.get("fieldRef") is not None and not _is_field_path(field or ""):
            message = "not a field that the downward API gives to env"
            passes = "such as metadata.annotations['jobset.sigs.k8s.io/restart-attempt']"
            yield Fault(f"{here}.valueFrom.fieldRef.fieldPath", "field-path", message, field, passes)


_FIELD_PATHS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)


def _is_field_path(path: str) -> bool:
    match = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    return path in _FIELD_PATHS or (match is not None and not list(forms.label_key("", match[2])))


def _mounts(path: str, mounts: list[Any], volumes: set[str]) -> Iterator[Fault]:
    yield from forms.duplicates(path, "mountPath", (mount.get("mountPath") or "" for mount in mounts))
    for index, mount in enumerate(mounts):
        here = f"{path}[{index}]"
        name = mount.get("name") or ""
        if name not in volumes:
            known = ", ".join(sorted(volumes)) or "none"
            yield Fault(
                f"{here}.name", "unknown-volume", "no such volume in the pod", name, f"volumes: {known}"
            )
        if not mount.get("mountPath"):
            yield Fault(f"{here}.mountPath", "required", "is required")
        sub = mount.get("subPath") or ""
        if sub.startswith("/") or ".." in sub.split("/"):
            yield Fault(f"{here}.subPath", "sub-path", "a relative path without '..'", sub)


def _resources(path: str, resources: Mapping[str, Any]) -> Iterator[Fault]:
    limits = resources.get("limits") or {}
    for kind in ("limits", "requests"):
        for name, value in (resources.get(kind) or {}).items():
            if (amount := amount_of(value)) is not None and amount < 0:
                yield Fault(f"{path}.{kind}.{name}", "quantity", "at least 0", value)
    for name, value in (resources.get("requests") or {}).items():
        request, limit = amount_of(value), amount_of(limits.get(name))
        if request is not None and limit is not None and request > limit:
            yield Fault(
                f"{path}.requests.{name}", "request-above-limit", f"at most the limit, {limits[name]}", value
            )
