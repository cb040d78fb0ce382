"""A step as a resource template: the best that Argo can do alone, with nothing of ours on the cluster.

The manifest is one JSON object, applied and not created, so that a waiter that comes back finds its JobSet. It cannot tell
why a training failed, and when the run is stopped nobody deletes the JobSet but the exit handler.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jobset_steps.argo.launcher import inputs, pod_metadata
from jobset_steps.argo.parameters import Passed, embedded, literal, safe_json
from jobset_steps.argo.step import ArgoStep
from jobset_steps.spec import spec_hash
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.naming import (
    CHECKPOINT_KEY,
    GENERATION,
    IDENTITY,
    RUN,
    SPEC_HASH,
    STEP,
    instantiate,
    step_name,
)
from jobset_steps.spec.template import SpecTemplate

__all__ = ["native_template"]

# Of Workflow and node: the same for each retry of the node, another for each loop item and each run.
_SHA = "sprig.sha256sum(workflow.uid + node.name)"
_RUN = "workflow.name + '-' + sprig.trunc(8, workflow.uid)"
_STEP = "trimPrefix(trimPrefix(node.name, workflow.name), '.')"
_ASTRAL = re.compile("([\U00010000-\U0010ffff]+)")
# Failures that come back the same: the training's own, a deadline, and what the server refuses.
_FINAL = "failure condition|has been deleted|deadline|denied the request|is invalid|BadRequest|forbidden"


@dataclass(frozen=True, slots=True)
class _Computed:
    """What Argo computes inside the template; stands in the manifest as a token until it is text. `free`: any characters."""

    expression: str
    free: bool = False


def native_template(step: ArgoStep) -> dict[str, Any]:
    """The template of a native step, as plain data."""
    template: dict[str, Any] = {"name": step.name}
    if names := inputs(step):
        template["inputs"] = names
    succeeded = 'if .status.terminalState == "Completed" then "Succeeded" else "Failed" end'
    template |= {
        "outputs": {
            "parameters": [
                {"name": "verdict", "valueFrom": {"jqFilter": succeeded, "default": "Unknown"}},
                {"name": "restarts", "valueFrom": {"jqFilter": ".status.restarts // 0", "default": "0"}},
                {"name": "jobset", "valueFrom": {"jqFilter": ".metadata.name", "default": ""}},
            ]
        },
        "metadata": pod_metadata(),
        "resource": {
            # Not "create": a waiter that is started again would get AlreadyExists, and not wait.
            "action": "apply",
            "flags": ["--server-side"],
            "manifest": _manifest(step),
            # One term each: a second failure term is ORed, and without a success term the first look is a success.
            "successCondition": "status.terminalState == Completed",
            "failureCondition": "status.terminalState == Failed",
        },
        "activeDeadlineSeconds": step.deadline or round(step.budgets.queue + step.budgets.run),
    }
    if step.image_pull_secrets:
        secrets = [{"name": name} for name in step.image_pull_secrets]
        template["podSpecPatch"] = safe_json({"imagePullSecrets": secrets})
    if step.service_account:
        template["serviceAccountName"] = step.service_account
    if step.retries:
        template["retryStrategy"] = {
            "limit": str(step.retries),
            "retryPolicy": "Always",
            "expression": "lastRetry.status == 'Error' or "
            f"(lastRetry.exitCode == '64' and not (lastRetry.message matches '{_FINAL}'))",
            "backoff": {"duration": "10s", "factor": "2"},
        }
    return template


def _manifest(step: ArgoStep) -> str:
    """The JobSet as one JSON object, complete but for what Argo writes into its strings."""
    spec = step.spec
    author = json.dumps(spec.tree if isinstance(spec, SpecTemplate) else spec.to_dict())
    tokens = _tokens(author)
    stands: dict[str, Passed | _Computed] = {}

    def token(value: Passed | _Computed) -> str:
        made = next(tokens)
        stands[made] = value
        return made

    values = {value.hole: token(value) for value in step.values}
    jobset = spec.bind(values) if isinstance(spec, SpecTemplate) else spec
    complete = with_defaults(jobset)
    digits = token(_Computed(f"sprig.trunc(8, {_SHA})"))
    name = step_name(complete, digits, 1)
    if digits not in name:
        message = "eight digits of the run must fit in every name"
        raise InvalidSpec([Fault("spec.replicatedJobs", "native-name", message, name, "shorter names")])
    manifest = instantiate(
        complete,
        name=name,
        namespace="",
        labels={
            IDENTITY: token(_Computed(f"sprig.trunc(10, {_SHA})")),
            # By this the exit handler finds what belongs to a run. Not by Argo's own label: it would take pods that have it
            # for its own.
            RUN: token(_Computed("workflow.uid")),
        },
        annotations={
            RUN: token(_Computed(_RUN)),
            STEP: token(_Computed(_STEP, free=True)),
            GENERATION: "1",
            SPEC_HASH: _written_hash(spec),
            CHECKPOINT_KEY: token(_Computed(f"{_RUN} + '/' + sprig.trunc(10, {_SHA})")),
        },
        # Not setOwnerReference: Argo would read the manifest and write it anew, without our escapes, and block the owner's
        # deletion.
        owner={
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "name": token(_Computed("workflow.name")),
            "uid": token(_Computed("workflow.uid")),
        },
    )
    del manifest["metadata"]["namespace"]
    return _json(manifest, re.compile("(" + "|".join(map(re.escape, stands)) + ")"), stands)


def _written_hash(spec: JobSet | SpecTemplate) -> str:
    return spec_hash(spec.to_dict() if isinstance(spec, JobSet) else dict(spec.tree))


def _tokens(text: str) -> Iterator[str]:
    """Eight characters each, none of which the text holds."""
    for number in range(36**5):
        made = f"hjz{number:05d}"
        if made not in text:
            yield made


def _json(node: Any, tokens: re.Pattern[str], stands: Mapping[str, Passed | _Computed]) -> str:
    """JSON in which each token is what Argo computes in its place."""
    if isinstance(node, Mapping):
        items = (f"{safe_json(key)}:{_json(item, tokens, stands)}" for key, item in node.items())
        return "{" + ",".join(items) + "}"
    if isinstance(node, list):
        return "[" + ",".join(_json(item, tokens, stands) for item in node) + "]"
    if not isinstance(node, str):
        return safe_json(node)
    parts = [stands.get(part, part) for part in tokens.split(node) if part]
    if any(isinstance(part, Passed) or (isinstance(part, _Computed) and part.free) for part in parts):
        return f'"{embedded(parts)}"'
    # Only names and digests: no character of theirs needs an escape.
    return '"' + "".join(_plain(part) for part in parts) + '"'


def _plain(part: str | Passed | _Computed) -> str:
    if not isinstance(part, str):
        return f"{{{{={part.expression}}}}}"
    # Argo's validation reads the manifest as YAML, which has no pairs of escapes as JSON has.
    return "".join(
        f"{{{{={literal(piece)}}}}}" if _ASTRAL.match(piece) else safe_json(piece)[1:-1]
        for piece in _ASTRAL.split(part)
    )
