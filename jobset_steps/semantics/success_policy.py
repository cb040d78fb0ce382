"""Whether enough child Jobs have succeeded for the JobSet to be complete.

It counts Jobs, never pods, and is asked only where at least one Job succeeded and none failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jobset_steps.semantics.children import replicas_of

if TYPE_CHECKING:
    from jobset_steps.spec.jobset import ReplicatedJob, SuccessPolicy

__all__ = ["is_met"]


def is_met(
    policy: SuccessPolicy | None, replicated_jobs: Sequence[ReplicatedJob], succeeded: Mapping[str, int]
) -> bool:
    """Whether `succeeded` (Jobs that ended well, by replicated job) satisfies the policy; None is All of everything.

    With All and targets of zero replicas nothing is expected, so any success completes the JobSet (JobSet 0.11.1).
    """
    targets = policy.target_replicated_jobs if policy is not None else ()
    targeted = [job for job in replicated_jobs if not targets or job.name in targets]
    any_will_do = policy is not None and policy.operator == "Any"
    expected = 1 if any_will_do else sum(replicas_of(job) for job in targeted)
    return sum(succeeded.get(job.name, 0) for job in targeted) >= expected
