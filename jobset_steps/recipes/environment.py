"""The environment of a pod: who it is, where rank 0 is, where checkpoints go.

Made of constants and of what the downward API reads from the pod's own annotations, so that one pod template serves
every attempt and whatever name the JobSet gets. `jobset_steps.worker` reads it; so may anything else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobset_steps.recipes.volumes import Volumes
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.naming import CHECKPOINT_KEY, RUN, STEP

__all__ = ["MODEL_URI", "Place", "environment", "text"]

_JOBSET = "jobset.sigs.k8s.io/"
MODEL_URI = "jobset-steps/model-uri"
"""Pod annotation with the URI where the pipeline expects the model; a pod without it has an empty JOBSET_STEPS_MODEL_URI."""


@dataclass(frozen=True)
class Place:
    """Where a replicated job stands among all pods that train together.

    `world_size` None means that each child Job is one pod and that their number, which JobSet writes on every pod, is
    the world size: for a number of replicas that only the pipeline will know.
    """

    replicated_job: str
    coordinator: str
    """The replicated job whose first pod has rank 0."""
    rank_offset: int
    pods_per_job: Any
    world_size: Any | None
    port: int


def environment(
    place: Place, where: Volumes, extra: Mapping[str, Any], framework: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Environment variables in an order in which each refers only to those before it; the author's come last.

    `framework` are those that a framework reads, made by its recipe: constants, which may refer to the pod's own, or
    sources. Raises InvalidSpec where an author's variable has the name of one of all these.
    """
    variables = [
        _annotation("JOBSET_NAME", _JOBSET + "jobset-name"),
        _annotation("JOBSET_RESTART_ATTEMPT", _JOBSET + "restart-attempt"),
        _constant("JOBSET_STEPS_REPLICATED_JOB", place.replicated_job),
        _annotation("JOBSET_STEPS_JOB_INDEX", _JOBSET + "job-index"),
        _constant("JOBSET_STEPS_RANK_OFFSET", place.rank_offset),
        _constant("JOBSET_STEPS_PODS_PER_JOB", place.pods_per_job),
        _annotation("JOBSET_STEPS_WORLD_SIZE", _JOBSET + "global-replicas")
        if place.world_size is None
        else _constant("JOBSET_STEPS_WORLD_SIZE", place.world_size),
        _constant("JOBSET_STEPS_COORDINATOR", f"$(JOBSET_NAME)-{place.coordinator}-0-0.$(JOBSET_NAME)"),
        _constant("JOBSET_STEPS_PORT", place.port),
        _annotation("JOBSET_STEPS_RUN", RUN),
        _annotation("JOBSET_STEPS_STEP", STEP),
        _annotation("JOBSET_STEPS_MODEL_URI", MODEL_URI),
    ]
    if where.checkpoint_base is not None:
        variables.append(_constant("JOBSET_STEPS_CHECKPOINT_BASE", where.checkpoint_base))
    if where.checkpoint_dir is not None:
        variables.append(_annotation("JOBSET_STEPS_CHECKPOINT_KEY", CHECKPOINT_KEY))
        variables.append(_constant("JOBSET_STEPS_CHECKPOINT_DIR", where.checkpoint_dir))
    variables += [_given(name, value) for name, value in (framework or {}).items()]
    own = {variable["name"] for variable in variables}
    if taken := sorted(own & set(extra)):
        raise InvalidSpec([Fault("env", "env-name", "the recipe sets these itself", taken, "another name")])
    # Python holds printed lines back when it writes to a pipe; a killed pod would lose its last ones.
    return variables + [
        _given(name, value) for name, value in ({"PYTHONUNBUFFERED": 1} | dict(extra)).items()
    ]


def text(value: Any) -> Any:
    """A constant as the text that args and env hold ("true", "0.1"); an upstream output stays what it is."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _annotation(name: str, key: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}}}


def _constant(name: str, value: Any) -> dict[str, Any]:
    return {"name": name, "value": text(value)}


def _given(name: str, value: Any) -> dict[str, Any]:
    """A variable by name: a constant, an upstream output, or a source as in a manifest ({"secretKeyRef": ...})."""
    if isinstance(value, Mapping) and set(value) != {"$hole"}:
        return {"name": name, "valueFrom": dict(value)}
    return _constant(name, value)
