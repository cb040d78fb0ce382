"""What this machine cannot give a JobSet that a Kubernetes cluster would: named in words, before anything starts.

`cannot_run` are faults: no pod of it could work here, or only by chance. `cannot_give` are notices: the JobSet runs,
without what is named. Both are pure, but for a look at which directories and variables are there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jobset_steps.clusters.local.network import has_own_addresses
from jobset_steps.spec.fault import Fault

__all__ = ["cannot_give", "cannot_run"]

_KNOWN_VOLUMES = ("emptyDir", "persistentVolumeClaim", "hostPath")
_PLAIN_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_PLACING = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "nodeName", "runtimeClassName",
            "schedulingGates", "priorityClassName", "hostNetwork", "resourceClaims")  # fmt: skip
_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def cannot_run(manifest: Mapping[str, Any]) -> tuple[Fault, ...]:
    """Why this JobSet cannot run on this machine at all. Empty if it can."""
    return tuple(_faults(manifest))


def _faults(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    for path, _, spec in _pods(manifest):
        for where, container in _containers(path, spec):
            if not container.get("command"):
                yield Fault(
                    f"{where}.command",
                    "local-command",
                    "the local cluster runs commands, not images, so an image's own entry point does not exist",
                    passes='say what to run, for instance command: ["python", "train.py"]',
                )
            for index, mount in enumerate(container.get("volumeMounts") or ()):
                if not str(mount.get("mountPath") or "").strip("/"):
                    yield Fault(
                        f"{where}.volumeMounts[{index}].mountPath",
                        "local-mount",
                        "the local cluster cannot put a volume in place of the root directory",
                        given=mount.get("mountPath"),
                        passes="a directory below it",
                    )
        for index, volume in enumerate(spec.get("volumes") or ()):
            host = volume.get("hostPath")
            if (
                host
                and not Path(str(host["path"])).exists()
                and "OrCreate" not in str(host.get("type") or "")
            ):
                yield Fault(
                    f"{path}.volumes[{index}].hostPath.path",
                    "local-host-path",
                    "no such path on this machine",
                    given=host["path"],
                    passes="make it, or use type: DirectoryOrCreate",
                )


def cannot_give(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """What pods of this JobSet do without on this machine, one sentence each, each once."""
    return tuple(dict.fromkeys(_notices(manifest)))


def _notices(manifest: Mapping[str, Any]) -> Iterator[str]:
    pods = tuple(_pods(manifest))
    images = sorted(
        {str(c["image"]) for path, _, spec in pods for _, c in _containers(path, spec) if c.get("image")}
    )
    if images:
        yield f"images are not used ({', '.join(images)}): commands run on this machine, python is {sys.executable}"
    if not has_own_addresses():
        yield "all pods share 127.0.0.1 on this system: two that listen on the same port clash"
    for path, name, spec in pods:
        for where, container in _containers(path, spec):
            yield from _of_container(f"{name}/{container.get('name', where)}", container)
        for volume in spec.get("volumes") or ():
            kind = next((key for key in volume if key not in ("name", *_KNOWN_VOLUMES)), None)
            if kind is not None:
                yield f"{name}: volume {volume.get('name')} ({kind}) is an empty directory here"
        if placing := [key for key in _PLACING if spec.get(key)]:
            yield f"{name}: {', '.join(placing)} not used: there is one node, this machine"
        if any(spec.get("securityContext") or {}):
            yield f"{name}: securityContext is not used: pods run as you"
    for meta in (
        manifest.get("metadata") or {},
        *(r["template"].get("metadata") or {} for r in _replicated(manifest)),
    ):
        if _EXCLUSIVE in (meta.get("annotations") or {}):
            yield "exclusive placement is not used: there is one node, this machine"
    if any(
        key == "kueue.x-k8s.io/queue-name" for key in (manifest.get("metadata") or {}).get("labels") or {}
    ):
        yield "queues are not used: the JobSet starts at once"


def _of_container(name: str, container: Mapping[str, Any]) -> Iterator[str]:
    resources = container.get("resources") or {}
    wanted = {
        key: amount
        for kind in ("requests", "limits")
        for key, amount in (resources.get(kind) or {}).items()
        if key not in _PLAIN_RESOURCES and not str(key).startswith("hugepages-")
    }
    for key, amount in wanted.items():
        yield f"{name}: {key} ({amount}) is not given: a process sees the devices that this machine has"
    for entry in container.get("env") or ():
        source = entry.get("valueFrom") or {}
        kind = next((k for k in ("secretKeyRef", "configMapKeyRef", "fileKeyRef") if k in source), None)
        if kind is None:
            continue
        if entry["name"] in os.environ:
            yield f"{name}: {entry['name']} is taken from your environment, not from {_source(kind, source)}"
        else:
            yield (
                f"{name}: {entry['name']} is not set: {_source(kind, source)} does not exist here"
                f" (export {entry['name']} to give it)"
            )
    for source in container.get("envFrom") or ():
        kind = next((k for k in ("secretRef", "configMapRef") if k in source), "envFrom")
        yield f"{name}: variables from {_source(kind, source)} are not set: it does not exist here"
    if "exec" in (container.get("readinessProbe") or {}) or "grpc" in (container.get("readinessProbe") or {}):
        yield f"{name}: its readinessProbe is not asked (only httpGet and tcpSocket are): it is ready while it runs"
    if asked := [key for key in ("livenessProbe", "startupProbe", "lifecycle") if container.get(key)]:
        yield f"{name}: {', '.join(asked)} not used"
    work = str(container.get("workingDir") or "")
    mounts = [str(mount.get("mountPath")).rstrip("/") for mount in container.get("volumeMounts") or ()]
    if work and not Path(work).is_dir() and not any(f"{work}/".startswith(f"{mount}/") for mount in mounts):
        yield f"{name}: workingDir {work} does not exist on this machine: it runs in {Path.cwd()}"


def _source(kind: str, source: Mapping[str, Any]) -> str:
    what = {"secret": "the Secret", "config": "the ConfigMap"}.get(kind[:6], "the file")
    return f"{what} {(source.get(kind) or {}).get('name', '')}".rstrip()


def _replicated(manifest: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    return tuple((manifest.get("spec") or {}).get("replicatedJobs") or ())


def _pods(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for index, replicated in enumerate(_replicated(manifest)):
        job = (replicated.get("template") or {}).get("spec") or {}
        spec = (job.get("template") or {}).get("spec") or {}
        yield f"spec.replicatedJobs[{index}].template.spec.template.spec", str(replicated.get("name")), spec


def _containers(path: str, spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield f"{path}.{kind}[{index}]", container
