"""Pods and replicated jobs out of what a recipe knows: the container, its command under the entry, the Job around it.

What is set here is what a training needs to be right (indexes, counts, one restart authority); the safe defaults that any
step gets are `spec.defaults`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobset_steps.recipes.environment import Place, environment, text
from jobset_steps.recipes.volumes import Volumes
from jobset_steps.spec.fault import Fault, InvalidSpec

__all__ = ["CONTAINER", "PYTHON", "Pods", "at_least_one", "program", "replicated_job", "source"]

CONTAINER = "trainer"
"""The name of the container that trains."""
PYTHON = "python3"

_POD, _CONTAINER = "containers volumes", "name image command args env resources volumeMounts"
"""Fields that a recipe writes itself."""


@dataclass(frozen=True)
class Pods:
    """What all pods of a recipe have in common."""

    image: Any
    env: Mapping[str, Any] = field(default_factory=dict)
    """The author's variables."""
    framework_env: Mapping[str, Any] = field(default_factory=dict)
    """The variables that the framework reads."""
    volumes: Volumes = field(default_factory=Volumes)
    pod: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the pod's spec, as in a manifest (nodeSelector, tolerations, serviceAccountName, ...)."""
    container: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the container (readinessProbe, securityContext, workingDir, ...)."""
    waits: bool = True
    """Whether a pod starts its command only once the coordinator's name is known."""


def program(
    script: Any, module: Any, command: Sequence[Any] | None, args: Sequence[Any], *, python: Sequence[str]
) -> tuple[list[Any], list[Any]]:
    """(how to start it, its arguments) of exactly one of script, module and command. Raises InvalidSpec."""
    given = [name for name, value in (("script", script), ("module", module), ("command", command)) if value]
    if len(given) != 1:
        raise InvalidSpec(
            [
                Fault(
                    "script",
                    "one-program",
                    "exactly one of script, module and command says what to run",
                    given or None,
                    'for instance script="train.py"',
                )
            ]
        )
    rest = [text(value) for value in args or ()]
    if command:
        return [text(value) for value in command], rest
    return ([*python, text(script)] if script else [*python, "-m", text(module)]), rest


def at_least_one(name: str, count: Any) -> None:
    """Raises InvalidSpec for what is no number from 1 on: a Job of no pods succeeds at once, and nothing was trained.

    Upstream outputs pass, and so does their text form, which holds braces.
    """
    if isinstance(count, int | float | None | list | dict) or (isinstance(count, str) and "{" not in count):
        if type(count) is not int:
            raise InvalidSpec([Fault(name, "type", "must be a whole number", repr(count), "1 or more")])
        if count < 1:
            message = "at least 1: a Job of no pods succeeds without training"
            raise InvalidSpec([Fault(name, "out-of-range", message, count, "1 or more")])


def source(name: str) -> str:
    """The source of a file of `jobset_steps.worker` that travels with the pod."""
    return (Path(__file__).parent.parent / "worker" / name).read_text(encoding="utf-8")


def under_entry(words: Sequence[Any], *, waits: bool = True) -> dict[str, Any]:
    """command and args that run `words` under the worker's entry: the image needs Python and nothing of this package."""
    how = [] if waits else ["--at-once"]
    return {"command": [PYTHON, "-c", source("entry.py"), *how, "--"], "args": list(words)}


def replicated_job(
    pods: Pods,
    place: Place,
    words: Sequence[Any],
    *,
    replicas: Any,
    count: Any,
    resources: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """`replicas` Jobs of `count` pods each, every pod with its own index, all started at once."""
    for path, given, own in (("pod", pods.pod, _POD), ("container", pods.container, _CONTAINER)):
        if taken := sorted(set(given) & set(own.split())):
            message = "the recipe writes these fields itself"
            passes = "image, command, env, resources and volumes have arguments of their own"
            raise InvalidSpec([Fault(path, "pod-field", message, taken, passes)])
    container = {
        "name": CONTAINER,
        "image": pods.image,
        **under_entry(words, waits=pods.waits),
        "env": environment(place, pods.volumes, pods.env, pods.framework_env),
        "ports": [
            {"name": "rendezvous", "containerPort": place.port},
            *(pods.container.get("ports") or ()),
        ],
        **({"resources": dict(resources)} if resources else {}),
        **({"volumeMounts": list(pods.volumes.mounts)} if pods.volumes.mounts else {}),
        **{field: value for field, value in pods.container.items() if field != "ports"},
    }
    spec = {
        "restartPolicy": "Never",
        **pods.pod,
        "containers": [container],
        **({"volumes": list(pods.volumes.volumes)} if pods.volumes.volumes else {}),
    }
    return {
        "name": place.replicated_job,
        "replicas": replicas,
        "template": {
            "spec": {
                "parallelism": count,
                "completions": count,
                "completionMode": "Indexed",
                "backoffLimit": 0,
                "podReplacementPolicy": "Failed",
                "template": {"spec": spec},
            }
        },
    }
