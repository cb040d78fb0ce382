"""PyTorch under torchrun: one Job of `nodes` pods, one torchrun agent a pod, rank 0's pod as rendezvous."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobset_steps.recipes.arguments import check_arguments
from jobset_steps.recipes.assemble import jobset
from jobset_steps.recipes.environment import Place, text
from jobset_steps.recipes.pods import PYTHON, Pods, at_least_one, program, replicated_job, source
from jobset_steps.recipes.volumes import volumes as mounted
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.jobset import FailurePolicy, JobSet, VolumeClaimPolicy
from jobset_steps.spec.resilience import FATAL_EXIT_CODES
from jobset_steps.spec.template import SpecTemplate

__all__ = ["NODES", "torchrun"]

NODES = "node"
"""The replicated job's name."""


def torchrun(
    name: str,
    *,
    image: Any,
    script: Any = None,
    module: Any = None,
    command: Sequence[Any] | None = None,
    args: Sequence[Any] = (),
    nodes: Any = 1,
    nproc_per_node: Any = 1,
    rendezvous: str = "static",
    rendezvous_port: int = 29500,
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
    """A JobSet that runs one of `script`, `module`, `command` as nodes x nproc_per_node processes under torchrun.

    - rendezvous: "static" gives pod i the group rank i and is the default; "c10d" leaves the ranks to torchrun. Either
      way the first pod hosts it, and all pods must be there within 900 s of the first.
    - volumes: mount path -> "pvc://claim/sub/path", or a volume source as in a manifest. More than 64 MB of shared
      memory, which data loaders need: {"/dev/shm": {"emptyDir": {"medium": "Memory"}}}.
    - checkpoints: "pvc://claim/sub/path" or an object URI; the pods find this step's own directory in it in
      JOBSET_STEPS_CHECKPOINT_DIR, the same in every attempt and retry.
    - fatal_exit_codes: exit codes of the training that no restart can mend.
    - queue: Kueue's local queue. volume_claim_policies: claims made for this JobSet, each mounted at /<template name>.
    - pod: further fields of the pod's spec (nodeSelector, tolerations, ...).

    There is one restart authority, the JobSet: torchrun's own restarts are off, and the attempt is part of the rendezvous
    id, so that a straggler of an earlier attempt never joins a later one. image, script, args, env, nodes,
    nproc_per_node, checkpoints and queue may be upstream outputs; then a SpecTemplate comes back. Raises InvalidSpec.
    """
    if rendezvous not in ("static", "c10d"):
        raise InvalidSpec([Fault("rendezvous", "enum", "is unknown", rendezvous, '"static" or "c10d"')])
    check_arguments(
        lists={"args": args, "command": command},
        mappings={"env": env, "resources": resources, "volumes": volumes, "pod": pod},
        fatal_exit_codes=fatal_exit_codes,
        failure_policy=failure_policy,
        volume_claim_policies=volume_claim_policies,
    )
    at_least_one("nodes", nodes)
    if nproc_per_node not in ("gpu", "cpu", "auto"):
        at_least_one("nproc_per_node", nproc_per_node)
    words, rest = program(script, module, command, args, python=())
    if command:
        words = ["--no_python", *words]
    # Underscores: torchrun takes dashes only from PyTorch 2.0 on, and underscores in every version.
    agent = [
        PYTHON,
        "-c",
        source("torchrun.py"),
        "--nnodes=$(JOBSET_STEPS_WORLD_SIZE)",
        "--nproc_per_node",
        text(nproc_per_node),
        "--max_restarts=0",
        # How often an agent looks at its processes, in seconds: 5 in older versions, which a restart would wait for.
        "--monitor_interval=0.1",
        f"--rdzv_backend={rendezvous}",
        "--rdzv_endpoint=$(JOBSET_STEPS_COORDINATOR):$(JOBSET_STEPS_PORT)",
        "--rdzv_id=$(JOBSET_NAME)-$(JOBSET_RESTART_ATTEMPT)",
        *(["--node_rank=$(JOB_COMPLETION_INDEX)"] if rendezvous == "static" else []),
    ]
    place = Place(
        replicated_job=NODES,
        coordinator=NODES,
        rank_offset=0,
        pods_per_job=nodes,
        world_size=nodes,
        port=rendezvous_port,
    )
    pods = Pods(
        image=image,
        env=env or {},
        volumes=mounted(volumes or {}, checkpoints, tuple(volume_claim_policies), name),
        pod=pod or {},
    )
    return jobset(
        name,
        [replicated_job(pods, place, [*agent, *words, *rest], replicas=1, count=nodes, resources=resources)],
        queue=queue,
        failure_policy=failure_policy,
        fatal_exit_codes=fatal_exit_codes,
        volume_claim_policies=volume_claim_policies,
    )
