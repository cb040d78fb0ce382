"""Hardware, networks and placements by name: what each asks of the pods, with its source.

    presets.with_presets(torchrun("train", ...), presets.eks_gpus("p5.48xlarge"), presets.kueue_topology("rack"))

A preset goes into any JobSet, whether a recipe made it or a person wrote it, and into a SpecTemplate.
"""

from jobset_steps.recipes.presets.gpu import GKE_GPUS, gke_gpus, gpus
from jobset_steps.recipes.presets.network import EKS_MACHINES, eks_gpus, nccl_infiniband, nccl_sockets
from jobset_steps.recipes.presets.placement import exclusive_placement, kueue_topology
from jobset_steps.recipes.presets.preset import Preset, with_presets
from jobset_steps.recipes.presets.tpu import TPU_VERSIONS, Tpu, tpu_slice

__all__ = [
    "EKS_MACHINES",
    "GKE_GPUS",
    "TPU_VERSIONS",
    "Preset",
    "Tpu",
    "eks_gpus",
    "exclusive_placement",
    "gke_gpus",
    "gpus",
    "kueue_topology",
    "nccl_infiniband",
    "nccl_sockets",
    "tpu_slice",
    "with_presets",
]
