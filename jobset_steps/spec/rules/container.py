"""Rules of one container: names, image, ports, environment, mounts, devices, probes, lifecycle.

Source: the Pod API's validation (v1, Kubernetes 1.34), on a container whose structure is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.rules import forms
from jobset_steps.spec.rules.references import ENV_FIELDS, field_faults, key_faults, resource_field_faults
from jobset_steps.spec.rules.resources import resource_faults
from jobset_steps.spec.rules.security import container_security_faults

__all__ = ["Around", "container_faults"]

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


@dataclass(frozen=True)
class Around:
    """What a container's rules read of its pod: volumes with their sources, those dropped, claims, a few settings."""

    volumes: Mapping[str, Mapping[str, Any]]
    dropped: frozenset[str]
    claims: tuple[str, ...]
    grace: int
    never: bool
    host_users: bool


def container_faults(path: str, container: Mapping[str, Any], pod: Around, *, init: bool) -> Iterator[Fault]:
    """Faults of a container at `path`; `init` says in which list it stands."""
    yield from forms.label(f"{path}.name", container.get("name") or "")
    image = container.get("image") or ""
    if not image:
        yield Fault(f"{path}.image", "required", "is required", passes="such as python:3.12")
    elif image != image.strip():
        yield Fault(f"{path}.image", "image-form", "no spaces around it", image, image.strip())
    yield from _restart(path, container, init=init)
    yield from _ports(f"{path}.ports", container.get("ports") or [])
    yield from _env(f"{path}.env", container.get("env") or [])
    yield from _env_from(f"{path}.envFrom", container.get("envFrom") or [])
    yield from _mounts(f"{path}.volumeMounts", container, pod)
    yield from _devices(f"{path}.volumeDevices", container, pod)
    yield from resource_faults(f"{path}.resources", container.get("resources") or {}, pod.claims)
    yield from _resize(f"{path}.resizePolicy", container.get("resizePolicy") or [], never=pod.never)
    security = container.get("securityContext") or {}
    yield from container_security_faults(f"{path}.securityContext", security, host_users=pod.host_users)
    lifecycle = container.get("lifecycle")
    if lifecycle is not None and "stopSignal" in lifecycle:
        message = "is dropped without a word while the feature gate ContainerStopSignals is off, as it is by default"
        here = f"{path}.lifecycle.stopSignal"
        yield Fault(here, "dropped-field", message, lifecycle["stopSignal"], "remove it", True)
    if init and container.get("restartPolicy") != "Always":
        for name in ("lifecycle", *_PROBES):
            # A lifecycle of nothing but a stop signal goes with it.
            if name in container and not (name == "lifecycle" and list(container[name]) == ["stopSignal"]):
                message = "not for an init container, unless it is a sidecar (restartPolicy: Always)"
                yield Fault(f"{path}.{name}", "init-container", message, passes="remove it")
        return
    yield from _lifecycle(f"{path}.lifecycle", lifecycle or {}, pod.grace)
    for name in _PROBES:
        if (probe := container.get(name)) is not None:
            yield from _probe(f"{path}.{name}", probe, pod.grace)


def _restart(path: str, container: Mapping[str, Any], *, init: bool) -> Iterator[Fault]:
    restart = container.get("restartPolicy")
    if restart is not None and not (init and restart == "Always"):
        message = "only Always, and only in initContainers (a sidecar); else it is dropped without a word"
        passes = "restartPolicy of the pod"
        yield Fault(f"{path}.restartPolicy", "dropped-field", message, restart, passes, True)
    if container.get("restartPolicyRules"):
        message = "is dropped without a word while the feature gate ContainerRestartRules is off, as it is by default"
        yield Fault(f"{path}.restartPolicyRules", "dropped-field", message, passes="remove it", waivable=True)


def _ports(path: str, ports: list[Any]) -> Iterator[Fault]:
    yield from forms.duplicates(path, "name", (port["name"] for port in ports if port.get("name")))
    for index, port in enumerate(ports):
        here = f"{path}[{index}]"
        yield from forms.port(f"{here}.containerPort", port.get("containerPort") or 0)
        if port.get("hostPort"):
            yield from forms.port(f"{here}.hostPort", port["hostPort"])
        if port.get("name"):
            yield from forms.port_name(f"{here}.name", port["name"])


def _env(path: str, env: list[Any]) -> Iterator[Fault]:
    for index, variable in enumerate(env):
        here = f"{path}[{index}]"
        yield from forms.env_name(f"{here}.name", variable.get("name") or "")
        if (source := variable.get("valueFrom")) is not None:
            if variable.get("value"):
                yield Fault(here, "one-of", "value or valueFrom, not both")
            yield from _env_source(f"{here}.valueFrom", source)


def _env_source(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    if "fileKeyRef" in source:
        message = "is dropped without a word while the feature gate EnvFiles is off, as it is by default"
        yield Fault(f"{path}.fileKeyRef", "dropped-field", message, passes="remove it", waivable=True)
    kinds = [kind for kind in source if kind != "fileKeyRef"]
    if len(kinds) != 1:
        yield Fault(path, "one-of", "exactly one source", ", ".join(kinds) or None)
    if (reference := source.get("fieldRef")) is not None:
        yield from field_faults(f"{path}.fieldRef", reference, ENV_FIELDS)
    if (reference := source.get("resourceFieldRef")) is not None:
        yield from resource_field_faults(f"{path}.resourceFieldRef", reference, file=False)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if (reference := source.get(kind)) is not None:
            yield from key_faults(f"{path}.{kind}", reference)


def _env_from(path: str, sources: list[Any]) -> Iterator[Fault]:
    for index, source in enumerate(sources):
        here = f"{path}[{index}]"
        if source.get("prefix"):
            yield from forms.env_name(f"{here}.prefix", source["prefix"])
        kinds = [kind for kind in ("configMapRef", "secretRef") if kind in source]
        if len(kinds) != 1:
            yield Fault(here, "one-of", "exactly one of configMapRef and secretRef", ", ".join(kinds) or None)
        for kind in kinds:
            yield from forms.name_base(f"{here}.{kind}.name", source[kind].get("name") or "")


def _mounts(path: str, container: Mapping[str, Any], pod: Around) -> Iterator[Fault]:
    devices = container.get("volumeDevices") or []
    names, paths = ({device.get(key) or "" for device in devices} for key in ("name", "devicePath"))
    privileged = bool((container.get("securityContext") or {}).get("privileged"))
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        here = f"{path}[{index}]"
        name, where = mount.get("name") or "", mount.get("mountPath") or ""
        if name in pod.dropped:
            continue
        if name not in pod.volumes:
            known = ", ".join(sorted(pod.volumes)) or "none"
            yield Fault(
                f"{here}.name", "unknown-volume", "no such volume in the pod", name, f"volumes: {known}"
            )
        yield from forms.required(here, mount, "mountPath")
        if name in names or where in paths:
            yield Fault(here, "mount-and-device", "is in volumeDevices too", name, "one of the two")
        sub, expression = mount.get("subPath") or "", mount.get("subPathExpr") or ""
        yield from forms.descending(f"{here}.subPath", sub)
        yield from forms.descending(f"{here}.subPathExpr", expression)
        if sub and expression:
            yield Fault(f"{here}.subPathExpr", "one-of", "subPath or subPathExpr, not both", expression)
        yield from _propagation(here, mount, privileged=privileged)


def _propagation(path: str, mount: Mapping[str, Any], *, privileged: bool) -> Iterator[Fault]:
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    known = ("Bidirectional", "HostToContainer", "None")
    yield from forms.one_of(f"{path}.mountPropagation", propagation, known)
    if propagation == "Bidirectional" and not privileged:
        message = "Bidirectional is for privileged containers"
        yield Fault(f"{path}.mountPropagation", "mount-propagation", message, propagation, "HostToContainer")
    here = f"{path}.recursiveReadOnly"
    yield from forms.one_of(here, recursive, ("Disabled", "Enabled", "IfPossible"))
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield Fault(here, "recursive-read-only", "needs readOnly: true", recursive, "readOnly: true")
        if propagation not in (None, "None"):
            yield Fault(here, "recursive-read-only", "not together with mountPropagation", recursive)


def _devices(path: str, container: Mapping[str, Any], pod: Around) -> Iterator[Fault]:
    devices = container.get("volumeDevices") or []
    yield from forms.duplicates(path, "name", (device.get("name") or "" for device in devices))
    for index, device in enumerate(devices):
        here, name, where = f"{path}[{index}]", device.get("name") or "", device.get("devicePath") or ""
        source = pod.volumes.get(name)
        if source is None:
            known = ", ".join(sorted(pod.volumes)) or "none"
            yield Fault(
                f"{here}.name", "unknown-volume", "no such volume in the pod", name, f"volumes: {known}"
            )
        elif not source.keys() & {"persistentVolumeClaim", "ephemeral"}:
            message = "only a volume of a claim can be a device"
            yield Fault(f"{here}.name", "device-volume", message, name, "persistentVolumeClaim or ephemeral")
        if not where or ".." in where.split("/"):
            yield Fault(f"{here}.devicePath", "path-form", "a path without '..'", where)


def _resize(path: str, policies: list[Any], *, never: bool) -> Iterator[Fault]:
    yield from forms.duplicates(
        path, "resourceName", (policy.get("resourceName") or "" for policy in policies)
    )
    for index, policy in enumerate(policies):
        here = f"{path}[{index}]"
        yield from forms.one_of(f"{here}.resourceName", policy.get("resourceName") or "", ("cpu", "memory"))
        restart = policy.get("restartPolicy") or ""
        yield from forms.one_of(f"{here}.restartPolicy", restart, ("NotRequired", "RestartContainer"))
        if never and restart == "RestartContainer":
            message = "only NotRequired in a pod that never restarts"
            yield Fault(f"{here}.restartPolicy", "resize-restart", message, restart, "NotRequired")


def _lifecycle(path: str, lifecycle: Mapping[str, Any], grace: int) -> Iterator[Fault]:
    for name in ("postStart", "preStop"):
        if (handler := lifecycle.get(name)) is not None:
            yield from _handler(f"{path}.{name}", handler, ("exec", "httpGet", "tcpSocket", "sleep"), grace)


def _probe(path: str, probe: Mapping[str, Any], grace: int) -> Iterator[Fault]:
    yield from _handler(path, probe, ("exec", "httpGet", "tcpSocket", "grpc"), grace)
    for name in (
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ):
        yield from forms.nonnegative(f"{path}.{name}", probe.get(name))
    readiness = path.endswith(".readinessProbe")
    if not readiness and probe.get("successThreshold") not in (None, 0, 1):
        yield Fault(
            f"{path}.successThreshold", "probe-threshold", "only 1 here", probe["successThreshold"], "1"
        )
    own = probe.get("terminationGracePeriodSeconds")
    if own is not None and (readiness or own < 1):
        message = "not for a readiness probe" if readiness else "at least 1"
        yield Fault(f"{path}.terminationGracePeriodSeconds", "probe-grace", message, own)


def _handler(path: str, handler: Mapping[str, Any], known: tuple[str, ...], grace: int) -> Iterator[Fault]:
    kinds = [kind for kind in known if kind in handler]
    if len(kinds) != 1:
        yield Fault(path, "one-of", f"exactly one of {', '.join(known)}", ", ".join(kinds) or None)
    for kind in kinds:
        action, here = handler[kind], f"{path}.{kind}"
        if kind == "exec":
            yield from forms.required(here, action, "command")
        elif kind == "sleep":
            seconds = action.get("seconds") or 0
            if not 0 <= seconds <= grace:
                yield Fault(
                    f"{here}.seconds", "out-of-range", f"from 0 to the grace period, {grace}", seconds
                )
        elif kind == "grpc":
            yield from forms.port(f"{here}.port", action.get("port") or 0)
        else:
            yield from _port(f"{here}.port", action.get("port", 0))
            for index, header in enumerate(action.get("httpHeaders") or ()):
                yield from forms.header_name(f"{here}.httpHeaders[{index}].name", header.get("name") or "")


def _port(path: str, port: Any) -> Iterator[Fault]:
    if isinstance(port, str):
        yield from forms.port_name(path, port)
    else:
        yield from forms.port(path, port)
