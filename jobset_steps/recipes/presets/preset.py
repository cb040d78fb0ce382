"""What a machine, a network or a placement asks of pods, as a value with a name; and how it gets into a spec.

A preset never overrules an author: environment, volumes, cpu and memory that the spec has already stay. Where both name a
device, a node label or a placement and differ, that is a fault, for one of them is wrong.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from jobset_steps.recipes.pods import CONTAINER
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.template import SpecTemplate

__all__ = ["Preset", "with_presets"]

Spec = TypeVar("Spec", bound=JobSet | SpecTemplate)


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Parts of a pod template, in the fields' own terms. Make one of your own where none fits."""

    name: str
    """How faults call it."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    requests: Mapping[str, Any] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, str]] = ()
    env: Mapping[str, Any] = field(default_factory=dict)
    volumes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Mount path -> volume source."""
    capabilities: Sequence[str] = ()
    """Linux capabilities to add."""
    pod_annotations: Mapping[str, str] = field(default_factory=dict)
    placement: Mapping[str, str] = field(default_factory=dict)
    """Annotations that JobSet reads: on the JobSet itself, or on the replicated jobs where only some are meant."""
    pods_per_job: int | None = None
    """How many pods each child Job must have, None for any number."""


def with_presets(spec: Spec, *presets: Preset, replicated_jobs: Sequence[str] = ()) -> Spec:
    """The spec with the presets in the pods of `replicated_jobs`, of all where none is named.

    They go to the container that trains: the one that recipes make, else the first. Raises InvalidSpec where a preset and
    the spec contradict each other, and for a replicated job that there is none of.
    """
    tree = copy.deepcopy(dict(spec.tree) if isinstance(spec, SpecTemplate) else spec.to_dict())
    jobs = tree["spec"].get("replicatedJobs") or []
    known = [job.get("name") for job in jobs]
    faults = [
        Fault("replicated_jobs", "unknown-job", "no replicated job of this name", name, f"one of {known}")
        for name in replicated_jobs
        if name not in known
    ]
    for preset in presets:
        for index, job in enumerate(jobs):
            if not replicated_jobs or job.get("name") in replicated_jobs:
                path = f"spec.replicatedJobs[{index}].template"
                faults += _into_job(preset, path, job["template"])
                if replicated_jobs:
                    meta = job["template"].setdefault("metadata", {})
                    faults += _same(
                        preset, f"{path}.metadata.annotations", meta, "annotations", preset.placement
                    )
        if not replicated_jobs:
            meta = tree.setdefault("metadata", {})
            faults += _same(preset, "metadata.annotations", meta, "annotations", preset.placement)
    if faults:
        raise InvalidSpec(faults)
    made = SpecTemplate(tree, spec.holes) if isinstance(spec, SpecTemplate) else JobSet.from_dict(tree)
    return cast(Spec, made)


def _into_job(preset: Preset, path: str, template: dict[str, Any]) -> Iterator[Fault]:
    job = template["spec"]
    pods = job.get("parallelism", 1)
    if preset.pods_per_job is not None and isinstance(pods, int) and pods != preset.pods_per_job:
        message = f"{preset.name} has {preset.pods_per_job} hosts, one pod each"
        yield Fault(f"{path}.spec.parallelism", "preset-pods", message, pods, str(preset.pods_per_job))
    pod = job["template"]
    meta = pod.setdefault("metadata", {})
    yield from _same(
        preset, f"{path}.spec.template.metadata.annotations", meta, "annotations", preset.pod_annotations
    )
    spec, path = pod["spec"], f"{path}.spec.template.spec"
    yield from _same(preset, f"{path}.nodeSelector", spec, "nodeSelector", preset.node_selector)
    for toleration in preset.tolerations:
        if toleration not in spec.get("tolerations", ()):
            spec["tolerations"] = [*spec.get("tolerations", ()), dict(toleration)]
    containers = spec["containers"]
    number = next((at for at, one in enumerate(containers) if one.get("name") == CONTAINER), 0)
    container, path = containers[number], f"{path}.containers[{number}]"
    for kind, amounts in (("limits", preset.limits), ("requests", preset.requests)):
        yield from _amounts(preset, f"{path}.resources", container, kind, amounts)
    env = container.setdefault("env", []) if preset.env else []
    have = {variable.get("name") for variable in env}
    env.extend({"name": name, "value": str(value)} for name, value in preset.env.items() if name not in have)
    if preset.capabilities:
        added = container.setdefault("securityContext", {}).setdefault("capabilities", {})
        added["add"] = [
            *added.get("add", ()),
            *(one for one in preset.capabilities if one not in added.get("add", ())),
        ]
    for mount, source in preset.volumes.items():
        if mount not in {one.get("mountPath") for one in container.get("volumeMounts", ())}:
            name = mount.strip("/").replace("/", "-")
            container["volumeMounts"] = [
                *container.get("volumeMounts", ()),
                {"name": name, "mountPath": mount},
            ]
            spec["volumes"] = [*spec.get("volumes", ()), {"name": name, **source}]


def _amounts(
    preset: Preset, path: str, container: dict[str, Any], kind: str, amounts: Mapping[str, Any]
) -> Iterator[Fault]:
    """Devices must agree; cpu and memory are the author's where there are any."""
    have = (container.get("resources") or {}).get(kind) or {}
    for name, amount in amounts.items():
        if name in have and name not in ("cpu", "memory") and str(have[name]) != str(amount):
            message = f"{preset.name} asks for another amount"
            yield Fault(f"{path}.{kind}[{name!r}]", "preset-conflict", message, have[name], str(amount))
    if amounts:
        resources = {**(container.get("resources") or {})}
        container["resources"] = {**resources, kind: {**amounts, **have}}


def _same(
    preset: Preset, path: str, holder: dict[str, Any], key: str, wanted: Mapping[str, str]
) -> Iterator[Fault]:
    """Set what is wanted in a mapping of texts; what is there with another value is a fault."""
    have = holder.get(key) or {}
    for name, value in wanted.items():
        if name in have and have[name] != value:
            yield Fault(
                f"{path}[{name!r}]",
                "preset-conflict",
                f"{preset.name} needs another value",
                have[name],
                value,
            )
    if wanted:
        holder[key] = {**wanted, **have}
