"""What a JobSet's status means: whether it has ended, how, by which rule, and whether another try is worth it. Pure.

It reads only what is final. A count of failed Jobs, a condition that does not hold, a suspension that was lifted: none of
them ends anything here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobset_steps.observed import JobSetView, JobView, PodView
from jobset_steps.outcome.types import Attempt, Verdict
from jobset_steps.semantics.failure_policy import FailureDecision, decide_failure
from jobset_steps.spec.jobset import FailurePolicy, JobSetSpec

__all__ = ["Ended", "answered_by", "ended", "metrics_in", "ruled", "worth_a_retry"]

_FIRST_FAILED = re.compile(r"\(first failed job: ([^)\s]+)\)")
# JobSet's reasons where the child Jobs that it judged are gone (JobSet controller, failure policy actions).
_ACTION_OF_REASON = {
    "FailJobSetFailurePolicyAction": "FailJobSet",
    "FailedJobs": "FailJobSet",
    "ReachedMaxRestarts": "RestartJobSet",
}


@dataclass(frozen=True, slots=True)
class Ended:
    """A terminal JobSet: verdict Succeeded or Failed, with the JobSet's own reason and message."""

    verdict: Verdict
    reason: str
    message: str
    first_failed_job: str = ""


def ended(jobset: JobSetView) -> Ended | None:
    """How the JobSet ended, None while it has not."""
    for state, verdict in (("Completed", Verdict.SUCCEEDED), ("Failed", Verdict.FAILED)):
        condition = jobset.condition(state)
        if jobset.terminal_state != state and (condition is None or jobset.terminal_state):
            continue
        reason, message = (condition.reason, condition.message) if condition else (state, "")
        named = _FIRST_FAILED.search(message)
        return Ended(verdict, reason or state, message, named.group(1) if named else "")
    return None


def answered_by(
    policy: FailurePolicy | None, failed: Sequence[JobView], *, restarts_counted: int, counted: bool
) -> FailureDecision | None:
    """The decision that restarted the JobSet, re-matched from the failed Jobs seen; None where none was seen.

    `counted` is what the status showed: whether the restart counted. The controller may have decided when fewer Jobs
    had failed than were seen here, so of the possible decisions the one that agrees with `counted` is taken.
    """
    return _agreeing(
        policy, failed, restarts_counted, lambda found: not found.ends and found.counted is counted
    )


def ruled(
    policy: FailurePolicy | None, failed: Sequence[JobView], *, restarts_counted: int, end: Ended
) -> tuple[str, str]:
    """Rule and action that made the JobSet fail: the controller names neither. ("", action) where no rule matched.

    As in `answered_by`, the decision that agrees with the JobSet's own reason and first failed Job is taken.
    """
    decision = _agreeing(
        policy,
        failed,
        restarts_counted,
        lambda found: (
            found.ends and found.reason == end.reason and found.first_failed_job == end.first_failed_job
        ),
    )
    if decision is None:
        return "", _ACTION_OF_REASON.get(end.reason, "")
    return decision.rule, decision.action


def worth_a_retry(last: Attempt | None) -> bool:
    """Whether a failed JobSet deserves a new one: only where infrastructure ended its last attempt.

    Restarts that the training used up by its own crashes are no reason, whatever else was disrupted before.
    """
    return last is not None and last.cause is not None and last.cause.disrupted


def metrics_in(spec: JobSetSpec, pods: Sequence[PodView]) -> dict[str, Any] | None:
    """What the leader wrote to its termination log when it ended well; None while no pod shows any.

    The leader is the coordinator if there is one, else the first pod of the first replicated job. Where it wrote
    nothing, the first pod that did counts: an initialiser may come first in the list.
    """
    order = [job.name for job in spec.replicated_jobs]
    at = spec.coordinator
    leader = (
        (at.replicated_job, at.job_index or 0, at.pod_index or 0) if at else (order[0] if order else "", 0, 0)
    )

    def rank(pod: PodView) -> tuple[bool, int, int, int]:
        place = order.index(pod.replicated_job) if pod.replicated_job in order else len(order)
        return (pod.replicated_job, pod.job_index, pod.index) != leader, place, pod.job_index, pod.index

    for pod in sorted((pod for pod in pods if pod.phase == "Succeeded"), key=rank):
        for container in pod.containers:
            if container.state == "terminated" and (metrics := _metrics(container.message)) is not None:
                return metrics
    return None


def _metrics(message: str) -> dict[str, Any] | None:
    try:
        found = json.loads(message)
    except ValueError:
        return None
    metrics = found.get("metrics") if isinstance(found, dict) else None
    return metrics if isinstance(metrics, dict) else None


def _agreeing(
    policy: FailurePolicy | None, failed: Sequence[JobView], restarts_counted: int, agrees: Any
) -> FailureDecision | None:
    """All failed Jobs first, then ever fewer of the latest: the first decision that agrees, else that of all."""
    jobs = sorted((job for job in failed if job.is_failed), key=lambda job: (_failed_at(job), job.name))
    sets = [jobs[:size] for size in range(len(jobs), 0, -1)] + [[job] for job in jobs[1:]]
    decisions = [decide_failure(policy, jobs, restarts_counted=restarts_counted) for jobs in sets]
    return next((found for found in decisions if agrees(found)), decisions[0] if decisions else None)


def _failed_at(job: JobView) -> float:
    condition = job.condition("Failed")
    return condition.since or 0.0 if condition else 0.0
