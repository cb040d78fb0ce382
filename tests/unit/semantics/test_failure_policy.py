"""Which rule answers failed Jobs, as JobSet 0.11.1 decides it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_views import BACKOFF, DISRUPTED, FATAL, job, policy

from jobset_steps.observed import Condition, JobView
from jobset_steps.semantics.failure_policy import decide_failure

DISRUPTION_FREE = {
    "name": "disruption",
    "action": "RestartJobSetAndIgnoreMaxRestarts",
    "onJobFailureMessagePatterns": ["condition DisruptionTarget"],
}
FATAL_FAILS = {"name": "fatal", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}


def test_without_a_policy_the_first_failure_ends_the_jobset() -> None:
    failed = [job(index=1, failed=BACKOFF, at=5.0), job(index=0, failed=BACKOFF, at=9.0)]

    decision = decide_failure(None, failed, restarts_counted=0)

    assert decision.ends
    assert decision.reason == "FailedJobs"
    assert decision.message == "jobset failed due to one or more job failures (first failed job: t-w-1)"


def test_a_failure_that_no_rule_matches_restarts_and_counts() -> None:
    decision = decide_failure(policy(maxRestarts=1), [job(failed=BACKOFF)], restarts_counted=0)

    assert (decision.rule, decision.action, decision.counted) == ("", "RestartJobSet", True)
    assert decision.reason == "RestartJobSetFailurePolicyAction"
    assert decision.message == "applying RestartJobSet failure policy action (first failed job: t-w-0)"


def test_restarts_that_are_spent_end_the_jobset_and_name_the_rule() -> None:
    rules = [{"name": "again", "action": "RestartJobSet"}]

    decision = decide_failure(policy(maxRestarts=2, rules=rules), [job(failed=BACKOFF)], restarts_counted=2)

    assert (decision.ends, decision.rule, decision.counted) == (True, "again", False)
    assert decision.reason == "ReachedMaxRestarts"
    assert (
        decision.message == "jobset failed due to reaching max number of restarts (first failed job: t-w-0)"
    )


@pytest.mark.parametrize("max_restarts", [None, 0, -1])
def test_s10_max_restarts_below_one_never_restarts(max_restarts: int | None) -> None:
    given = {} if max_restarts is None else {"maxRestarts": max_restarts}

    assert decide_failure(policy(**given), [job(failed=BACKOFF)], restarts_counted=0).ends


@given(st.integers(0, 50), st.integers(0, 5))
def test_c12_free_restarts_never_reach_max_restarts(counted: int, maximum: int) -> None:
    rules = [DISRUPTION_FREE]

    decision = decide_failure(
        policy(maxRestarts=maximum, rules=rules), [job(failed=DISRUPTED)], restarts_counted=counted
    )

    assert not decision.ends
    assert not decision.counted
    assert decision.reason == "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction"


def test_c12_a_fatal_exit_code_fails_at_once_beside_a_rule_for_disruptions() -> None:
    both = policy(maxRestarts=3, rules=[DISRUPTION_FREE, FATAL_FAILS])

    fatal = decide_failure(both, [job(failed=FATAL)], restarts_counted=0)
    disrupted = decide_failure(both, [job(failed=DISRUPTED)], restarts_counted=0)

    assert (fatal.rule, fatal.action, fatal.ends) == ("fatal", "FailJobSet", True)
    assert fatal.message == "applying FailJobSet failure policy action (first failed job: t-w-0)"
    assert (disrupted.rule, disrupted.ends) == ("disruption", False)


def test_the_first_rule_in_order_decides_not_the_first_failure() -> None:
    rules = [
        {"name": "driver", "action": "FailJobSet", "targetReplicatedJobs": ["driver"]},
        {"name": "rest", "action": "RestartJobSet"},
    ]
    failed = [
        job("w", failed=BACKOFF, at=1.0),
        job("driver", 1, failed=BACKOFF, at=3.0),
        job("driver", 0, failed=BACKOFF, at=4.0),
    ]

    decision = decide_failure(policy(maxRestarts=9, rules=rules), failed, restarts_counted=0)

    assert (decision.rule, decision.first_failed_job) == ("driver", "t-driver-1")


def test_reason_and_pattern_and_target_must_all_match() -> None:
    rule = {
        "name": "narrow",
        "action": "FailJobSet",
        "onJobFailureReasons": ["PodFailurePolicy"],
        "onJobFailureMessagePatterns": ["exit code 64"],
        "targetReplicatedJobs": ["w"],
    }

    def rule_for(failed: JobView) -> str:
        return decide_failure(policy(maxRestarts=1, rules=[rule]), [failed], restarts_counted=0).rule

    assert rule_for(job("w", failed=FATAL)) == "narrow"
    assert rule_for(job("v", failed=FATAL)) == ""
    assert rule_for(job("w", failed=DISRUPTED)) == ""
    assert rule_for(job("w", failed=("BackoffLimitExceeded", FATAL[1]))) == ""


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "[z-a]", "*"])
def test_s6_a_pattern_that_is_not_re2_never_matches(pattern: str) -> None:
    rules = [{"name": "bad", "action": "FailJobSet", "onJobFailureMessagePatterns": [pattern]}]

    decision = decide_failure(policy(maxRestarts=1, rules=rules), [job(failed=BACKOFF)], restarts_counted=0)

    assert (decision.rule, decision.action, decision.counted) == ("", "RestartJobSet", True)


def test_a_bad_pattern_does_not_keep_a_good_one_from_matching() -> None:
    rules = [{"name": "r", "action": "FailJobSet", "onJobFailureMessagePatterns": ["(", "limit$"]}]

    assert decide_failure(policy(rules=rules), [job(failed=BACKOFF)], restarts_counted=0).rule == "r"


def test_a_rule_without_a_name_is_called_as_the_webhook_calls_it() -> None:
    rules = [
        {"action": "FailJobSet", "targetReplicatedJobs": ["other"]},
        {"action": "FailJobSet"},
    ]

    decision = decide_failure(policy(rules=rules), [job(failed=BACKOFF)], restarts_counted=0)

    assert decision.rule == "failurePolicyRule1"


def test_of_several_failures_at_the_same_time_the_choice_is_stable() -> None:
    failed = [job(index=index, failed=BACKOFF, at=7.0) for index in (3, 1, 2)]

    names = {
        decide_failure(None, order, restarts_counted=0).first_failed_job for order in (failed, failed[::-1])
    }

    assert names == {"t-w-1"}


def test_jobs_that_have_not_failed_are_passed_over() -> None:
    not_yet = JobView(
        "t-w-1", "u1", "w", 1, 0, conditions=(Condition("FailureTarget", "True", *BACKOFF, since=0.0),)
    )

    decision = decide_failure(None, [not_yet, job(failed=BACKOFF, at=9.0)], restarts_counted=0)

    assert decision.first_failed_job == "t-w-0"
    with pytest.raises(ValueError, match="none given"):
        decide_failure(None, [not_yet], restarts_counted=0)
