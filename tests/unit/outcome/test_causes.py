"""Why a pod failed, and which of several failures came first."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_steps.observed import Condition, ContainerView, JobView, PodView
from jobset_steps.outcome import Cause
from jobset_steps.outcome.causes import LOG_LINES, cut_lines, first, of_job, of_pod, refined


def _pod(*containers: ContainerView, **more: Any) -> PodView:
    return PodView("p-0", "u", "js-w-0", "w", 0, 2, 0, node="n1", containers=containers, **more)


def _ended(exit_code: int, **more: Any) -> ContainerView:
    return ContainerView(
        "main", "terminated", exit_code=exit_code, finished_at=5.0, **{"reason": "Error", **more}
    )


def _job(name: str, at: float, reason: str = "BackoffLimitExceeded", *more: Condition) -> JobView:
    return JobView(name, name, "w", 0, 0, conditions=(Condition("Failed", "True", reason, "m", at), *more))


def test_a_container_that_failed_is_a_cause_with_its_place() -> None:
    (cause,) = of_pod(_pod(_ended(17, message="a\nb\n"), phase="Failed"))

    assert (cause.job, cause.replicated_job, cause.index, cause.pod, cause.node) == (
        "js-w-0",
        "w",
        2,
        "p-0",
        "n1",
    )
    assert (cause.container, cause.exit_code, cause.signal, cause.reason, cause.at) == (
        "main",
        17,
        None,
        "Error",
        5.0,
    )
    assert cause.log_tail == ("a", "b")
    assert not cause.oom
    assert not cause.disrupted


def test_a_container_that_ended_well_is_none() -> None:
    assert of_pod(_pod(_ended(0, reason="Completed"), phase="Succeeded")) == ()
    assert of_pod(_pod(ContainerView("main", "running"), phase="Running")) == ()
    assert of_pod(_pod(ContainerView("main", "waiting", "ContainerCreating"))) == ()


def test_the_run_before_of_a_restarted_container_counts() -> None:
    before = _ended(9)
    (cause,) = of_pod(_pod(ContainerView("main", "running", last=before), phase="Running"))

    assert cause.exit_code == 9


def test_an_init_container_counts_too() -> None:
    (cause,) = of_pod(_pod(_ended(2, init=True), phase="Failed"))

    assert cause.exit_code == 2


@pytest.mark.parametrize(("code", "signal"), [(137, 9), (143, 15), (139, 11), (1, None), (255, None)])
def test_an_exit_code_above_128_is_a_signal(code: int, signal: int | None) -> None:
    assert of_pod(_pod(_ended(code), phase="Failed"))[0].signal == signal


def test_out_of_memory_is_told() -> None:
    (cause,) = of_pod(_pod(_ended(137, reason="OOMKilled"), phase="Failed"))

    assert cause.oom
    assert not cause.disrupted


@pytest.mark.parametrize(
    "more",
    [
        {"conditions": (Condition("DisruptionTarget", "True", "EvictionByEvictionAPI"),)},
        {"reason": "Evicted"},
        {"reason": "NodeLost"},
        {"reason": "NodeShutdown"},
    ],
)
def test_what_the_cluster_did_is_a_disruption(more: dict[str, Any]) -> None:
    assert of_pod(_pod(_ended(137), phase="Failed", **more))[0].disrupted
    assert of_pod(_pod(phase="Failed", **more))[0].disrupted


def test_a_condition_that_does_not_hold_is_no_disruption() -> None:
    condition = Condition("DisruptionTarget", "False", "X")

    assert not of_pod(_pod(_ended(1), phase="Failed", conditions=(condition,)))[0].disrupted


def test_a_pod_evicted_before_any_container_ended_is_a_cause() -> None:
    (cause,) = of_pod(_pod(phase="Failed", reason="Evicted", message="low on ephemeral-storage"))

    assert (cause.reason, cause.message, cause.container) == ("Evicted", "low on ephemeral-storage", "")


def test_a_pod_that_somebody_deleted_is_a_cause() -> None:
    (cause,) = of_pod(_pod(phase="Running", gone=True, deleting_since=3.0))

    assert (cause.reason, cause.disrupted, cause.at) == ("PodDeleted", False, 3.0)


def _cause(pod: str, at: float | None, job: str = "a") -> Cause:
    return Cause(pod=pod, at=at, job=job, container="main", exit_code=1)


def test_the_earliest_is_the_first() -> None:
    found = first([_cause("late", 9.0), _cause("early", 3.0), _cause("unknown", None)])

    assert found is not None
    assert found.pod == "early"


def test_a_pod_of_a_job_that_tolerated_it_began_nothing() -> None:
    tolerated, fatal = _cause("tolerated", 1.0, "a"), _cause("fatal", 9.0, "b")

    assert first([tolerated, fatal], [_job("b", 10.0)]) == fatal


def test_pods_that_a_deadline_ended_are_not_why_the_job_failed() -> None:
    # Given a Job that ran into activeDeadlineSeconds, whose pods were killed for it
    decided = Condition("FailureTarget", "True", "DeadlineExceeded", "m", 10.0)
    job = _job("a", 14.0, "DeadlineExceeded", decided)

    found = first([_cause("killed", 13.0)], [job])

    assert found is not None
    assert (found.reason, found.pod) == ("DeadlineExceeded", "")


def test_of_two_at_the_same_second_the_one_that_a_teardown_killed_is_not_the_first() -> None:
    (killed,) = of_pod(_pod(_ended(143), phase="Failed", deleting_since=35.0))
    (oom,) = of_pod(_pod(_ended(137, reason="OOMKilled"), phase="Failed", deleting_since=35.0))
    crashed = Cause(pod="z", job="z", at=5.0, exit_code=1, container="main")

    assert (killed.deleted, oom.deleted) == (True, False)
    assert first([killed, crashed], first_failed_job=killed.job) == crashed
    assert first([killed, oom]) == oom


def test_c8_of_two_at_the_same_second_the_evicted_pod_is_the_first_of_those_that_were_deleted() -> None:
    # Given a worker that was evicted, and the rest of its Job, which was deleted for that and wrote nothing
    target = (Condition("DisruptionTarget", "True", "EvictionByEvictionAPI"),)
    (evicted,) = of_pod(_pod(_ended(143), phase="Failed", deleting_since=35.0, conditions=target))
    (torn_down,) = of_pod(_pod(_ended(143), phase="Failed", deleting_since=35.0))
    evicted = evicted.model_copy(update={"pod": "z", "at": refined(5.0, 5.7)})
    torn_down = torn_down.model_copy(update={"pod": "a", "at": refined(5.0, 0.0)})

    assert first([torn_down, evicted]) == evicted


def test_a_crash_before_the_deadline_is_still_a_crash() -> None:
    job = _job(
        "a", 14.0, "DeadlineExceeded", Condition("FailureTarget", "True", "DeadlineExceeded", "m", 10.0)
    )

    assert first([_cause("crashed", 9.0)], [job]) == _cause("crashed", 9.0)


def test_a_node_whose_clock_is_ahead_does_not_hide_the_failure() -> None:
    assert first([_cause("ahead", 30.0)], [_job("a", 10.0)]) == _cause("ahead", 30.0)


def test_nothing_known_is_no_cause() -> None:
    assert first([]) is None
    assert of_job(JobView("a", "a", "w", 0, 0)) is None


def test_a_job_that_was_disrupted_says_so_where_its_pods_were_not_seen() -> None:
    words = "Pod x/y has condition DisruptionTarget matching FailJob rule at index 0"
    job = JobView(
        "a", "a", "w", 0, 0, conditions=(Condition("Failed", "True", "PodFailurePolicy", words, 1.0),)
    )

    found = first([], [job])
    assert found is not None
    assert found.disrupted


def test_log_lines_are_cut_in_number_and_length() -> None:
    lines = cut_lines(["x" * 1000, *("line" for _ in range(100)), "", " "])

    assert len(lines) == LOG_LINES
    assert all(len(line) <= 400 for line in lines)
    assert lines[-1] == "line"
