"""PyTorch's DistributedDataParallel without torchrun: the ranks come from the environment (`init_method="env://"`).

One Job of `nodes` pods, `nproc_per_node` processes each. For training code that wants plain processes, and for other
frameworks that read RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobset_steps.recipes.arguments import check_arguments
from jobset_steps.recipes.assemble import jobset
from jobset_steps.recipes.environment import Place, text
from jobset_steps.recipes.pods import PYTHON, Pods, at_least_one, program, replicated_job, source
from jobset_steps.recipes.volumes import volumes as mounted
from jobset_steps.spec.jobset import FailurePolicy, JobSet, VolumeClaimPolicy
from jobset_steps.spec.resilience import FATAL_EXIT_CODES
from jobset_steps.spec.template import SpecTemplate

__all__ = ["NODES", "ddp"]

NODES = "node"
"""The replicated job's name."""


def ddp(
    name: str,
    *,
    image: Any,
    script: Any = None,
    module: Any = None,
    command: Sequence[Any] | None = None,
    args: Sequence[Any] = (),
    nodes: Any = 1,
    nproc_per_node: Any = 1,
    master_port: int = 29500,
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
    """A JobSet that runs one of `script`, `module`, `command` as nodes x nproc_per_node plain processes.

    Each process has RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR and MASTER_PORT, which
    torch.distributed.init_process_group and Lightning read by themselves; rank 0 is the first process of the first pod,
    in every attempt. A pod ends with the exit code of its process that failed first; the others of the pod have 30 s
    after SIGTERM. The other arguments are those of `torchrun`, and the same may be upstream outputs. Raises InvalidSpec.
    """
    check_arguments(
        lists={"args": args, "command": command},
        mappings={"env": env, "resources": resources, "volumes": volumes, "pod": pod},
        fatal_exit_codes=fatal_exit_codes,
        failure_policy=failure_policy,
        volume_claim_policies=volume_claim_policies,
    )
    at_least_one("nodes", nodes)
    at_least_one("nproc_per_node", nproc_per_node)
    words, rest = program(script, module, command, args, python=(PYTHON,))
    place = Place(
        replicated_job=NODES,
        coordinator=NODES,
        rank_offset=0,
        pods_per_job=nodes,
        world_size=nodes,
        port=master_port,
    )
    pods = Pods(
        image=image,
        env=env or {},
        framework_env={"MASTER_ADDR": "$(JOBSET_STEPS_COORDINATOR)", "MASTER_PORT": "$(JOBSET_STEPS_PORT)"},
        volumes=mounted(volumes or {}, checkpoints, tuple(volume_claim_policies), name),
        pod=pod or {},
    )
    started = [PYTHON, "-c", source("processes.py"), text(nproc_per_node), *words, *rest]
    return jobset(
        name,
        [replicated_job(pods, place, started, replicas=1, count=nodes, resources=resources)],
        queue=queue,
        failure_policy=failure_policy,
        fatal_exit_codes=fatal_exit_codes,
        volume_claim_policies=volume_claim_policies,
    )
