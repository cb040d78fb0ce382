"""XGBoost over its own collective: a leader, which hosts the tracker, and workers; all of them train.

Leader and workers run the same script. `jobset_steps.worker.xgboost_collective` joins it to the collective; a script can
do the same with xgboost's RabitTracker and CommunicatorContext and the environment of the pod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobset_steps.recipes.arguments import check_arguments
from jobset_steps.recipes.assemble import jobset
from jobset_steps.recipes.environment import Place
from jobset_steps.recipes.pods import PYTHON, Pods, at_least_one, program, replicated_job
from jobset_steps.recipes.volumes import volumes as mounted
from jobset_steps.spec.jobset import FailurePolicy, JobSet, VolumeClaimPolicy
from jobset_steps.spec.resilience import FATAL_EXIT_CODES
from jobset_steps.spec.template import SpecTemplate

__all__ = ["LEADER", "WORKERS", "xgboost"]

LEADER, WORKERS = "leader", "workers"


def xgboost(
    name: str,
    *,
    image: Any,
    workers: Any,
    script: Any = None,
    module: Any = None,
    command: Sequence[Any] | None = None,
    args: Sequence[Any] = (),
    tracker_port: int = 9091,
    env: Mapping[str, Any] | None = None,
    resources: Mapping[str, Any] | None = None,
    leader_resources: Mapping[str, Any] | None = None,
    volumes: Mapping[str, Any] | None = None,
    checkpoints: Any = None,
    failure_policy: FailurePolicy | None = None,
    fatal_exit_codes: Sequence[int] = FATAL_EXIT_CODES,
    queue: Any = None,
    volume_claim_policies: Sequence[VolumeClaimPolicy] = (),
    pod: Mapping[str, Any] | None = None,
) -> JobSet | SpecTemplate:
    """A JobSet of one leader and `workers` workers, workers + 1 ranks in all; the leader has rank 0.

    Each worker is a child Job of its own, so that the JobSet itself says which one failed and how many train, also
    where `workers` is an upstream output. `leader_resources` default to `resources`; the other arguments are those of
    `torchrun`. Raises InvalidSpec.
    """
    check_arguments(
        lists={"args": args, "command": command},
        mappings={
            "env": env,
            "resources": resources,
            "leader_resources": leader_resources,
            "volumes": volumes,
            "pod": pod,
        },
        fatal_exit_codes=fatal_exit_codes,
        failure_policy=failure_policy,
        volume_claim_policies=volume_claim_policies,
    )
    at_least_one("workers", workers)
    start, rest = program(script, module, command, args, python=(PYTHON,))
    known = isinstance(workers, int)
    pods = Pods(
        image=image,
        env=env or {},
        volumes=mounted(volumes or {}, checkpoints, tuple(volume_claim_policies), name),
        pod=pod or {},
    )

    def part(role: str, offset: int, replicas: Any, needs: Mapping[str, Any] | None) -> dict[str, Any]:
        place = Place(
            replicated_job=role,
            coordinator=LEADER,
            rank_offset=offset,
            pods_per_job=1,
            world_size=1 + workers if known else None,
            port=tracker_port,
        )
        return replicated_job(pods, place, [*start, *rest], replicas=replicas, count=1, resources=needs)

    return jobset(
        name,
        [part(LEADER, 0, 1, leader_resources or resources), part(WORKERS, 1, workers, resources)],
        queue=queue,
        failure_policy=failure_policy,
        fatal_exit_codes=fatal_exit_codes,
        volume_claim_policies=volume_claim_policies,
    )
