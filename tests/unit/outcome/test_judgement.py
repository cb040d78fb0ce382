"""What a JobSet's status means, by which rule, and what is worth another try."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_steps.observed import Condition, ContainerView, JobSetView, JobView, PodView
from jobset_steps.outcome import Attempt, Cause, Verdict
from jobset_steps.outcome.judgement import Ended, answered_by, ended, metrics_in, ruled, worth_a_retry
from jobset_steps.spec.jobset import FailurePolicy, JobSet

POLICY = FailurePolicy.model_validate(
    {
        "maxRestarts": 1,
        "rules": [
            {
                "name": "disruption",
                "action": "RestartJobSetAndIgnoreMaxRestarts",
                "onJobFailureReasons": ["PodFailurePolicy"],
                "onJobFailureMessagePatterns": ["DisruptionTarget"],
            },
            {"name": "fatal", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]},
        ],
    }
)


def _jobset(*conditions: Condition, state: str = "") -> JobSetView:
    return JobSetView("js", "ns", "u", terminal_state=state, conditions=conditions)


def _failed(reason: str, message: str) -> Condition:
    return Condition("Failed", "True", reason, message)


def _job(name: str, at: float, reason: str, message: str = "") -> JobView:
    return JobView(name, name, "w", 0, 0, conditions=(Condition("Failed", "True", reason, message, at),))


def test_completed_is_succeeded_and_failed_is_failed_with_the_jobsets_own_words() -> None:
    done = Condition("Completed", "True", "AllJobsCompleted", "jobset completed successfully")
    words = "jobset failed due to reaching max number of restarts (first failed job: js-w-3)"

    assert ended(_jobset(done, state="Completed")) == Ended(
        Verdict.SUCCEEDED, "AllJobsCompleted", "jobset completed successfully"
    )
    assert ended(_jobset(_failed("ReachedMaxRestarts", words), state="Failed")) == Ended(
        Verdict.FAILED, "ReachedMaxRestarts", words, "js-w-3"
    )


def test_either_the_condition_or_the_terminal_state_is_enough() -> None:
    assert ended(_jobset(_failed("FailedJobs", "x"))) is not None
    only_state = ended(_jobset(state="Completed"))
    assert only_state is not None
    assert (only_state.verdict, only_state.reason) == (Verdict.SUCCEEDED, "Completed")


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_condition_that_does_not_hold_ends_nothing(status: str) -> None:
    assert ended(_jobset(Condition("Failed", status), Condition("Completed", status))) is None
    assert ended(_jobset(Condition("RestartingJobSet", "True"), Condition("Suspended", "True"))) is None


def test_the_rule_that_failed_the_set_is_found_again() -> None:
    end = Ended(Verdict.FAILED, "FailJobSetFailurePolicyAction", "", "a")

    assert ruled(POLICY, [_job("a", 1, "PodFailurePolicy", "exit 64")], restarts_counted=0, end=end) == (
        "fatal",
        "FailJobSet",
    )


def test_no_rule_and_restarts_used_up() -> None:
    end = Ended(Verdict.FAILED, "ReachedMaxRestarts", "", "a")

    assert ruled(POLICY, [_job("a", 1, "BackoffLimitExceeded")], restarts_counted=1, end=end) == (
        "",
        "RestartJobSet",
    )


def test_no_policy_fails_at_the_first_failure() -> None:
    end = Ended(Verdict.FAILED, "FailedJobs", "", "a")

    assert ruled(None, [_job("a", 1, "BackoffLimitExceeded")], restarts_counted=0, end=end) == (
        "",
        "FailJobSet",
    )


def test_a_job_that_failed_after_the_decision_does_not_change_it() -> None:
    # Given a crash that used up the restarts, and a fatal exit seen a moment later
    crash, fatal = _job("a", 1, "BackoffLimitExceeded"), _job("b", 2, "PodFailurePolicy", "exit 64")
    end = Ended(Verdict.FAILED, "ReachedMaxRestarts", "", "a")

    # Then the JobSet's own reason and first failed Job say which of them decided
    assert ruled(POLICY, [crash, fatal], restarts_counted=1, end=end) == ("", "RestartJobSet")


def test_where_no_job_was_seen_the_reason_still_tells_the_action() -> None:
    end = Ended(Verdict.FAILED, "ReachedMaxRestarts", "", "a")

    assert ruled(POLICY, [], restarts_counted=1, end=end) == ("", "RestartJobSet")
    assert answered_by(POLICY, [], restarts_counted=0, counted=True) is None


def test_the_restart_that_was_not_counted_was_the_free_one() -> None:
    jobs = [_job("a", 1, "BackoffLimitExceeded"), _job("b", 2, "PodFailurePolicy", "DisruptionTarget")]

    free = answered_by(POLICY, jobs, restarts_counted=0, counted=False)
    counted = answered_by(POLICY, jobs, restarts_counted=0, counted=True)

    assert free is not None
    assert free.rule == "disruption"
    assert counted is not None
    assert (counted.rule, counted.first_failed_job) == ("", "a")


@pytest.mark.parametrize(
    ("last", "worth"),
    [
        (None, False),
        (Attempt(number=0), False),
        (Attempt(number=0, missed=True), False),
        (Attempt(number=3, cause=Cause(exit_code=1)), False),
        (Attempt(number=3, cause=Cause(exit_code=137, oom=True)), False),
        (Attempt(number=3, cause=Cause(exit_code=137, disrupted=True)), True),
    ],
)
def test_only_infrastructure_is_worth_a_retry(last: Attempt | None, worth: bool) -> None:
    assert worth_a_retry(last) is worth


def _spec(*names: str, **more: Any) -> Any:
    template = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}
    jobs = [{"name": name, "template": template} for name in names]
    return JobSet.from_dict(
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "spec": {"replicatedJobs": jobs, **more},
        }
    ).spec


def _pod(job: str, index: int, message: str) -> PodView:
    container = ContainerView("c", "terminated", "Completed", message, exit_code=0)
    return PodView(f"{job}-{index}", "u", job, job, 0, index, 0, phase="Succeeded", containers=(container,))


def test_the_leaders_metrics_count() -> None:
    pods = [_pod("w", 1, '{"metrics": {"a": 2}}'), _pod("w", 0, '{"metrics": {"a": 1}}')]

    assert metrics_in(_spec("w"), pods) == {"a": 1}


def test_the_coordinator_is_the_leader_where_there_is_one() -> None:
    pods = [_pod("init", 0, '{"metrics": {"a": 1}}'), _pod("w", 0, '{"metrics": {"a": 2}}')]
    spec = _spec("init", "w", coordinator={"replicatedJob": "w", "jobIndex": 0, "podIndex": 0})

    assert metrics_in(spec, pods) == {"a": 2}


def test_an_initialiser_that_wrote_nothing_does_not_hide_the_metrics() -> None:
    assert metrics_in(_spec("init", "w"), [_pod("init", 0, ""), _pod("w", 0, '{"metrics": {}}')]) == {}


@pytest.mark.parametrize("message", ["", "not json", "[1]", '{"metrics": 3}', "null", '{"loss": 1}'])
def test_other_termination_messages_are_no_metrics(message: str) -> None:
    assert metrics_in(_spec("w"), [_pod("w", 0, message)]) is None
