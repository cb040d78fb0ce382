"""What is mounted into the pods: claims by URI, any other volume as in a manifest, and the checkpoint directory.

Checkpoints must outlive every JobSet of a step, so they go to a claim that the author names or to an object store; a
claim that JobSet makes for one JobSet (volumeClaimPolicies) carries that JobSet's name and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobset_steps.spec.fault import Fault, InvalidSpec

__all__ = ["CHECKPOINTS", "Volumes", "volumes"]

CHECKPOINTS = "/jobset-steps/checkpoints"
"""Where the checkpoint claim is mounted."""
_KEY = "$(JOBSET_STEPS_CHECKPOINT_KEY)"
_CLAIM = re.compile(r"pvc://([a-z0-9]([-a-z0-9.]*[a-z0-9])?)(/.*)?", re.DOTALL)
_OBJECT_STORE = re.compile(r"(?!pvc:|file:|http:|https:)[a-z][a-z0-9+.-]*://.+", re.DOTALL)


@dataclass(frozen=True)
class Volumes:
    """The pod's `volumes`, the container's `volumeMounts`, and where its checkpoints go (None: nowhere).

    `checkpoint_base` is an upstream output that the directory begins with, None where it is known now.
    """

    volumes: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()
    checkpoint_dir: str | None = None
    checkpoint_base: Any = None


def volumes(
    given: Mapping[str, Any], checkpoints: Any, claim_policies: tuple[Any, ...], jobset: str
) -> Volumes:
    """Volumes and mounts for `given` (mount path -> "pvc://claim/sub/path" or a volume source) and for checkpoints.

    `checkpoints` is "pvc://claim/sub/path", an object URI, an upstream output that is one, or None. Raises InvalidSpec.
    """
    faults: list[Fault] = []
    made: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    claims: dict[str, str] = {}

    def volume_of(claim: str, name: str) -> str:
        """The name of the claim's one volume in the pod: a second one would never be mounted."""
        if claim not in claims:
            made.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        return claims.setdefault(claim, name)

    for number, (path, source) in enumerate(given.items()):
        name = f"volume-{number}"
        if isinstance(source, Mapping):
            made.append({"name": name, **source})
            mounts.append({"name": name, "mountPath": path})
        elif isinstance(source, str) and (match := _CLAIM.fullmatch(source)):
            sub = (match[3] or "").strip("/")
            name = volume_of(match[1], name)
            mounts.append({"name": name, "mountPath": path, **({"subPath": sub} if sub else {})})
        else:
            passes = '"pvc://claim/sub/path", or a volume source such as {"emptyDir": {}}'
            faults.append(Fault(f"volumes[{path!r}]", "volume-source", "is no volume", source, passes))
    directory = base = None
    if checkpoints is not None and _unknown(checkpoints):
        base, directory = checkpoints, f"$(JOBSET_STEPS_CHECKPOINT_BASE)/{_KEY}"
    elif checkpoints is not None:
        claim, directory = _checkpoints(checkpoints, faults)
        if claim:
            faults += _outlives(claim, claim_policies, jobset)
            mounts.append({"name": volume_of(claim, "checkpoints"), "mountPath": CHECKPOINTS})
    for policy in claim_policies:
        for template in policy.templates:
            name = template.get("metadata", {}).get("name", "")
            mounts.append({"name": name, "mountPath": f"/{name}"})
    if faults:
        raise InvalidSpec(faults)
    return Volumes(tuple(made), tuple(mounts), directory, base)


def _unknown(given: Any) -> bool:
    """Whether not even the kind of place is known now: an upstream output, or text that begins with one."""
    return not isinstance(given, str) or given.startswith(("{{", "$hole{"))


def _checkpoints(given: str, faults: list[Fault]) -> tuple[str, str]:
    """The claim to mount ("" for an object store) and the directory of this step's checkpoints."""
    if match := _CLAIM.fullmatch(given):
        sub = (match[3] or "").strip("/")
        return match[1], "/".join(part for part in (CHECKPOINTS, sub, _KEY) if part)
    if not _OBJECT_STORE.fullmatch(given):
        passes = '"pvc://claim/sub/path" (a claim that exists) or an object URI such as "s3://bucket/path"'
        message = "must name a place that all pods reach and that outlives the JobSet"
        faults.append(Fault("checkpoints", "checkpoint-place", message, given, passes))
    return "", f"{given.rstrip('/')}/{_KEY}"


def _outlives(claim: str, policies: tuple[Any, ...], jobset: str) -> list[Fault]:
    names = {template.get("metadata", {}).get("name") for policy in policies for template in policy.templates}
    if claim not in names and claim not in {f"{name}-{jobset}" for name in names}:
        return []
    message = (
        "a claim of volumeClaimPolicies carries the JobSet's name: the next generation of the step gets another "
        "name and would not find its checkpoints"
    )
    return [
        Fault("checkpoints", "checkpoint-claim", message, f"pvc://{claim}", "a claim that you made yourself")
    ]
