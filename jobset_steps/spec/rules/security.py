"""Security contexts of pods and containers, and what another operating system forbids.

Source: the Pod API's validation (v1, Kubernetes 1.34), on a pod whose structure is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.rules import forms

__all__ = ["container_security_faults", "os_faults", "pod_security_faults"]

_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_NOT_ON_WINDOWS = ("appArmorProfile", "seLinuxOptions", "seccompProfile", "runAsUser", "runAsGroup")
_NOT_ON_WINDOWS_POD: tuple[str, ...] = (
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_NOT_ON_WINDOWS_CONTAINER: tuple[str, ...] = (
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
)


def pod_security_faults(path: str, pod: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults of a pod's security context and of its sharing with the host; `path` is the pod spec's."""
    here, security = f"{path}.securityContext", pod.get("securityContext") or {}
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from _identity(f"{here}.{name}", security.get(name))
    for index, group in enumerate(security.get("supplementalGroups") or ()):
        yield from _identity(f"{here}.supplementalGroups[{index}]", group)
    for name, known in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        # MountOption needs the feature gate SELinuxMount, which is off by default.
        ("seLinuxChangePolicy", ("Recursive",)),
    ):
        yield from forms.one_of(f"{here}.{name}", security.get(name), known)
    yield from _sysctls(f"{here}.sysctls", pod, security.get("sysctls") or [])
    yield from _profiles(here, security)
    if pod.get("shareProcessNamespace") and pod.get("hostPID"):
        message = "not together with hostPID"
        yield Fault(f"{path}.shareProcessNamespace", "host-sharing", message, True, "one of the two")
    if pod.get("hostUsers") is False:
        for name in ("hostNetwork", "hostPID", "hostIPC"):
            if pod.get(name):
                yield Fault(f"{path}.{name}", "host-sharing", "not together with hostUsers: false", True)


def container_security_faults(path: str, security: Mapping[str, Any], *, host_users: bool) -> Iterator[Fault]:
    """Faults of a container's security context at `path`."""
    for name in ("runAsUser", "runAsGroup"):
        yield from _identity(f"{path}.{name}", security.get(name))
    mount = security.get("procMount")
    yield from forms.one_of(f"{path}.procMount", mount, ("Default", "Unmasked"))
    if mount == "Unmasked" and host_users:
        yield Fault(f"{path}.procMount", "proc-mount", "Unmasked needs hostUsers: false", mount, "Default")
    if security.get("allowPrivilegeEscalation") is False:
        here = f"{path}.allowPrivilegeEscalation"
        if security.get("privileged"):
            yield Fault(here, "privileges", "false is not possible with privileged: true", False)
        if "CAP_SYS_ADMIN" in ((security.get("capabilities") or {}).get("add") or ()):
            yield Fault(here, "privileges", "false is not possible with the capability CAP_SYS_ADMIN", False)
    yield from _profiles(path, security)


def os_faults(
    path: str, pod: Mapping[str, Any], containers: list[tuple[str, Mapping[str, Any]]]
) -> Iterator[Fault]:
    """Faults of `os`, and of what that system does not have."""
    system = pod.get("os")
    if system is None:
        return
    name = system.get("name") or ""
    yield from forms.one_of(f"{path}.os.name", name, ("linux", "windows"))
    contexts = [(f"{path}.securityContext", pod.get("securityContext") or {}, _NOT_ON_WINDOWS_POD)]
    contexts += [
        (f"{p}.securityContext", c.get("securityContext") or {}, _NOT_ON_WINDOWS_CONTAINER)
        for p, c in containers
    ]
    for here, security, forbidden in contexts:
        if name == "linux" and security.get("windowsOptions") is not None:
            yield Fault(f"{here}.windowsOptions", "os", "not on linux", passes="remove it")
        if name == "windows":
            for field in (*_NOT_ON_WINDOWS, *forbidden):
                if field in security:
                    yield Fault(f"{here}.{field}", "os", "not on windows", security[field], "remove it")
    if name == "windows":
        for field in ("hostPID", "hostIPC", "hostUsers", "shareProcessNamespace", "resources"):
            if pod.get(field) or (field in pod and field not in ("hostPID", "hostIPC")):
                yield Fault(f"{path}.{field}", "os", "not on windows", pod[field], "remove it")


def _identity(path: str, value: int | None) -> Iterator[Fault]:
    if value is not None and not 0 <= value <= 2**31 - 1:
        yield Fault(path, "out-of-range", f"from 0 to {2**31 - 1}", value)


def _sysctls(path: str, pod: Mapping[str, Any], sysctls: list[Any]) -> Iterator[Fault]:
    names = [sysctl.get("name") or "" for sysctl in sysctls]
    yield from forms.duplicates(path, "name", names)
    for index, name in enumerate(names):
        here = f"{path}[{index}].name"
        if len(name) > 253 or not _SYSCTL.fullmatch(name):
            yield Fault(here, "sysctl", "lower case words joined by '.' or '/'", name)
        plain = name.replace("/", ".")
        if pod.get("hostNetwork") and plain.startswith("net."):
            yield Fault(here, "host-sharing", "not together with hostNetwork", name)
        shared = ("kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue.")
        if pod.get("hostIPC") and plain.startswith(shared):
            yield Fault(here, "host-sharing", "not together with hostIPC", name)


def _profiles(path: str, security: Mapping[str, Any]) -> Iterator[Fault]:
    for name in ("seccompProfile", "appArmorProfile"):
        profile = security.get(name)
        if profile is None:
            continue
        here, kind, local = f"{path}.{name}", profile.get("type") or "", profile.get("localhostProfile")
        yield from forms.one_of(f"{here}.type", kind, ("Localhost", "RuntimeDefault", "Unconfined"))
        where = f"{here}.localhostProfile"
        if kind != "Localhost":
            if local is not None:
                yield Fault(where, "profile", "only with type Localhost", local, "remove it")
        elif local is None:
            yield Fault(where, "required", "is required with type Localhost")
        elif name == "seccompProfile":
            yield from forms.descending(where, local)
        elif not local or local != local.strip() or len(local.encode()) > 4095:
            yield Fault(where, "profile", "no spaces around it, at most 4095 characters", local)
