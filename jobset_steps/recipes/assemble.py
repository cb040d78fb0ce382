"""A JobSet out of its replicated jobs, or a SpecTemplate where something in it only the pipeline will know.

Every recipe ends here: the defaults are set, or, where the pipeline decides something, holes are left for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.holes import template_of
from jobset_steps.spec.jobset import FailurePolicy, JobSet, VolumeClaimPolicy
from jobset_steps.spec.resilience import FATAL_EXIT_CODES, pod_failure_policy
from jobset_steps.spec.template import SpecTemplate

__all__ = ["QUEUE", "jobset"]

QUEUE = "kueue.x-k8s.io/queue-name"
"""Kueue's label. It goes on the JobSet and nowhere else: on a pod it would queue that pod by itself."""


def jobset(
    name: str,
    replicated_jobs: Sequence[Mapping[str, Any]],
    *,
    queue: Any = None,
    failure_policy: FailurePolicy | None = None,
    fatal_exit_codes: Sequence[int] = FATAL_EXIT_CODES,
    volume_claim_policies: Sequence[VolumeClaimPolicy] = (),
    succeeds_with: Sequence[str] = (),
    annotations: Mapping[str, Any] | None = None,
) -> JobSet | SpecTemplate:
    """The JobSet with its safe defaults. Raises InvalidSpec where its shape is wrong.

    `succeeds_with` names the replicated jobs that must succeed; all of them where none is named.
    """
    reclaimed = failure_policy is not None and failure_policy.tells_reclaimed
    for replicated in replicated_jobs:
        job = replicated["template"]["spec"]
        job["podFailurePolicy"] = pod_failure_policy(fatal_exit_codes, reclaimed=reclaimed)
    spec: dict[str, Any] = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "successPolicy": {
            "operator": "All",
            **({"targetReplicatedJobs": list(succeeds_with)} if succeeds_with else {}),
        },
        "replicatedJobs": list(replicated_jobs),
    }
    if failure_policy is not None:
        spec["failurePolicy"] = failure_policy.to_dict()
    if volume_claim_policies:
        spec["volumeClaimPolicies"] = [policy.to_dict() for policy in volume_claim_policies]
    meta = {
        "name": name,
        **({"labels": {QUEUE: queue}} if queue is not None else {}),
        **({"annotations": dict(annotations)} if annotations else {}),
    }
    made = template_of(
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": meta,
            "spec": spec,
        }
    )
    return made if isinstance(made, SpecTemplate) else with_defaults(made)
