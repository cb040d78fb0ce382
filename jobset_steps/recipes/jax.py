"""JAX over several hosts: `jax.distributed` on CPUs, GPUs and TPU slices, one process a pod.

JAX reads its coordinator from the environment and nothing else; the number of processes and the process's own come from
arguments, or, with a service account that may look around, from the API server, which counts one Job only. So the pods are
told all of it here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobset_steps.recipes.arguments import check_arguments
from jobset_steps.recipes.assemble import jobset
from jobset_steps.recipes.environment import Place
from jobset_steps.recipes.pods import PYTHON, Pods, at_least_one, program, replicated_job
from jobset_steps.recipes.presets.preset import with_presets
from jobset_steps.recipes.presets.tpu import Tpu, tpu_slice
from jobset_steps.recipes.volumes import volumes as mounted
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.jobset import FailurePolicy, JobSet, VolumeClaimPolicy
from jobset_steps.spec.resilience import FATAL_EXIT_CODES
from jobset_steps.spec.template import SpecTemplate

__all__ = ["NODES", "SLICES", "jax"]

NODES, SLICES = "node", "slice"
"""The replicated job's name: without TPUs one Job of nodes, with TPUs a Job a slice."""


def jax(
    name: str,
    *,
    image: Any,
    script: Any = None,
    module: Any = None,
    command: Sequence[Any] | None = None,
    args: Sequence[Any] = (),
    nodes: Any = None,
    tpu: Tpu | None = None,
    slices: int = 1,
    coordinator_port: int = 8476,
    env: Mapping[str, Any] | None = None,
    resources: Mapping[str, Any] | None = None,
    volumes: Mapping[str, Any] | None = None,
    checkpoints: Any = None,
    failure_policy: FailurePolicy | None = None,
    fatal_exit_codes: Sequence[int] = FATAL_EXIT_CODES,
    queue: Any = None,
    volume_claim_policies: Sequence[VolumeClaimPolicy] = (),
    pod: Mapping[str, Any] | None = None,
) -> JobSet | SpecTemplate:
    """A JobSet that runs one of `script`, `module`, `command` as one JAX process a pod.

    - nodes: how many pods, where there are no TPUs (default 1).
    - tpu, slices: as many TPU slices, a child Job each, with a pod for each of their hosts. Several slices also get
      MEGASCALE_COORDINATOR_ADDRESS, MEGASCALE_NUM_SLICES and MEGASCALE_SLICE_ID, from which libtpu and JAX know them.

    The script joins with `jobset_steps.worker.jax_distributed()`, or by itself:

        jax.distributed.initialize(num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
                                   process_id=int(os.environ["JAX_PROCESS_ID"]))

    JAX_COORDINATOR_ADDRESS, which JAX reads, names process 0 and `coordinator_port`. On TPUs initialize() needs no
    arguments, and with several slices there is no JAX_PROCESS_ID. The other arguments are those of `torchrun`, and the same
    may be upstream outputs. Raises InvalidSpec.
    """
    check_arguments(
        lists={"args": args, "command": command},
        mappings={"env": env, "resources": resources, "volumes": volumes, "pod": pod},
        fatal_exit_codes=fatal_exit_codes,
        failure_policy=failure_policy,
        volume_claim_policies=volume_claim_policies,
    )
    _check_slices(nodes, tpu, slices)
    part, count = (SLICES, tpu.hosts) if tpu else (NODES, 1 if nodes is None else nodes)
    at_least_one("nodes", count)
    words, rest = program(script, module, command, args, python=(PYTHON,))
    place = Place(
        replicated_job=part,
        coordinator=part,
        rank_offset=0,
        pods_per_job=count,
        world_size=count * slices if tpu else count,
        port=coordinator_port,
    )
    pods = Pods(
        image=image,
        env=env or {},
        framework_env=_framework(slices),
        volumes=mounted(volumes or {}, checkpoints, tuple(volume_claim_policies), name),
        pod=pod or {},
    )
    made = jobset(
        name,
        [replicated_job(pods, place, [*words, *rest], replicas=slices, count=count, resources=resources)],
        queue=queue,
        failure_policy=failure_policy,
        fatal_exit_codes=fatal_exit_codes,
        volume_claim_policies=volume_claim_policies,
    )
    return with_presets(made, tpu_slice(tpu)) if tpu else made


def _framework(slices: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "JAX_COORDINATOR_ADDRESS": "$(JOBSET_STEPS_COORDINATOR):$(JOBSET_STEPS_PORT)",
        "JAX_NUM_PROCESSES": "$(JOBSET_STEPS_WORLD_SIZE)",
    }
    if slices == 1:
        return found | {"JAX_PROCESS_ID": _annotation("batch.kubernetes.io/job-completion-index")}
    return found | {
        "MEGASCALE_COORDINATOR_ADDRESS": "$(JOBSET_STEPS_COORDINATOR)",
        "MEGASCALE_NUM_SLICES": slices,
        "MEGASCALE_SLICE_ID": _annotation("jobset.sigs.k8s.io/job-index"),
    }


def _annotation(key: str) -> dict[str, Any]:
    return {"fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}}


def _check_slices(nodes: Any, tpu: Any, slices: Any) -> None:
    if tpu is not None and not isinstance(tpu, Tpu):
        raise InvalidSpec([Fault("tpu", "type", "must be a Tpu", tpu, 'Tpu("v5e", "4x4")')])
    if tpu is not None and nodes is not None:
        message = "the slice's topology says how many hosts there are"
        raise InvalidSpec([Fault("nodes", "tpu-nodes", message, nodes, f"none, or {tpu.hosts} without tpu")])
    if type(slices) is not int or slices < 1:
        raise InvalidSpec([Fault("slices", "out-of-range", "is a whole number from 1 on", repr(slices), "2")])
    if tpu is None and slices > 1:
        raise InvalidSpec([Fault("slices", "tpu-slices", "only TPUs have slices", slices, "nodes, or a tpu")])
