"""The Job controller of Kubernetes 1.34, pass by pass."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pods import DISRUPTION, Driven, terms

from jobset_steps.observed import ContainerView
from jobset_steps.semantics.job import JobState
from jobset_steps.semantics.job_success_policy import parse_indexes

SPENT = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")


def indexes(job: Driven) -> list[int]:
    return [pod.view.index for pod in job.pods.values()]


def test_an_indexed_job_makes_the_lowest_indexes_first_and_never_more_than_it_may() -> None:
    job = Driven(terms(parallelism=2, completions=4))

    job.look(0.0)
    assert indexes(job) == [0, 1]
    job.end("p1", 0, 5.0)
    job.look(5.0)

    assert indexes(job) == [0, 1, 2]
    assert (job.view.active, job.view.succeeded, job.view.started_at) == (2, 1, 0.0)


def test_a_job_completes_once_every_index_has_succeeded() -> None:
    job = Driven(terms(parallelism=2, completions=2))
    job.look(0.0)
    job.end("p0", 0, 1.0)
    job.end("p1", 0, 2.0)

    decision = job.look(2.0)

    assert job.view.is_complete
    assert job.words == ("CompletionsReached", "Reached expected number of succeeded pods")
    assert [event.reason for event in decision.events] == ["Completed"]
    assert job.look(3.0).state is job.state


def test_with_backoff_limit_zero_the_first_failed_pod_fails_the_job() -> None:
    job = Driven(terms(parallelism=1, completions=1, backoffLimit=0))
    job.look(0.0)
    job.end("p0", 1, 3.0)

    job.look(3.0)

    assert job.view.is_failed
    assert job.words == SPENT
    assert (job.view.failed, job.view.active) == (1, 0)


def test_a_failed_job_ends_only_once_its_last_pod_has_ended() -> None:
    job = Driven(terms(parallelism=2, completions=2, backoffLimit=0))
    job.look(0.0)
    job.end("p0", 1, 3.0)

    decision = job.look(3.0)

    assert decision.delete == ("p1",)
    assert not job.view.is_failed
    assert job.view.condition("FailureTarget") is not None
    assert (job.view.terminating, job.view.failed) == (1, 2)

    job.end("p1", 143, 20.0)
    job.look(20.0)

    failed = job.view.condition("Failed")
    assert failed is not None
    assert (failed.reason, failed.since) == ("BackoffLimitExceeded", 20.0)
    assert (job.view.terminating, job.view.failed) == (0, 2)


def test_a_pod_is_replaced_after_ten_seconds_and_then_twice_as_long_each_time() -> None:
    job = Driven(terms(parallelism=1, completions=1, backoffLimit=6))
    job.look(0.0)
    now, waits = 0.0, []
    for number in range(7):
        job.end(f"p{number}", 1, now)
        decision = job.look(now)
        if job.view.is_failed:
            break
        assert decision.look_again_at is not None
        assert job.look(decision.look_again_at - 0.1).create == ()
        waits.append(decision.look_again_at - now)
        now = decision.look_again_at
        assert len(job.look(now).create) == 1

    assert waits == [10, 20, 40, 80, 160, 320]
    assert job.view.is_failed
    assert job.view.failed == 7


def test_no_wait_is_longer_than_ten_minutes() -> None:
    job = Driven(terms(parallelism=1, completions=1, backoffLimit=99))
    job.look(0.0)
    now = 0.0
    for number in range(12):
        job.end(f"p{number}", 1, now)
        wait = job.look(now).look_again_at
        assert wait is not None
        now, before = wait, now
        job.look(now)

    assert now - before == 600


def test_a_success_ends_the_row_of_failures() -> None:
    job = Driven(terms(parallelism=2, completions=3, backoffLimit=9))
    job.look(0.0)
    job.end("p0", 1, 1.0)
    job.look(1.0)
    job.end("p1", 0, 2.0)

    decision = job.look(2.0)

    assert [new.index for new in decision.create] == [0, 2]


def test_while_it_waits_to_replace_a_pod_the_status_says_that_none_is_active() -> None:
    job = Driven(terms(parallelism=2, completions=2, backoffLimit=9))
    job.look(0.0)
    job.end("p0", 1, 1.0)

    job.look(1.0)

    assert job.view.active == 0
    assert sum(pod.active for pod in job.pods.values()) == 1


def test_the_deadline_fails_the_job_and_stops_its_pods() -> None:
    job = Driven(terms(parallelism=1, completions=1, activeDeadlineSeconds=30))
    assert job.look(0.0).look_again_at == 30.0

    decision = job.look(30.0)

    assert decision.delete == ("p0",)
    assert job.words == ("DeadlineExceeded", "Job was active longer than specified deadline")


def test_a_suspended_job_has_no_pods_and_its_deadline_stands_still() -> None:
    job = Driven(terms(parallelism=1, completions=1, activeDeadlineSeconds=30), suspended=True)

    decision = job.look(100.0)

    assert (decision.create, decision.look_again_at) == ((), None)
    assert job.view.started_at is None
    suspended = job.view.condition("Suspended")
    assert suspended is not None
    assert suspended.reason == "JobSuspended"


def test_suspending_ends_pods_without_counting_them_as_failed() -> None:
    job = Driven(terms(parallelism=2, completions=2, backoffLimit=0))
    job.look(0.0)
    job.state = _suspended(job, value=True)

    assert job.look(5.0).delete == ("p0", "p1")
    for uid in ("p0", "p1"):
        job.end(uid, 143, 6.0)
    job.look(6.0)

    assert (job.view.failed, job.view.active, job.view.terminating) == (0, 0, 0)
    assert not job.view.is_failed

    job.state = _suspended(job, value=False)
    decision = job.look(50.0)

    assert len(decision.create) == 2
    assert job.view.condition("Suspended") is None
    assert job.view.started_at == 50.0


def test_c8_a_deleted_pod_counts_as_failed_at_once_and_is_replaced() -> None:
    job = Driven(terms(parallelism=1, completions=1, backoffLimit=1))
    job.look(0.0)
    job.delete("p0", 4.0)

    decision = job.look(4.0)

    assert job.view.failed == 1
    assert decision.create == ()
    assert [new.index for new in job.look(14.0).create] == [0]


def test_c8_with_replacement_of_failed_pods_only_a_pod_that_is_stuck_terminating_blocks_its_index() -> None:
    job = Driven(terms(parallelism=1, completions=1, backoffLimit=3, podReplacementPolicy="Failed"))
    job.look(0.0)
    job.delete("p0", 4.0)

    assert job.look(900.0).create == ()
    assert (job.view.failed, job.view.terminating) == (0, 1)
    job.end("p0", 143, 901.0)
    job.look(901.0)

    assert job.view.failed == 1
    assert len(job.look(911.0).create) == 1


def test_c8_a_disruption_fails_the_job_once_the_pod_has_ended() -> None:
    rules = [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    job = Driven(terms(parallelism=2, completions=2, backoffLimit=0, podFailurePolicy={"rules": rules}))
    job.look(0.0)
    job.delete("p1", 4.0)
    job.look(4.0)
    assert job.words == ("", "")

    job.end("p1", 143, 6.0, DISRUPTION)
    job.look(6.0)

    assert job.words == (
        "PodFailurePolicy",
        "Pod default/p1 has condition DisruptionTarget matching FailJob rule at index 0",
    )


def test_an_exit_code_fails_the_job_whatever_its_backoff_limit() -> None:
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [64, 65]}}]
    job = Driven(terms(parallelism=1, completions=1, backoffLimit=6, podFailurePolicy={"rules": rules}))
    job.look(0.0)
    job.end("p0", 65, 1.0)

    job.look(1.0)

    assert job.view.is_failed
    assert job.words == (
        "PodFailurePolicy",
        "Container main for pod default/p0 failed with exit code 65 matching FailJob rule at index 0",
    )


def test_an_ignored_failure_does_not_count() -> None:
    rules = [{"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [1]}}]
    job = Driven(terms(parallelism=1, completions=1, backoffLimit=0, podFailurePolicy={"rules": rules}))
    job.look(0.0)
    job.end("p0", 9, 1.0)

    job.look(1.0)

    assert (job.view.failed, job.view.is_failed) == (0, False)
    assert len(job.look(11.0).create) == 1


def test_a_container_name_narrows_a_rule() -> None:
    on = {"operator": "In", "values": [3], "containerName": "side"}
    rules = [{"action": "FailJob", "onExitCodes": on}]
    job = Driven(terms(parallelism=1, completions=1, backoffLimit=6, podFailurePolicy={"rules": rules}))
    job.look(0.0)
    job.end("p0", 3, 1.0, container="main")

    job.look(1.0)

    assert job.words == ("", "")


def test_with_a_limit_by_index_the_others_go_on_and_the_job_fails_at_the_end() -> None:
    job = Driven(terms(parallelism=2, completions=2, backoffLimitPerIndex=0))
    job.look(0.0)
    job.end("p0", 1, 1.0)
    job.look(1.0)
    assert job.words == ("", "")
    assert job.state.failed_indexes == {0}

    job.end("p1", 0, 2.0)
    job.look(2.0)

    assert job.view.is_failed
    assert job.words == ("FailedIndexes", "Job has failed indexes")


def test_too_many_failed_indexes_end_the_job_early() -> None:
    job = Driven(terms(parallelism=3, completions=3, backoffLimitPerIndex=0, maxFailedIndexes=1))
    job.look(0.0)
    job.end("p0", 1, 1.0)
    job.look(1.0)
    job.end("p1", 1, 2.0)

    decision = job.look(2.0)

    assert decision.delete == ("p2",)
    assert job.words == (
        "MaxFailedIndexesExceeded",
        "Job has exceeded the specified maximal number of failed indexes",
    )


def test_each_index_has_its_own_failures_and_its_own_wait() -> None:
    job = Driven(terms(parallelism=2, completions=2, backoffLimitPerIndex=1))
    job.look(0.0)
    job.end("p0", 1, 1.0)
    job.look(1.0)
    decision = job.look(11.0)
    assert [(new.index, new.failures) for new in decision.create] == [(0, 1)]
    job.look(11.0)
    assert job.view.failed == 1

    job.end("p1", 1, 12.0)
    assert job.look(12.0).look_again_at == 22.0
    job.end("p2", 1, 13.0)
    job.look(13.0)

    assert job.state.failed_indexes == {0}


def test_fail_index_ends_an_index_at_once() -> None:
    rules = [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [7]}}]
    policy = {"rules": rules}
    job = Driven(terms(parallelism=2, completions=2, backoffLimitPerIndex=5, podFailurePolicy=policy))
    job.look(0.0)
    job.end("p1", 7, 1.0)

    job.look(1.0)

    assert job.state.failed_indexes == {1}
    assert job.view.failed == 1


@pytest.mark.parametrize(
    ("rule", "ended", "met"),
    [
        ({"succeededIndexes": "0"}, [1], False),
        ({"succeededIndexes": "0"}, [0], True),
        ({"succeededIndexes": "0-2", "succeededCount": 2}, [0, 2], True),
        ({"succeededIndexes": "0,2", "succeededCount": 2}, [0, 1], False),
        ({"succeededCount": 2}, [1, 2], True),
    ],
)
def test_a_success_policy_ends_the_job_and_its_other_pods(
    rule: dict[str, object], ended: list[int], met: bool
) -> None:
    job = Driven(terms(parallelism=3, completions=3, backoffLimit=0, successPolicy={"rules": [rule]}))
    job.look(0.0)
    for index in ended:
        job.end(f"p{index}", 0, 1.0)

    decision = job.look(1.0)

    assert bool(decision.delete) is met
    assert job.words == (("SuccessPolicy", "Matched rules at index 0") if met else ("", ""))
    for uid in decision.delete:
        job.end(uid, 143, 2.0)
    job.look(2.0)
    assert (job.view.is_complete, job.view.failed) == (met, 0)


def test_a_job_that_has_met_its_success_policy_cannot_fail_any_more() -> None:
    policy = {"rules": [{"succeededIndexes": "0"}]}
    job = Driven(terms(parallelism=2, completions=2, backoffLimit=0, successPolicy=policy))
    job.look(0.0)
    job.end("p0", 0, 1.0)
    job.look(1.0)
    job.end("p1", 1, 2.0)

    job.look(2.0)

    assert job.view.is_complete
    assert not job.view.is_failed


def test_a_work_queue_is_done_once_one_pod_succeeded_and_none_runs() -> None:
    job = Driven(terms(parallelism=2, completionMode="NonIndexed", backoffLimit=0))
    job.look(0.0)
    assert len(job.pods) == 2
    job.end("p0", 0, 1.0)
    assert job.look(1.0).create == ()
    assert not job.view.is_complete

    job.end("p1", 0, 2.0)
    job.look(2.0)

    assert (job.view.is_complete, job.view.succeeded) == (True, 2)


def test_without_indexes_completions_are_counted() -> None:
    job = Driven(terms(parallelism=2, completions=3, completionMode="NonIndexed"))
    job.look(0.0)
    for uid in ("p0", "p1"):
        job.end(uid, 0, 1.0)

    assert len(job.look(1.0).create) == 1
    job.end("p2", 0, 2.0)
    job.look(2.0)

    assert (job.view.is_complete, job.view.succeeded) == (True, 3)


@pytest.mark.parametrize(("limit", "restarts", "fails"), [(0, 1, True), (3, 2, False), (3, 3, True)])
def test_restarts_by_the_kubelet_count_towards_the_backoff_limit(
    limit: int, restarts: int, fails: bool
) -> None:
    job = Driven(terms("OnFailure", parallelism=1, completions=1, backoffLimit=limit))
    job.look(0.0)
    container = ContainerView("main", "running", restart_count=restarts)
    job.put("p0", phase="Running", containers=(container,))

    job.look(5.0)

    assert job.words == (SPENT if fails else ("", ""))


def test_a_job_without_numbers_is_one_pod_and_six_retries() -> None:
    plain = terms()

    assert (plain.parallelism, plain.completions, plain.backoff_limit) == (1, 1, 6)
    assert terms(backoffLimitPerIndex=0, completions=2).backoff_limit == 2**31 - 1
    assert terms(podFailurePolicy={"rules": []}).replace_failed_only


def test_a_ttl_deletes_a_job_that_has_ended() -> None:
    job = Driven(terms(parallelism=1, completions=1, backoffLimit=0, ttlSecondsAfterFinished=10))
    job.look(0.0)
    job.end("p0", 0, 5.0)
    job.look(5.0)

    assert job.look(6.0).look_again_at == 15.0
    assert job.look(15.0).expired


@pytest.mark.parametrize(
    ("text", "parsed"),
    [("0", {0}), ("0,2-4", {0, 2, 3, 4}), ("3-9", {3, 4}), ("7", set()), ("", set()), ("a,1", {1})],
)
def test_indexes_are_read_up_to_the_number_of_completions(text: str, parsed: set[int]) -> None:
    assert parse_indexes(text, 5) == parsed


def _suspended(job: Driven, *, value: bool) -> JobState:
    return replace(job.state, view=replace(job.view, suspended=value))
