"""What the preset failure policies answer, on the words that the Job controller writes."""

from __future__ import annotations

import pytest

from jobset_steps.observed import Condition, JobView
from jobset_steps.semantics.failure_policy import decide_failure
from jobset_steps.spec.jobset import FailurePolicy
from jobset_steps.spec.resilience import pod_failure_policy

# As Kubernetes 1.34 words them.
EVICTED = "Pod ml/train-node-0-1-x9 has condition DisruptionTarget matching FailJob rule at index 0"
RECLAIMED = "Container trainer for pod ml/train-node-0-1-x9 failed with exit code 143 matching FailJob rule at index 1"
FATAL = (
    "Container trainer for pod ml/train-node-0-1-x9 failed with exit code 65 matching FailJob rule at index 2"
)
CRASHED = "Job has reached the specified backoff limit"
POLICY, BACKOFF = "PodFailurePolicy", "BackoffLimitExceeded"


def answer(policy: FailurePolicy, reason: str, message: str) -> tuple[str, str]:
    condition = Condition("Failed", "True", reason, message, 1.0)
    job = JobView(
        name="train-node-0", uid="u", replicated_job="node", index=0, attempt=0, conditions=(condition,)
    )
    decision = decide_failure(policy, [job], restarts_counted=0)
    return decision.rule, decision.action


FREE, RESTART, FAIL = "RestartJobSetAndIgnoreMaxRestarts", "RestartJobSet", "FailJobSet"


@pytest.mark.parametrize(
    ("policy", "reason", "message", "expected"),
    [
        (FailurePolicy.resilient(), POLICY, EVICTED, ("disruption", FREE)),
        (FailurePolicy.resilient(), POLICY, FATAL, ("fatalExitCode", FAIL)),
        (FailurePolicy.resilient(), BACKOFF, CRASHED, ("", RESTART)),
        (FailurePolicy.spot(), POLICY, EVICTED, ("disruption", FREE)),
        (FailurePolicy.spot(), POLICY, RECLAIMED, ("reclaimed", FREE)),
        (FailurePolicy.spot(), POLICY, FATAL, ("fatalExitCode", FAIL)),
        (FailurePolicy.spot(), BACKOFF, CRASHED, ("", RESTART)),
        (FailurePolicy.fail_fast(), POLICY, EVICTED, ("failFast", FAIL)),
        (FailurePolicy.fail_fast(), BACKOFF, CRASHED, ("failFast", FAIL)),
    ],
)
def test_each_failure_is_answered_by_its_rule(
    policy: FailurePolicy, reason: str, message: str, expected: tuple[str, str]
) -> None:
    assert answer(policy, reason, message) == expected


def test_an_end_by_sigterm_is_told_apart_before_fatal_codes_and_only_for_spot() -> None:
    def codes(rules: dict) -> list:  # type: ignore[type-arg]
        return [rule["onExitCodes"]["values"] for rule in rules["rules"] if "onExitCodes" in rule]

    assert codes(pod_failure_policy((2, 143))) == [[2, 143]]
    assert codes(pod_failure_policy((2, 143), reclaimed=True)) == [[143], [2]]
    assert codes(pod_failure_policy((), reclaimed=True)) == [[143]]
    assert codes(pod_failure_policy(())) == []
    assert (FailurePolicy.spot().tells_reclaimed, FailurePolicy.resilient().tells_reclaimed) == (True, False)
