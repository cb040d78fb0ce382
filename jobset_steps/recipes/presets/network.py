"""Networks between GPUs: NCCL over sockets, over InfiniBand, and over AWS's EFA."""

from __future__ import annotations

import difflib
from typing import NamedTuple

from jobset_steps.recipes.presets.gpu import SHARED_MEMORY
from jobset_steps.recipes.presets.preset import Preset
from jobset_steps.spec.fault import Fault, InvalidSpec

__all__ = ["EKS_MACHINES", "eks_gpus", "nccl_infiniband", "nccl_sockets"]


class Machine(NamedTuple):
    """An instance type with GPUs: how many of them, and how many EFA interfaces."""

    gpus: int
    efa: int


EKS_MACHINES: dict[str, Machine] = {
    "p4d.24xlarge": Machine(8, 4),
    "p4de.24xlarge": Machine(8, 4),
    "p5.48xlarge": Machine(8, 32),
    "p5e.48xlarge": Machine(8, 32),
    "p5en.48xlarge": Machine(8, 16),
    "p6-b200.48xlarge": Machine(8, 8),
}
"""Instance type -> what it has (Amazon EC2 user guide, network cards of accelerated computing instances)."""


def eks_gpus(instance_type: str) -> Preset:
    """All GPUs and EFA interfaces of one such instance a pod, and NCCL over EFA, for clusters with the EFA device plugin.

    5 GiB of huge pages, which EFA wants, and a processor, without which Kubernetes takes no huge pages; libfabric's provider
    is named, with device memory (GPUDirect RDMA) and safe forks for data loaders. The image needs libfabric and
    aws-ofi-nccl. Source: Amazon EKS user guide, "Run machine learning training on Amazon EKS with EFA", and its NCCL test.
    Raises InvalidSpec for an instance type that is not in EKS_MACHINES.
    """
    if instance_type not in EKS_MACHINES:
        close = difflib.get_close_matches(instance_type, EKS_MACHINES, n=1)
        passes = f"did you mean {close[0]}?" if close else f"one of {', '.join(EKS_MACHINES)}"
        raise InvalidSpec([Fault("instance_type", "eks-instance", "is not known", instance_type, passes)])
    machine = EKS_MACHINES[instance_type]
    devices = {
        "nvidia.com/gpu": machine.gpus,
        "vpc.amazonaws.com/efa": machine.efa,
        "hugepages-2Mi": "5120Mi",
    }
    return Preset(
        name=f"eks_gpus({instance_type!r})",
        limits=devices,
        requests={"cpu": "1", **devices},
        node_selector={"node.kubernetes.io/instance-type": instance_type},
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        env={"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": 1, "FI_EFA_FORK_SAFE": 1},
        volumes=SHARED_MEMORY,
    )


def nccl_sockets(interface: str = "eth0") -> Preset:
    """NCCL and gloo over TCP on the pod's own interface, and nothing else: no InfiniBand is looked for.

    A pod's interface is eth0 with most network plugins; without its name NCCL may choose one that the other pods cannot
    reach. Source: NCCL user guide, NCCL_SOCKET_IFNAME ("=" asks for this very name) and NCCL_IB_DISABLE.
    """
    return Preset(
        name=f"nccl_sockets({interface!r})",
        env={"NCCL_SOCKET_IFNAME": f"={interface}", "GLOO_SOCKET_IFNAME": interface, "NCCL_IB_DISABLE": 1},
    )


def nccl_infiniband(
    devices: int = 1,
    *,
    resource: str = "rdma/hca_shared_devices_a",
    adapters: str = "mlx5",
    interface: str = "eth0",
) -> Preset:
    """NCCL over InfiniBand or RoCE adapters whose names begin with `adapters`, rendezvous over `interface`.

    - resource: what the RDMA device plugin calls them, `devices` of it a pod; the default is NVIDIA Network Operator's.

    RDMA pins memory, which takes the capability IPC_LOCK. Source: NCCL user guide, NCCL_IB_HCA; k8s-rdma-shared-dev-plugin.
    """
    return Preset(
        name=f"nccl_infiniband({devices})",
        limits={resource: devices},
        env={"NCCL_IB_HCA": adapters, "NCCL_SOCKET_IFNAME": f"={interface}", "GLOO_SOCKET_IFNAME": interface},
        capabilities=["IPC_LOCK"],
    )
