"""In which order replicated jobs start: the InOrder start-up policy and dependsOn.

It answers whether one replicated job may start, from the counts of the Jobs before it; it never looks at pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jobset_steps.observed import ReplicatedJobStatus

if TYPE_CHECKING:
    from jobset_steps.spec.jobset import ReplicatedJob, StartupPolicy

__all__ = ["dependencies_met", "has_started", "in_order"]


def in_order(policy: StartupPolicy | None) -> bool:
    """Whether replicated jobs start one after the other."""
    return policy is not None and policy.startup_policy_order == "InOrder"


def has_started(replicas: int, status: ReplicatedJobStatus) -> bool:
    """Whether each of its Jobs is ready or has ended. A failed Job has started."""
    return replicas == status.ready + status.succeeded + status.failed


def dependencies_met(
    job: ReplicatedJob, replicas: Mapping[str, int], statuses: Mapping[str, ReplicatedJobStatus]
) -> bool:
    """Whether all that it depends on is Ready or Complete, as it asks.

    `replicas` holds the replicated jobs up to and including this one, by name. Ready holds for a failed dependency
    too; and a job that depends on itself is never met, since its Jobs would have to exist first (JobSet 0.11.1).
    """
    for dependency in job.depends_on or ():
        status = statuses.get(dependency.name)
        if status is None:
            return False
        # A dependency that is not listed before counts as zero replicas, as a missing key does in the controller.
        wanted = replicas.get(dependency.name, 0)
        if dependency.status == "Complete":
            if status.succeeded != wanted:
                return False
        elif not has_started(wanted, status):
            return False
    return True
