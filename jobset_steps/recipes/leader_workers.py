"""A leader and workers with pod templates of their own: a driver and its actors, a scheduler and its executors.

Says who they are, in what order they start and whose success is the step's; what they speak among each other is theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from jobset_steps.recipes.arguments import check_arguments
from jobset_steps.recipes.assemble import jobset
from jobset_steps.recipes.environment import Place
from jobset_steps.recipes.pods import PYTHON, Pods, at_least_one, program, replicated_job
from jobset_steps.recipes.volumes import volumes as mounted
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.jobset import FailurePolicy, JobSet, VolumeClaimPolicy
from jobset_steps.spec.resilience import FATAL_EXIT_CODES
from jobset_steps.spec.template import SpecTemplate

__all__ = ["LEADER", "WORKERS", "Role", "leader_workers"]

LEADER, WORKERS = "leader", "workers"
_MAPPINGS = ("env", "resources", "volumes", "pod", "container")


@dataclass(frozen=True, kw_only=True)
class Role:
    """What the pods of one side are: image, one of script, module and command, and their own template.

    `volumes` is mount path -> "pvc://claim/sub/path" or a volume source; `pod` and `container` are further fields of the
    pod's spec and of its container as in a manifest, a readinessProbe for instance.
    """

    image: Any
    script: Any = None
    module: Any = None
    command: Sequence[Any] | None = None
    args: Sequence[Any] = ()
    env: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    volumes: Mapping[str, Any] = field(default_factory=dict)
    pod: Mapping[str, Any] = field(default_factory=dict)
    container: Mapping[str, Any] = field(default_factory=dict)


def leader_workers(
    name: str,
    *,
    leader: Role,
    workers: Role,
    count: Any,
    first: Literal["leader", "workers"] | None = None,
    succeeds_with: Literal["all", "leader"] = "all",
    port: int = 29500,
    checkpoints: Any = None,
    failure_policy: FailurePolicy | None = None,
    fatal_exit_codes: Sequence[int] = FATAL_EXIT_CODES,
    queue: Any = None,
    volume_claim_policies: Sequence[VolumeClaimPolicy] = (),
) -> JobSet | SpecTemplate:
    """A JobSet of one leader, which has rank 0, and `count` workers, each a child Job of its own.

    - first: who must be ready before the other side's pods are made; None makes all at once. A pod is ready while it runs,
      unless its role's `container` has a readinessProbe. Workers that come first start their command at once; in all
      other cases a pod waits until the leader's name is known.
    - succeeds_with: "leader" completes the JobSet with the leader's success and ends workers that still run.
    - port: JOBSET_STEPS_PORT, where the leader listens.

    count, checkpoints, queue and what is in the roles may be upstream outputs; then a SpecTemplate comes back. Raises
    InvalidSpec.
    """
    roles = {LEADER: leader, WORKERS: workers}
    _check_roles(roles)
    _one_of("first", first, (None, LEADER, WORKERS))
    _one_of("succeeds_with", succeeds_with, ("all", LEADER))
    check_arguments(
        lists={
            f"{part}.{key}": getattr(role, key) for part, role in roles.items() for key in ("args", "command")
        },
        mappings={f"{part}.{key}": getattr(role, key) for part, role in roles.items() for key in _MAPPINGS},
        fatal_exit_codes=fatal_exit_codes,
        failure_policy=failure_policy,
        volume_claim_policies=volume_claim_policies,
    )
    at_least_one("count", count)

    def part(of: str, offset: int, replicas: Any) -> dict[str, Any]:
        role = roles[of]
        words, rest = program(role.script, role.module, role.command, role.args, python=(PYTHON,))
        pods = Pods(
            image=role.image,
            env=role.env,
            volumes=mounted(role.volumes, checkpoints, tuple(volume_claim_policies), name),
            pod=role.pod,
            container=role.container,
            # Workers that wait for a leader who waits for them to be ready would wait for ever.
            waits=not (of == WORKERS and first == WORKERS),
        )
        place = Place(
            replicated_job=of,
            coordinator=LEADER,
            rank_offset=offset,
            pods_per_job=1,
            world_size=1 + count if isinstance(count, int) else None,
            port=port,
        )
        made = replicated_job(
            pods, place, [*words, *rest], replicas=replicas, count=1, resources=role.resources
        )
        if first is not None and of != first:
            made["dependsOn"] = [{"name": first, "status": "Ready"}]
        return made

    parts = [part(LEADER, 0, 1), part(WORKERS, 1, count)]
    return jobset(
        name,
        # A replicated job depends on earlier ones only.
        parts[::-1] if first == WORKERS else parts,
        queue=queue,
        failure_policy=failure_policy,
        fatal_exit_codes=fatal_exit_codes,
        volume_claim_policies=volume_claim_policies,
        succeeds_with=[LEADER] if succeeds_with == LEADER else [],
    )


def _check_roles(roles: Mapping[str, Any]) -> None:
    passes = 'Role(image="...", script="...")'
    faults = [
        Fault(name, "type", "must be a Role", role, passes)
        for name, role in roles.items()
        if not isinstance(role, Role)
    ]
    if faults:
        raise InvalidSpec(faults)


def _one_of(name: str, given: Any, allowed: tuple[Any, ...]) -> None:
    if given not in allowed:
        passes = " or ".join(repr(value) for value in allowed)
        raise InvalidSpec([Fault(name, "enum", "is unknown", given, passes)])
