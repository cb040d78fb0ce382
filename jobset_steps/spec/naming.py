"""What a JobSet is called when it runs as a step, and how it becomes that: name, marks, owner, references to itself.

A step's name follows from its identity and generation alone, so that whoever comes back finds it. The author's name is the
readable part and is cut where the limits of the API need it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from jobset_steps.spec.jobset import JobSet

__all__ = [
    "CHECKPOINT_KEY",
    "GENERATION",
    "IDENTITY",
    "RUN",
    "SLOT",
    "SPEC_HASH",
    "STEP",
    "checkpoint_key",
    "instantiate",
    "label_safe",
    "longest_name",
    "marks",
    "step_name",
]

PREFIX = "jobset-steps/"
IDENTITY, RUN, STEP, SLOT = PREFIX + "identity", PREFIX + "run", PREFIX + "step", PREFIX + "slot"
GENERATION, SPEC_HASH, CHECKPOINT_KEY = PREFIX + "generation", PREFIX + "spec-hash", PREFIX + "checkpoint-key"

_LABEL = 63
# "-abcde": what the Job controller appends to a pod's name.
_POD_SUFFIX = 6


def longest_name(jobset: JobSet) -> tuple[int, str]:
    """The longest name this JobSet may have, and what the tightest limit adds to it.

    Source: JobSet webhook (child Job names, pod names, coordinator label) and claim names, each at most 63 characters.
    """
    spec = jobset.spec
    limits = [(_LABEL, "")]
    for replicated in spec.replicated_jobs:
        # JobSet counts from -1 where there are none.
        job = f"-{replicated.name}-{(1 if replicated.replicas is None else replicated.replicas) - 1}"
        limits.append((_LABEL - len(job), f"child Job names add '{job}'"))
        completions = replicated.template.spec.completions
        if completions is not None and replicated.template.spec.completion_mode in (None, "Indexed"):
            pod = f"{job}-{completions - 1}"
            limits.append((_LABEL - len(pod) - _POD_SUFFIX, f"pod names add '{pod}-abcde'"))
    if (place := spec.coordinator) is not None:
        host = f"-{place.replicated_job}-{place.job_index or 0}-{place.pod_index or 0}"
        subdomain = spec.network.subdomain if spec.network else None
        if subdomain:
            limits.append(
                (_LABEL - len(host) - 1 - len(subdomain), f"the coordinator label adds '{host}.{subdomain}'")
            )
        else:
            limits.append(
                ((_LABEL - len(host) - 1) // 2, f"the coordinator label is the name, '{host}.' and the name")
            )
    for policy in spec.volume_claim_policies:
        for template in policy.templates:
            meta = template.get("metadata")
            claim = f"{meta.get('name', '') if isinstance(meta, Mapping) else ''}-"
            limits.append((_LABEL - len(claim), f"claim names begin with '{claim}'"))
    return min(limits, key=lambda limit: limit[0])


def step_name(jobset: JobSet, digest: str, generation: int) -> str:
    """The name of a step's JobSet: the author's, cut to fit, the identity's digest, and "-gN" from the second
    generation on. `digest` is hexadecimal; eight digits of it are used, fewer only where not even they fit.
    """
    tail = "-" + digest[:8] + (f"-g{generation}" if generation > 1 else "")
    base = jobset.metadata.name or (jobset.metadata.generate_name or "").rstrip("-") or "jobset"
    room = longest_name(jobset)[0] - len(tail)
    head = base[:room].rstrip("-") if room > 0 else ""
    # A name begins with a letter; where the author's has no room at all the identity alone must do.
    return head + tail if head else ("j" + tail[1:])[: max(longest_name(jobset)[0], 1)].rstrip("-")


def label_safe(value: str) -> str:
    """A value that a label may have: other characters become "-", a long one ends in a digest of the whole."""
    import hashlib

    safe = re.sub(r"[^A-Za-z0-9._-]", "-", value).strip("-._")
    if safe == value and len(safe) <= _LABEL:
        return safe
    digest = hashlib.sha256(value.encode()).hexdigest()[:8]
    return (safe[: _LABEL - 9].rstrip("-._") + "-" + digest).lstrip("-")


def checkpoint_key(run: str, step: str, slot: str = "") -> str:
    """Where a training's checkpoints belong, as a relative path: the same for each attempt and each generation."""
    return f"{label_safe(slot or run)}/{label_safe(step)}"


def marks(
    *, digest: str, run: str, step: str, slot: str, generation: int, spec_hash: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations by which a JobSet and its pods are known as a step's."""
    labels = {IDENTITY: digest, RUN: label_safe(run)}
    annotations = {
        RUN: run,
        STEP: step,
        GENERATION: str(generation),
        SPEC_HASH: spec_hash,
        CHECKPOINT_KEY: checkpoint_key(run, step, slot),
    }
    return labels, annotations | ({SLOT: slot} if slot else {})


def instantiate(
    jobset: JobSet,
    *,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    owner: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The manifest of a JobSet under a new name: marked, owned, and with its references to itself following the name.

    Marks go on the JobSet, its child Jobs and its pods, so that one selector finds each of them. The owner reference does
    not block the owner's deletion.
    """
    manifest = copy.deepcopy(jobset.to_dict())
    meta = manifest.setdefault("metadata", {})
    old = meta.pop("name", None) or ""
    meta.pop("generateName", None)
    meta.update(name=name, namespace=namespace)
    if owner is not None:
        meta["ownerReferences"] = [*meta.get("ownerReferences", ()), {**owner, "blockOwnerDeletion": False}]
    _mark(manifest, labels, annotations)
    subdomain = (manifest["spec"].get("network") or {}).get("subdomain") or old
    hosts = _own_hosts(old, subdomain, [r["name"] for r in manifest["spec"].get("replicatedJobs", ())])
    for replicated in manifest["spec"].get("replicatedJobs", ()):
        template = replicated["template"]
        _mark(template, labels, {})
        pod = template["spec"]["template"]
        _mark(pod, labels, annotations)
        if hosts is not None:
            for container in (*pod["spec"].get("initContainers", ()), *pod["spec"].get("containers", ())):
                _follow(container, hosts, old, name)
    return manifest


def _mark(thing: dict[str, Any], labels: Mapping[str, str], annotations: Mapping[str, str]) -> None:
    meta = thing.setdefault("metadata", {})
    meta["labels"] = {**meta.get("labels", {}), **labels}
    if annotations:
        meta["annotations"] = {**meta.get("annotations", {}), **annotations}


def _own_hosts(old: str, subdomain: str, replicated: list[str]) -> re.Pattern[str] | None:
    """Matches the JobSet's own pod host names, the name in group 1 and the default subdomain in group 3."""
    if not old or not replicated:
        return None
    names = "|".join(re.escape(name) for name in replicated)
    tail = rf"(\.{re.escape(old)}(?![-a-z0-9]))?" if subdomain == old else "()"
    return re.compile(rf"(?<![-a-z0-9.])({re.escape(old)})(-(?:{names})-\d+-\d+)(?![-a-z0-9]){tail}")


def _follow(container: dict[str, Any], hosts: re.Pattern[str], old: str, new: str) -> None:
    def text(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return hosts.sub(lambda match: new + match[2] + (f".{new}" if match[3] else ""), value)

    for key in ("command", "args"):
        if key in container:
            container[key] = [text(item) for item in container[key]]
    for variable in container.get("env") or ():
        if "value" in variable:
            variable["value"] = text(variable["value"])
