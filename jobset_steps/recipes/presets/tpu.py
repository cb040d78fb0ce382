"""TPU slices on GKE: hosts and chips from a version and a topology such as "4x4" or "2x2x4".

A topology that no slice has would leave its pods pending for ever; it is refused with the nearest that there is. Source of
the numbers: GKE documentation, Plan TPUs in GKE, and Cloud TPU documentation, TPU v4, v5e, v5p, v6e and Ironwood (TPU7x).
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from typing import NamedTuple

from jobset_steps.recipes.presets.placement import EXCLUSIVE
from jobset_steps.recipes.presets.preset import Preset
from jobset_steps.spec.fault import Fault, InvalidSpec

__all__ = ["TPU_VERSIONS", "Tpu", "tpu_slice"]

NODE_POOL = "cloud.google.com/gke-nodepool"
"""A slice of several hosts is one node pool of GKE."""
_FLAT = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_SMALL = ("2x2x1", "2x2x2", "2x2x4", "2x4x4")
_TOPOLOGY = re.compile(r"[1-9][0-9]*(x[1-9][0-9]*)+")


class Version(NamedTuple):
    """One version of TPU: GKE's name for it, the topologies that are listed, and the rule of larger ones.

    `largest` is the number of chips of the largest slice of cubes of 4x4x4, 0 where there are none.
    """

    accelerator: str
    listed: tuple[str, ...]
    largest: int


TPU_VERSIONS: dict[str, Version] = {
    "v4": Version("tpu-v4-podslice", _SMALL, 4096),
    "v5e": Version("tpu-v5-lite-podslice", _FLAT, 0),
    "v5p": Version("tpu-v5p-slice", _SMALL, 6144),
    "v6e": Version("tpu-v6e-slice", _FLAT, 0),
    "7x": Version("tpu7x", ("1x1x1", *_SMALL), 9216),
}


@dataclass(frozen=True)
class Tpu:
    """A slice: version ("v5e", or GKE's accelerator name "tpu-v5-lite-podslice"), topology ("4x4").

    `chips_per_host` is 4, or all of a slice of one chip; v5e and v6e have hosts of 8 too, for 2x4. Raises InvalidSpec.
    """

    version: str
    topology: str
    chips_per_host: int = 0

    def __post_init__(self) -> None:
        short = {version.accelerator: name for name, version in TPU_VERSIONS.items()}
        name = short.get(self.version, self.version)
        if name not in TPU_VERSIONS:
            close = difflib.get_close_matches(str(name), [*TPU_VERSIONS, *short], n=1)
            passes = f"did you mean {close[0]}?" if close else f"one of {', '.join(TPU_VERSIONS)}"
            raise InvalidSpec([Fault("tpu.version", "tpu-version", "is unknown", self.version, passes)])
        object.__setattr__(self, "version", name)
        if fault := _topology_fault(name, self.topology):
            raise InvalidSpec([fault])
        usual = 1 if self.chips == 1 else 4
        allowed = (4, 8) if self.topology == "2x4" else (usual,)
        chosen = self.chips_per_host or usual
        if chosen not in allowed:
            passes = " or ".join(map(str, allowed))
            message = f"no machine of {name} for {self.topology} has that many"
            raise InvalidSpec([Fault("tpu.chips_per_host", "tpu-host", message, chosen, passes)])
        object.__setattr__(self, "chips_per_host", chosen)

    @property
    def chips(self) -> int:
        """Of the whole slice."""
        return math.prod(map(int, self.topology.split("x")))

    @property
    def hosts(self) -> int:
        """Nodes of the slice, and so pods."""
        return self.chips // self.chips_per_host


def tpu_slice(tpu: Tpu) -> Preset:
    """Each child Job is one such slice: a pod a host with all its chips, on nodes of this version and topology.

    A slice of several hosts gets a node pool of its own (exclusive placement over cloud.google.com/gke-nodepool): pods of
    one slice on two pools could not talk over the chips' own links. GKE itself tolerates the TPU taint for such pods and
    sets TPU_WORKER_ID and TPU_WORKER_HOSTNAMES. Source: GKE documentation, Deploy TPU workloads, Deploy TPU Multislices.
    """
    version = TPU_VERSIONS[tpu.version]
    return Preset(
        name=f"a slice of {tpu.topology} {tpu.version}",
        limits={"google.com/tpu": tpu.chips_per_host},
        node_selector={
            "cloud.google.com/gke-tpu-accelerator": version.accelerator,
            "cloud.google.com/gke-tpu-topology": tpu.topology,
        },
        placement={EXCLUSIVE: NODE_POOL} if tpu.hosts > 1 else {},
        pods_per_job=tpu.hosts,
    )


def _topology_fault(name: str, topology: object) -> Fault | None:
    version = TPU_VERSIONS[name]
    known = ", ".join(version.listed)
    example = f"{known}, or larger ones in multiples of 4 such as 4x4x8" if version.largest else known
    path, rule = "tpu.topology", "tpu-topology"
    if not isinstance(topology, str) or not _TOPOLOGY.fullmatch(topology):
        return Fault(path, rule, "is written as chips by dimension", topology, f"one of {example}")
    if topology in version.listed:
        return None
    sides = sorted(map(int, topology.split("x")))
    if not version.largest or len(sides) != 3:
        wanted = len(version.listed[0].split("x"))
        if len(sides) != wanted:
            message = f"{name} slices have {wanted} dimensions"
            return Fault(path, rule, message, topology, f"one of {example}")
        return Fault(path, rule, f"{name} has no such slice", topology, f"one of {example}")
    # Beyond the small ones a slice is made of whole cubes of 4x4x4, its sides in order of size.
    cubes = "x".join(str(max(4, math.ceil(side / 4) * 4)) for side in sides)
    if topology != cubes:
        in_order = "x".join(map(str, sides))
        near = in_order if in_order in (*version.listed, cubes) else cubes
        message = f"a {name} slice beyond 2x4x4 has sides in multiples of 4, the smallest first"
        return Fault(path, rule, message, topology, f"such as {near}; small ones: {known}")
    if math.prod(sides) > version.largest:
        message = f"the largest {name} slice has {version.largest} chips"
        return Fault(
            path, rule, message, f"{topology} = {math.prod(sides)}", "a smaller one, and several slices"
        )
    return None
