"""MPI: a launcher that runs mpirun, and workers that it reaches over ssh, with a host file and keys of their own.

The image needs Python, Open MPI, and an ssh client and server; no Secret, no operator and no further object is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobset_steps.recipes.arguments import check_arguments
from jobset_steps.recipes.assemble import jobset
from jobset_steps.recipes.environment import Place, text
from jobset_steps.recipes.pods import PYTHON, Pods, at_least_one, program, replicated_job, source
from jobset_steps.recipes.volumes import Volumes
from jobset_steps.recipes.volumes import volumes as mounted
from jobset_steps.spec.jobset import FailurePolicy, JobSet, VolumeClaimPolicy
from jobset_steps.spec.resilience import FATAL_EXIT_CODES
from jobset_steps.spec.template import SpecTemplate

__all__ = ["LAUNCHER", "WORKERS", "mpi"]

LAUNCHER, WORKERS = "launcher", "workers"


def mpi(
    name: str,
    *,
    image: Any,
    workers: Any,
    slots_per_worker: Any = 1,
    script: Any = None,
    module: Any = None,
    command: Sequence[Any] | None = None,
    args: Sequence[Any] = (),
    mpirun_args: Sequence[Any] = (),
    ssh_port: int = 2222,
    env: Mapping[str, Any] | None = None,
    resources: Mapping[str, Any] | None = None,
    launcher_resources: Mapping[str, Any] | None = None,
    volumes: Mapping[str, Any] | None = None,
    checkpoints: Any = None,
    failure_policy: FailurePolicy | None = None,
    fatal_exit_codes: Sequence[int] = FATAL_EXIT_CODES,
    queue: Any = None,
    volume_claim_policies: Sequence[VolumeClaimPolicy] = (),
    pod: Mapping[str, Any] | None = None,
) -> JobSet | SpecTemplate:
    """A JobSet whose launcher runs one of `script`, `module`, `command` as workers x slots_per_worker ranks under mpirun.

    - mpirun_args: further words for mpirun, such as ["--bind-to", "none"]; host file and number of ranks are given to it.
    - resources, volumes, checkpoints are the workers'; the launcher trains nothing and has launcher_resources.
    - ssh_port: where workers serve ssh and the launcher hears that they do; above 1024 it needs no right.

    mpirun starts once every worker serves ssh. Ranks have the environment of the worker's container, its directory, and
    what Open MPI sets (OMPI_COMM_WORLD_RANK, ...). The launcher ends as mpirun does: with the exit code of the rank that
    failed first; the workers end once it has told them. Keys are made in every attempt: see worker/mpi.py. Pods run as a
    user that the image knows, root or not. The other arguments are those of `torchrun`, and the same may be upstream
    outputs. Raises InvalidSpec.
    """
    check_arguments(
        lists={"args": args, "command": command, "mpirun_args": mpirun_args},
        mappings={
            "env": env,
            "resources": resources,
            "launcher_resources": launcher_resources,
            "volumes": volumes,
            "pod": pod,
        },
        fatal_exit_codes=fatal_exit_codes,
        failure_policy=failure_policy,
        volume_claim_policies=volume_claim_policies,
    )
    at_least_one("workers", workers)
    at_least_one("slots_per_worker", slots_per_worker)
    words, rest = program(script, module, command, args, python=(PYTHON,))
    agent = [PYTHON, "-c", source("mpi.py")]
    further = [text(word) for word in mpirun_args]

    def part(
        role: str, count: Any, does: Sequence[Any], where: Volumes, needs: Mapping[str, Any] | None
    ) -> Any:
        place = Place(
            replicated_job=role,
            coordinator=LAUNCHER,
            rank_offset=0,
            pods_per_job=count,
            world_size=workers,
            port=ssh_port,
        )
        pods = Pods(
            image=image,
            env=env or {},
            framework_env={
                "JOBSET_STEPS_POD_IP": {"fieldRef": {"fieldPath": "status.podIP"}},
                "JOBSET_STEPS_JOBSET_UID": {
                    "fieldRef": {"fieldPath": "metadata.annotations['jobset.sigs.k8s.io/jobset-uid']"}
                },
            },
            volumes=where,
            pod=pod or {},
            # The launcher is the coordinator: it has no name to wait for.
            waits=role == WORKERS,
        )
        return replicated_job(pods, place, [*agent, *does], replicas=1, count=count, resources=needs)

    return jobset(
        name,
        [
            part(
                LAUNCHER,
                1,
                ["launch", text(workers), text(slots_per_worker), *further, *words, *rest],
                Volumes(),
                launcher_resources,
            ),
            part(
                WORKERS,
                workers,
                ["serve"],
                mounted(volumes or {}, checkpoints, tuple(volume_claim_policies), name),
                resources,
            ),
        ],
        queue=queue,
        failure_policy=failure_policy,
        fatal_exit_codes=fatal_exit_codes,
        volume_claim_policies=volume_claim_policies,
    )
