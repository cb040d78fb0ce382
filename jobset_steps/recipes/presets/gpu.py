"""GPUs: how many a pod has, on which machines, and the shared memory that frameworks need beside them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from jobset_steps.recipes.presets.preset import Preset
from jobset_steps.spec.fault import Fault, InvalidSpec

__all__ = ["GKE_GPUS", "gke_gpus", "gpus"]

GKE_GPUS: dict[str, tuple[int, ...]] = {
    "nvidia-tesla-t4": (1, 2, 4),
    "nvidia-l4": (1, 2, 4, 8),
    "nvidia-tesla-a100": (1, 2, 4, 8, 16),
    "nvidia-a100-80gb": (1, 2, 4, 8),
    "nvidia-h100-80gb": (1, 2, 4, 8),
    "nvidia-h100-mega-80gb": (8,),
    "nvidia-h200-141gb": (8,),
    "nvidia-b200": (8,),
    "nvidia-gb200": (4,),
}
"""Accelerator label of GKE -> how many GPUs its machines have (GKE documentation, About GPUs)."""

SHARED_MEMORY: Mapping[str, Mapping[str, Any]] = {"/dev/shm": {"emptyDir": {"medium": "Memory"}}}
"""A container's own has 64 MB, too little for NCCL within a node and for PyTorch's data loaders. It counts as memory."""


def gpus(count: int, *, resource: str = "nvidia.com/gpu", product: str | None = None) -> Preset:
    """`count` GPUs a pod, of any kind or of one product.

    - resource: what the device plugin calls them: "nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.10gb".
    - product: NVIDIA's GPU feature discovery label nvidia.com/gpu.product, "NVIDIA-H100-80GB-HBM3" for instance.

    Nodes with GPUs are often tainted with the resource's name; the pods tolerate that. Source: NVIDIA k8s-device-plugin and
    gpu-feature-discovery. Raises InvalidSpec.
    """
    _whole("count", count)
    return Preset(
        name=f"gpus({count})",
        limits={resource: count},
        node_selector={"nvidia.com/gpu.product": product} if product else {},
        tolerations=[{"key": resource, "operator": "Exists", "effect": "NoSchedule"}],
        volumes=SHARED_MEMORY,
    )


def gke_gpus(accelerator: str, count: int) -> Preset:
    """`count` GPUs a pod on GKE's nodes with the label cloud.google.com/gke-accelerator: `accelerator`.

    The accelerators and how many GPUs their machines have are GKE_GPUS; others by `gpus` and a node selector of your
    own. Raises InvalidSpec for a count that no machine has: such a pod would be pending for ever.
    """
    if accelerator not in GKE_GPUS:
        close = difflib.get_close_matches(accelerator, GKE_GPUS, n=1)
        passes = f"did you mean {close[0]}?" if close else f"one of {', '.join(GKE_GPUS)}, or gpus(...)"
        raise InvalidSpec([Fault("accelerator", "gke-accelerator", "is not known", accelerator, passes)])
    _whole("count", count)
    if count > max(GKE_GPUS[accelerator]):
        message = f"no machine with {accelerator} has that many"
        passes = f"at most {max(GKE_GPUS[accelerator])}, and more nodes"
        raise InvalidSpec([Fault("count", "gpu-count", message, count, passes)])
    return Preset(
        name=f"gke_gpus({accelerator!r}, {count})",
        limits={"nvidia.com/gpu": count},
        node_selector={"cloud.google.com/gke-accelerator": accelerator},
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        volumes=SHARED_MEMORY,
    )


def _whole(name: str, count: Any) -> None:
    if type(count) is not int or count < 1:
        raise InvalidSpec([Fault(name, "out-of-range", "is a whole number from 1 on", repr(count), "8")])
