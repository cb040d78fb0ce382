"""One pass of the JobSet controller: what it creates, deletes, suspends and writes, in which order."""

from __future__ import annotations

import pytest
from job_views import BACKOFF, job, jobset, replicated, spec

from jobset_steps.observed import Condition, JobSetView
from jobset_steps.semantics.jobset import Decision, reconcile

NOW = 100.0


def created(decision: Decision) -> list[str]:
    return [new.name for new in decision.create]


def condition(status: JobSetView, type_: str) -> tuple[str, str] | None:
    return next(((each.status, each.reason) for each in status.conditions if each.type == type_), None)


def test_a_new_jobset_gets_all_its_jobs_and_counts_of_zero() -> None:
    decision = reconcile(spec(replicated("a"), replicated("b", 2)), jobset(), [], NOW)

    assert created(decision) == ["t-a-0", "t-b-0", "t-b-1"]
    assert {(new.attempt, new.suspended) for new in decision.create} == {(0, False)}
    assert [each.name for each in decision.status.replicated_jobs] == ["a", "b"]
    assert decision.status.conditions == ()


def test_a_pass_over_what_it_wrote_changes_nothing() -> None:
    the_spec, jobs = spec(replicated("a", 2)), [job("a", 0, active=1), job("a", 1, active=1)]
    first = reconcile(the_spec, jobset(), jobs, NOW)

    again = reconcile(the_spec, first.status, jobs, NOW + 1)

    assert again == Decision(first.status)
    assert again.status is first.status


def test_counts_are_of_jobs_not_of_pods() -> None:
    jobs = [
        job("a", 0, active=2, ready=2),
        job("a", 1, active=1, ready=1),
        job("a", 2, active=1, succeeded=1, ready=1),
        job("a", 3, complete=True, succeeded=2),
        job("a", 4, suspended=True),
    ]

    (counts,) = reconcile(spec(replicated("a", 5, pods=2)), jobset(), jobs, NOW).status.replicated_jobs

    assert (counts.ready, counts.active, counts.succeeded, counts.suspended, counts.failed) == (2, 3, 1, 1, 0)


def test_all_jobs_succeeded_completes_the_jobset() -> None:
    jobs = [job("a", 0, complete=True), job("a", 1, complete=True)]

    status = reconcile(spec(replicated("a", 2)), jobset(), jobs, NOW).status

    assert status.terminal_state == "Completed"
    assert condition(status, "Completed") == ("True", "AllJobsCompleted")
    assert status.conditions[0].message == "jobset completed successfully"


@pytest.mark.parametrize(
    ("operator", "targets", "done", "complete"),
    [
        ("All", [], ["a"], False),
        ("All", ["a"], ["a"], True),
        ("All", ["a"], ["b"], False),
        ("Any", [], ["b"], True),
        ("Any", ["a"], ["b"], False),
        ("Any", ["a"], ["a", "b"], True),
        ("All", ["none"], ["b"], True),
    ],
)
def test_success_policies(operator: str, targets: list[str], done: list[str], complete: bool) -> None:
    policy = {"operator": operator, "targetReplicatedJobs": targets}
    the_spec = spec(replicated("a"), replicated("b"), replicated("none", 0), successPolicy=policy)
    jobs = [job(name, complete=name in done) for name in ("a", "b")]

    status = reconcile(the_spec, jobset(), jobs, NOW).status

    assert (status.terminal_state == "Completed") is complete


def test_a_failure_seen_together_with_a_success_decides() -> None:
    the_spec = spec(replicated("driver"), replicated("w"), successPolicy={"operator": "Any"})
    jobs = [job("driver", complete=True), job("w", failed=BACKOFF)]

    assert reconcile(the_spec, jobset(), jobs, NOW).status.terminal_state == "Failed"


def test_s2_without_any_job_nothing_ever_happens() -> None:
    for the_spec in (spec(), spec(replicated("a", 0), replicated("b", 0))):
        decision = reconcile(the_spec, jobset(), [], NOW)

        assert created(decision) == []
        assert decision.status.terminal_state == ""
        assert decision.status.conditions == ()


def test_a_restart_counts_and_leaves_deleting_to_the_next_pass() -> None:
    the_spec = spec(replicated("a", 2), failurePolicy={"maxRestarts": 1})
    jobs = [job("a", 0, failed=BACKOFF), job("a", 1, active=1)]

    first = reconcile(the_spec, jobset(), jobs, NOW)
    second = reconcile(the_spec, first.status, jobs, NOW)

    assert (first.status.restarts, first.status.restarts_counted) == (1, 1)
    assert (first.delete, created(first)) == ((), [])
    assert [(each.type, each.reason) for each in first.events] == [
        ("Warning", "RestartJobSetFailurePolicyAction")
    ]
    assert second.delete == ("t-a-0/0", "t-a-1/0")
    assert created(second) == []
    assert second.status.restarts == 1


def test_a_job_that_succeeded_is_run_again_after_a_restart() -> None:
    the_spec = spec(replicated("a", 2), failurePolicy={"maxRestarts": 1})
    done = job("a", 0, attempt=0, complete=True)

    decision = reconcile(the_spec, jobset(restarts=1), [done], NOW)

    assert decision.delete == (done.uid,)
    assert decision.status.terminal_state == ""


@pytest.mark.parametrize(("strategy", "made"), [("Recreate", ["t-a-1"]), ("BlockingRecreate", [])])
def test_c10_blocking_recreate_waits_for_every_job_of_the_attempt_before(
    strategy: str, made: list[str]
) -> None:
    the_spec = spec(replicated("a", 2), failurePolicy={"maxRestarts": 1, "restartStrategy": strategy})
    going = job("a", 0, attempt=0, deleting_since=99.0)

    decision = reconcile(the_spec, jobset(restarts=1), [going], NOW)

    assert created(decision) == made
    assert decision.delete == ()
    assert all(new.attempt == 1 for new in decision.create)


def test_c12_free_restarts_do_not_end_the_set() -> None:
    rules = [{"name": "free", "action": "RestartJobSetAndIgnoreMaxRestarts"}]
    the_spec = spec(replicated("a"), failurePolicy={"maxRestarts": 1, "rules": rules})
    status = jobset(restarts=5, restarts_counted=0)

    decision = reconcile(the_spec, status, [job("a", attempt=5, failed=BACKOFF)], NOW)

    assert (decision.status.restarts, decision.status.restarts_counted) == (6, 0)
    assert decision.status.terminal_state == ""


def test_a_terminal_jobset_loses_its_active_jobs_and_is_not_judged_again() -> None:
    failed = Condition("Failed", "True", "FailedJobs", "words", since=90.0)
    status = jobset(terminal_state="Failed", conditions=(failed,))
    jobs = [job("a", 0, complete=True), job("a", 1, active=1), job("a", 2, failed=BACKOFF)]

    decision = reconcile(spec(replicated("a", 3)), status, jobs, NOW)

    assert decision.delete == ("t-a-1/0",)
    assert (decision.status.terminal_state, decision.status.conditions) == ("Failed", (failed,))
    assert decision.events == ()


def test_the_ttl_counts_from_the_end() -> None:
    completed = Condition("Completed", "True", "AllJobsCompleted", since=90.0)
    status = jobset(terminal_state="Completed", conditions=(completed,))
    the_spec = spec(replicated("a"), ttlSecondsAfterFinished=20)

    before = reconcile(the_spec, status, [], 100.0)
    after = reconcile(the_spec, status, [], 110.0)

    assert (before.expired, before.look_again_at) == (False, 110.0)
    assert after.expired


def test_in_order_starts_the_next_replicated_job_once_the_one_before_is_ready() -> None:
    the_spec = spec(replicated("a", 2), replicated("b"), startupPolicy={"startupPolicyOrder": "InOrder"})
    waiting = [job("a", 0, active=1, ready=1), job("a", 1, active=1)]
    ready = [job("a", 0, active=1, ready=1), job("a", 1, active=1, ready=1)]
    all_ready = [*ready, job("b", active=1, ready=1)]

    first = reconcile(the_spec, jobset(), [], NOW)
    second = reconcile(the_spec, first.status, waiting, NOW)
    third = reconcile(the_spec, second.status, ready, NOW)
    fourth = reconcile(the_spec, third.status, all_ready, NOW)

    assert created(first) == ["t-a-0", "t-a-1"]
    assert condition(first.status, "StartupPolicyInProgress") == ("True", "InOrderStartupPolicyInProgress")
    assert created(second) == []
    assert created(third) == ["t-b-0"]
    assert condition(fourth.status, "StartupPolicyCompleted") == ("True", "InOrderStartupPolicyCompleted")
    assert condition(fourth.status, "StartupPolicyInProgress") == ("False", "InOrderStartupPolicyInProgress")


@pytest.mark.parametrize(
    ("status", "first", "starts"),
    [
        ("Ready", job("a", active=1), False),
        ("Ready", job("a", active=1, ready=1), True),
        ("Ready", job("a", complete=True), True),
        ("Complete", job("a", active=1, ready=1), False),
        ("Complete", job("a", complete=True), True),
    ],
)
def test_depends_on(status: str, first: object, starts: bool) -> None:
    depends = [{"name": "a", "status": status}]
    the_spec = spec(replicated("a"), replicated("b", dependsOn=depends))

    decision = reconcile(the_spec, jobset(), [first], NOW)  # type: ignore[list-item]

    assert created(decision) == (["t-b-0"] if starts else [])


def test_a_failed_dependency_ends_the_jobset_before_its_dependants_start() -> None:
    the_spec = spec(replicated("a"), replicated("b", dependsOn=[{"name": "a", "status": "Ready"}]))

    decision = reconcile(the_spec, jobset(), [job("a", failed=BACKOFF)], NOW)

    assert decision.status.terminal_state == "Failed"
    assert created(decision) == []


@pytest.mark.parametrize("status", ["Ready", "Complete"])
def test_s1_a_job_that_depends_on_itself_never_starts(status: str) -> None:
    the_spec = spec(replicated("a"), replicated("b", dependsOn=[{"name": "b", "status": status}]))

    decision = reconcile(the_spec, jobset(), [job("a", complete=True)], NOW)

    assert created(decision) == []
    assert decision.status.terminal_state == ""


def test_a_suspended_jobset_makes_suspended_jobs_of_all_that_do_not_wait() -> None:
    the_spec = spec(
        replicated("a"),
        replicated("b"),
        startupPolicy={"startupPolicyOrder": "InOrder"},
        suspend=True,
    )

    decision = reconcile(the_spec, jobset(suspended=True), [], NOW)

    assert [(new.name, new.suspended) for new in decision.create] == [("t-a-0", True), ("t-b-0", True)]
    assert condition(decision.status, "Suspended") == ("True", "SuspendedJobs")
    assert condition(decision.status, "StartupPolicyInProgress") is None


def test_b13_suspending_stops_jobs_and_resuming_starts_them_again_without_a_restart() -> None:
    the_spec = spec(replicated("a", 2))
    running = [job("a", 0, active=1), job("a", 1, complete=True)]
    stopped = [job("a", 0, suspended=True), job("a", 1, complete=True)]

    suspended = reconcile(the_spec, jobset(suspended=True), running, NOW)
    resumed = reconcile(the_spec, jobset(conditions=suspended.status.conditions), stopped, NOW + 5)

    assert suspended.suspend == ("t-a-0/0",)
    assert condition(suspended.status, "Suspended") == ("True", "SuspendedJobs")
    assert suspended.status.terminal_state == ""
    assert resumed.resume == ("t-a-0/0",)
    assert condition(resumed.status, "Suspended") == ("False", "ResumeJobs")
    assert resumed.status.restarts == 0


def test_resuming_follows_the_start_up_order() -> None:
    the_spec = spec(replicated("a"), replicated("b"), startupPolicy={"startupPolicyOrder": "InOrder"})
    suspended = Condition("Suspended", "True", "SuspendedJobs", since=1.0)
    status = jobset(conditions=(suspended,))

    first = reconcile(the_spec, status, [job("a", suspended=True), job("b", suspended=True)], NOW)
    then = reconcile(the_spec, first.status, [job("a", ready=1), job("b", suspended=True)], NOW)

    assert first.resume == ("t-a-0/0",)
    assert condition(first.status, "Suspended") == ("True", "SuspendedJobs")
    assert then.resume == ("t-b-0/0",)


def test_a_jobset_of_another_controller_or_being_deleted_is_left_alone() -> None:
    other = reconcile(spec(replicated("a"), managedBy="kueue.x-k8s.io/multikueue"), jobset(), [], NOW)
    going = reconcile(spec(replicated("a")), jobset(deleting_since=1.0), [], NOW)

    assert (created(other), created(going)) == ([], [])
