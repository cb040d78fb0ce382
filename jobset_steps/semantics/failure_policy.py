"""Which failure-policy rule answers a set of failed child Jobs, and whether the JobSet restarts or fails.

It decides from the failed Jobs of the current attempt and the restarts counted so far; it never changes a status.
Reasons and messages are the ones that the JobSet controller writes (JobSet 0.11.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import re2

from jobset_steps.observed import Condition, JobView

if TYPE_CHECKING:
    from jobset_steps.spec.jobset import FailurePolicy, FailurePolicyRule

__all__ = [
    "FAIL_JOB_SET",
    "RESTART_JOB_SET",
    "RESTART_JOB_SET_AND_IGNORE_MAX_RESTARTS",
    "FailureDecision",
    "decide_failure",
    "first_failed_job",
    "match_rule",
]

FAIL_JOB_SET = "FailJobSet"
RESTART_JOB_SET = "RestartJobSet"
RESTART_JOB_SET_AND_IGNORE_MAX_RESTARTS = "RestartJobSetAndIgnoreMaxRestarts"


@dataclass(frozen=True, slots=True)
class FailureDecision:
    """What the failure policy says about the failed Jobs of one attempt.

    `rule` is the rule that matched, "" where none did or none is written; `action` is its action, RestartJobSet where
    no rule matched, FailJobSet where there is no failure policy at all. `first_failed_job` is the Job that the
    JobSet's message names. `ends` is true where the JobSet fails for good: then `reason` and `message` are those of
    its Failed condition, otherwise those of the restart's event.
    """

    rule: str
    action: str
    first_failed_job: str
    ends: bool
    reason: str
    message: str

    @property
    def counted(self) -> bool:
        """Whether this is a restart that counts towards maxRestarts."""
        return not self.ends and self.action == RESTART_JOB_SET


def decide_failure(
    failure_policy: FailurePolicy | None, failed: Sequence[JobView], *, restarts_counted: int
) -> FailureDecision:
    """What the controller does about `failed`, the child Jobs of the current attempt that have failed.

    `restarts_counted` is status.restartsCountTowardsMax before the decision. Jobs without a Failed condition are
    passed over. Raises ValueError where none has failed, since the controller asks only then.
    """
    failed = [job for job in failed if job.is_failed]
    if not failed:
        raise ValueError("failed: at least one Job whose Failed condition holds; none given")
    if failure_policy is None:
        return _ends("", FAIL_JOB_SET, first_failed_job(failed), "FailedJobs", _NO_POLICY)
    number, job = match_rule(failure_policy.rules, failed)
    name, action = "", RESTART_JOB_SET
    if number is not None:
        rule = failure_policy.rules[number]
        # The name that JobSet's webhook gives to a rule without one.
        name, action = rule.name or f"failurePolicyRule{number}", rule.action
    if action == FAIL_JOB_SET:
        return _ends(name, action, job, "FailJobSetFailurePolicyAction", _applying(action))
    # Absent is 0. A negative maxRestarts is accepted by JobSet 0.11.1 and then acts as 0 too.
    if action == RESTART_JOB_SET and restarts_counted >= (failure_policy.max_restarts or 0):
        return _ends(name, action, job, "ReachedMaxRestarts", _SPENT)
    return FailureDecision(
        rule=name,
        action=action,
        first_failed_job=job.name,
        ends=False,
        reason=f"{action}FailurePolicyAction",
        message=_with_first_failed(_applying(action), job),
    )


def match_rule(rules: Sequence[FailurePolicyRule], failed: Sequence[JobView]) -> tuple[int | None, JobView]:
    """The number of the first rule that any failed Job matches, with the earliest failed Job of those that match it.

    Where no rule matches: None, and the earliest failed Job of all. `failed` is not empty.
    """
    for number, rule in enumerate(rules):
        if matching := [job for job in failed if _applies(rule, job)]:
            return number, first_failed_job(matching)
    return None, first_failed_job(failed)


def first_failed_job(failed: Sequence[JobView]) -> JobView:
    """The Job whose Failed condition is oldest. Of several at the same time the first by name: the controller's own
    choice is then by chance.
    """
    return min(failed, key=lambda job: (_failure(job).since or 0.0, job.name))


def _applies(rule: FailurePolicyRule, job: JobView) -> bool:
    failure = _failure(job)
    if rule.on_job_failure_reasons and failure.reason not in rule.on_job_failure_reasons:
        return False
    patterns = rule.on_job_failure_message_patterns
    if patterns and not any(_matches(pattern, failure.message) for pattern in patterns):
        return False
    # Without a parent no rule applies, not even one without targets.
    if not job.replicated_job:
        return False
    return not rule.target_replicated_jobs or job.replicated_job in rule.target_replicated_jobs


def _failure(job: JobView) -> Condition:
    return job.condition("Failed") or Condition("Failed", "Unknown")


def _matches(pattern: str, message: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is not None and compiled.search(message) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    """None for a pattern that is not RE2: JobSet admits it, and the rule then never matches."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


_NO_POLICY = "jobset failed due to one or more job failures"
_SPENT = "jobset failed due to reaching max number of restarts"


def _applying(action: str) -> str:
    return f"applying {action} failure policy action"


def _with_first_failed(message: str, job: JobView) -> str:
    return f"{message} (first failed job: {job.name})"


def _ends(rule: str, action: str, job: JobView, reason: str, message: str) -> FailureDecision:
    return FailureDecision(
        rule=rule,
        action=action,
        first_failed_job=job.name,
        ends=True,
        reason=reason,
        message=_with_first_failed(message, job),
    )
