"""Who this pod is in its JobSet: rank, world size, attempt, coordinator, checkpoint directory.

Read from the environment that the recipes write, and from nothing else. It never asks a cluster and never guesses:
a variable that is missing is an error that names it and says how it is set.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from jobset_steps.errors import BadInput

__all__ = ["Context", "MissingEnvironment", "context", "is_leader"]


class MissingEnvironment(BadInput):
    """A variable that a pod of a JobSet has is missing or has no sense here."""

    todo = (
        "Build the JobSet with a recipe (torchrun, ddp, ...), which sets all of these, or set them in the pod "
        "template yourself. To try one process alone: JOBSET_STEPS_RANK_OFFSET=0 JOBSET_STEPS_WORLD_SIZE=1."
    )

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.todo}"


@dataclass(frozen=True)
class Context:
    """One pod's place in the JobSet. Ranks, indexes and attempts count from 0."""

    rank: int
    """Of this pod among all pods of the JobSet that train together, 0 to world_size - 1.

    Its place, or what a launcher that counts pods in an order of its own says (torchrun with c10d: GROUP_RANK).
    """
    world_size: int
    """How many pods train together."""
    replicated_job: str
    job_index: int
    """Of the child Job within its replicated job."""
    index: int
    """Of the pod within its child Job (JOB_COMPLETION_INDEX)."""
    coordinator: str
    """DNS name or address of the pod with rank 0, "" where the JobSet has none."""
    port: int
    """The rendezvous port on the coordinator, 0 where the JobSet has none."""
    attempt: int
    """How often the JobSet was restarted before this run of it."""
    checkpoint_dir: str
    """The same in every attempt and for every retry of the step; "" where no checkpoints were asked for."""
    model_uri: str
    """Where the pipeline expects the model, "" where it does not ask for one."""
    jobset: str
    run: str
    step: str
    local_rank: int
    """Of this process within its pod where a launcher starts several (LOCAL_RANK, Open MPI's as well), else 0."""

    @property
    def is_leader(self) -> bool:
        """Whether this is the one process that writes checkpoints, metrics and the model."""
        return self.rank == 0 and self.local_rank == 0


# name -> what it says
_REQUIRED = {
    "JOBSET_STEPS_RANK_OFFSET": "pods in the replicated jobs before this one",
    "JOBSET_STEPS_WORLD_SIZE": "pods that train together",
}


def context(environ: Mapping[str, str] | None = None) -> Context:
    """This pod's place, from the environment (`os.environ`, or the mapping given).

    Raises MissingEnvironment with all that is missing or not a number, each by name.
    """
    env = os.environ if environ is None else environ
    faults = [
        f"{name} is not set: {meaning}"
        for name, meaning in _REQUIRED.items()
        if not env.get(name, "").strip()
    ]

    def number(name: str, default: int = 0) -> int:
        text = env.get(name, "").strip()
        if not text:
            return default
        try:
            value = int(text)
        except ValueError:
            value = -1
        if value < 0:
            faults.append(f"{name}: a whole number from 0 on, {text!r} given")
        return value

    job_index = number("JOBSET_STEPS_JOB_INDEX")
    index = number("JOB_COMPLETION_INDEX")
    place = number("JOBSET_STEPS_RANK_OFFSET") + job_index * number("JOBSET_STEPS_PODS_PER_JOB", 1) + index
    rank = number("GROUP_RANK", place)
    world_size = number("JOBSET_STEPS_WORLD_SIZE")
    found = Context(
        rank=rank,
        world_size=world_size,
        replicated_job=env.get("JOBSET_STEPS_REPLICATED_JOB", ""),
        job_index=job_index,
        index=index,
        coordinator=env.get("JOBSET_STEPS_COORDINATOR", ""),
        port=number("JOBSET_STEPS_PORT"),
        attempt=number("JOBSET_RESTART_ATTEMPT"),
        checkpoint_dir=env.get("JOBSET_STEPS_CHECKPOINT_DIR", ""),
        model_uri=env.get("JOBSET_STEPS_MODEL_URI", ""),
        jobset=env.get("JOBSET_NAME", ""),
        run=env.get("JOBSET_STEPS_RUN", ""),
        step=env.get("JOBSET_STEPS_STEP", ""),
        local_rank=number("LOCAL_RANK", number("OMPI_COMM_WORLD_LOCAL_RANK")),
    )
    if not faults and rank >= world_size:
        faults.append(
            f"rank {rank} (JOBSET_STEPS_RANK_OFFSET + JOBSET_STEPS_JOB_INDEX x JOBSET_STEPS_PODS_PER_JOB "
            f"+ JOB_COMPLETION_INDEX) does not fit in JOBSET_STEPS_WORLD_SIZE {world_size}"
        )
    if faults:
        raise MissingEnvironment("\n".join(faults))
    return found


def is_leader() -> bool:
    """Whether this is the one process that writes checkpoints, metrics and the model.

    Raises MissingEnvironment outside a pod.
    """
    return context().is_leader
