"""Where pods of one Job or of one JobSet stand to each other: exclusive topology domains, and Kueue's topology requests."""

from __future__ import annotations

import re
from typing import Any, Literal

from jobset_steps.recipes.presets.preset import Preset
from jobset_steps.spec.fault import Fault, InvalidSpec

__all__ = ["EXCLUSIVE", "exclusive_placement", "kueue_topology"]

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_KUEUE = "kueue.x-k8s.io/podset-"
_LABEL = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def exclusive_placement(topology: str) -> Preset:
    """One child Job a topology domain, no other beside it: all its pods on nodes that have one value of the label.

    `topology` is a node label: "cloud.google.com/gke-nodepool" for TPU slices, "topology.kubernetes.io/zone", a rack's.
    Source: JobSet, annotation alpha.jobset.sigs.k8s.io/exclusive-topology; it holds within one priority. Not together with
    Kueue's topology requests, which place pods themselves.
    """
    _label("topology", topology)
    return Preset(name=f"exclusive_placement({topology!r})", placement={EXCLUSIVE: topology})


def kueue_topology(
    level: str | None,
    *,
    mode: Literal["required", "preferred"] = "required",
    slice_level: str | None = None,
    slice_size: int | None = None,
) -> Preset:
    """Kueue's topology-aware scheduling for the pods of a replicated job, in a queue whose flavour has a topology.

    - level: a node label of that topology; all pods of the replicated job in one of its domains ("required"), or as few
      domains as it takes ("preferred"). None with neither slice: anywhere with room, counted node by node.
    - slice_level, slice_size: each `slice_size` pods, such as one child Job's, in one domain of this level.

    Source: Kueue, topology-aware scheduling, annotations kueue.x-k8s.io/podset-{required,preferred,unconstrained}-topology,
    podset-slice-required-topology, podset-slice-size. Raises InvalidSpec.
    """
    annotations: dict[str, str] = {}
    if mode not in ("required", "preferred"):
        raise InvalidSpec([Fault("mode", "enum", "is unknown", mode, '"required" or "preferred"')])
    if level is not None:
        _label("level", level)
        annotations[f"{_KUEUE}{mode}-topology"] = level
    if (slice_level is None) != (slice_size is None):
        message = "slice_level and slice_size go together"
        raise InvalidSpec(
            [Fault("slice_size", "topology-slice", message, slice_size, "both of them, or none")]
        )
    if slice_level is not None:
        _label("slice_level", slice_level)
        if type(slice_size) is not int or slice_size < 1:
            message = "is a whole number of pods from 1 on"
            raise InvalidSpec([Fault("slice_size", "out-of-range", message, repr(slice_size), "4")])
        annotations[f"{_KUEUE}slice-required-topology"] = slice_level
        annotations[f"{_KUEUE}slice-size"] = str(slice_size)
    if not annotations:
        annotations[f"{_KUEUE}unconstrained-topology"] = "true"
    return Preset(name=f"kueue_topology({level!r})", pod_annotations=annotations)


def _label(name: str, value: Any) -> None:
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        passes = 'for instance "topology.kubernetes.io/zone"'
        raise InvalidSpec([Fault(name, "label-key", "is no label of a node", value, passes)])
