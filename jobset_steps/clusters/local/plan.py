"""One pod's manifest and its place on this machine, turned into what is executed. Pure: it touches no file.

It fills in the environment, replaces what has another name here and says which directories must exist. What a local
cluster cannot give was named before (see `limits`); here it is just not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobset_steps.clusters.local.environment import container_env, downward, expand
from jobset_steps.clusters.local.machine import Machine
from jobset_steps.clusters.local.pod_rules import ContainerRules, PodRules
from jobset_steps.clusters.local.probes import Probe, probe_of
from jobset_steps.clusters.local.processes import Command
from jobset_steps.clusters.local.rewrite import Hosts, Rewrite

__all__ = ["ContainerPlan", "Place", "PodPlan", "plan_pod"]

TERMINATION_LOG = "JOBSET_STEPS_TERMINATION_LOG"
_DEFAULT_GRACE = 30.0
_DEFAULT_TERMINATION_LOG = "/dev/termination-log"


@dataclass(frozen=True, slots=True)
class Place:
    """Where one pod runs: its address, its attempt's names and ports, its directories.

    `scratch` is the pod's own and removed after it, `volumes` is where claims are kept, `logs` the attempt's.
    """

    address: str
    hosts: Hosts
    address_of: Callable[[str], str]
    ports: Mapping[int, int]
    scratch: Path
    volumes: Path
    logs: Path


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """One container, ready to be started any number of times."""

    name: str
    command: Command
    termination_log: Path
    falls_back_to_logs: bool
    readiness: Probe | None


@dataclass(frozen=True, slots=True)
class PodPlan:
    """One pod. `directories` must exist before the first container starts; those below `scratch` go with the pod."""

    rules: PodRules
    containers: Mapping[str, ContainerPlan]
    directories: tuple[Path, ...]
    scratch: Path


def plan_pod(manifest: Mapping[str, Any], place: Place, machine: Machine) -> PodPlan:
    """What to execute for this pod. The manifest is one that `cannot_run` finds no fault with."""
    meta, spec = manifest["metadata"], manifest["spec"]
    init, main = tuple(spec.get("initContainers") or ()), tuple(spec["containers"])
    by_name = {str(container["name"]): container for container in (*init, *main)}
    field = downward(manifest, address=place.address, node=machine.node)
    volumes = {str(volume["name"]): _directory(volume, place) for volume in spec.get("volumes") or ()}
    directories = [*volumes.values()]
    plans, rules = {}, []
    for name, container in by_name.items():
        raw = container_env(
            container, by_name, field=field, capacity=machine.capacity, external=machine.external
        )
        termination_log = place.scratch / f"{name}.termination-log"
        paths = {
            str(container.get("terminationMessagePath") or _DEFAULT_TERMINATION_LOG): str(termination_log)
        }
        for mount in container.get("volumeMounts") or ():
            directory = volumes.get(str(mount["name"]), place.scratch / "volumes" / str(mount["name"]))
            if sub := str(mount.get("subPath") or expand(str(mount.get("subPathExpr") or ""), raw)):
                directory /= sub.lstrip("/")
                directories.append(directory)
            paths[str(mount["mountPath"])] = str(directory)
        rewrite = Rewrite(place.hosts, place.address_of, place.ports, paths)
        env = {
            **machine.base_env,
            "HOSTNAME": str(spec.get("hostname") or meta["name"]),
            **{key: rewrite(value) for key, value in raw.items()},
            TERMINATION_LOG: str(termination_log),
        }
        words = [expand(str(word), raw) for key in ("command", "args") for word in container.get(key) or ()]
        argv = [rewrite(word) for word in words]
        if argv[0] in ("python", "python3"):
            argv[0] = machine.python
        plans[name] = ContainerPlan(
            name=name,
            command=Command(
                argv=tuple(argv),
                env=env,
                cwd=_working_directory(container, rewrite, machine),
                log=place.logs / f"{meta['name']}.{name}.log",
            ),
            termination_log=termination_log,
            falls_back_to_logs=container.get("terminationMessagePolicy") == "FallbackToLogsOnError",
            readiness=probe_of(container, place.address, place.ports, rewrite),
        )
        rules.append(
            ContainerRules(
                name,
                init=any(container is one for one in init),
                sidecar=container.get("restartPolicy") == "Always",
                probed=plans[name].readiness is not None,
            )
        )
    grace, deadline = spec.get("terminationGracePeriodSeconds"), spec.get("activeDeadlineSeconds")
    return PodPlan(
        rules=PodRules(
            containers=tuple(rules),
            restart_policy=spec.get("restartPolicy") or "Never",
            grace=_DEFAULT_GRACE if grace is None else float(grace),
            active_deadline=None if deadline is None else float(deadline),
        ),
        containers=plans,
        directories=tuple(directories),
        scratch=place.scratch,
    )


def _directory(volume: Mapping[str, Any], place: Place) -> Path:
    if claim := volume.get("persistentVolumeClaim"):
        return place.volumes / str(claim["claimName"])
    if host := volume.get("hostPath"):
        return Path(str(host["path"]))
    return place.scratch / "volumes" / str(volume["name"])


def _working_directory(container: Mapping[str, Any], rewrite: Rewrite, machine: Machine) -> str:
    """The workingDir, if it is in a volume or there on this machine, else where the cluster was started."""
    stated = str(container.get("workingDir") or "")
    here = rewrite.path(stated)
    return here if stated and (here != stated or Path(here).is_dir()) else machine.cwd
