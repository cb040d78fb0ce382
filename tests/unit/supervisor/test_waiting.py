"""The wait: what is final and what is not, budgets as seconds spent, outages, and how little is asked of the API."""

from __future__ import annotations

from typing import Any

import pytest
from step_talk import (
    START,
    Talk,
    completed,
    crashed,
    failed,
    failed_job,
    finished,
    jobset,
    jobset_view,
    name_of,
    plan,
    pod,
    queued,
    starting,
)

from jobset_steps.observed import Condition, ReplicatedJobStatus
from jobset_steps.outcome import Verdict
from jobset_steps.supervisor import Phase
from jobset_steps.supervisor.inputs import (
    ApiFault,
    Create,
    Delete,
    EndCause,
    EndRequest,
    Progress,
    Read,
    Save,
)

HOUR = 3600.0


def _waiting(**more: Any) -> Talk:
    talk = Talk(plan(**more))
    talk.create()
    return talk


def _quiet_reads(talk: Talk, seconds: float, seen: Any) -> None:
    """Let time pass; every read shows the same."""
    until = talk.now + seconds
    while talk.now < until and talk.finish is None:
        if talk.asks(Read):
            talk.read(seen)
        elif talk.asks(Delete):
            return
        else:
            talk.sleep(min(60.0, until - talk.now))


# --- what is final


def test_a9_twenty_read_errors_of_mixed_kinds_then_completed_is_succeeded() -> None:
    talk = _waiting(budgets={"outage": "12h"})
    talk.watch(jobset_view(talk.plan))
    kinds = ["unavailable", "unauthorized", "forbidden", "conflict"] * 5
    talk.hear(ApiFault(None, "unavailable", "reset"))
    for kind in kinds:
        talk.sleep(120)
        if not talk.asks(Read):
            talk.sleep(300)
        talk.fault(Read, kind, "slow")
    talk.sleep(300)
    talk.read(completed(talk.plan))

    assert talk.outcome.verdict is Verdict.SUCCEEDED


@pytest.mark.parametrize(
    "passing",
    [
        {"replicated_jobs": (ReplicatedJobStatus("workers", failed=1),)},
        {"conditions": (Condition("Failed", "False", "X"), Condition("Completed", "Unknown", "Y"))},
        {"conditions": (Condition("Suspended", "False", "ResumeJobs", since=START),)},
        {"conditions": (Condition("RestartingJobSet", "True", "DefaultFailurePolicy", since=START),)},
        {"deleting_since": START},
    ],
    ids=["a failed Job", "conditions that do not hold", "resumed", "restarting", "being deleted"],
)
def test_transient_states_never_look_final(passing: dict[str, Any]) -> None:
    talk = _waiting()
    talk.watch(jobset_view(talk.plan, **passing))
    talk.read(jobset_view(talk.plan, **passing)) if talk.asks(Read) else None

    assert talk.state.phase is Phase.WAITING


def test_e2_a_replayed_older_view_is_no_news() -> None:
    # Given a JobSet that is seen in its second attempt
    talk = _waiting()
    talk.watch(jobset_view(talk.plan, restarts=1, restarts_counted=1, resource_version="20"))
    before = talk.state

    # When the watch replays what was before: the first attempt, then an older version of the second
    talk.watch(queued(talk.plan, restarts=0, resource_version="10"))
    talk.watch(queued(talk.plan, restarts=1, restarts_counted=1, resource_version="19"))

    # Then nothing changes
    assert (talk.state.stretch, talk.state.attempt) == (before.stretch, 1)
    assert all(say.progress is not Progress.QUEUED for say in talk.said)


def test_e2_an_old_view_after_the_end_is_ignored() -> None:
    talk = _waiting()
    talk.watch(completed(talk.plan, resource_version="30"))
    talk.watch(jobset_view(talk.plan, resource_version="10"))
    talk.read(completed(talk.plan, resource_version="30"))

    assert talk.outcome.verdict is Verdict.SUCCEEDED


def test_e2_a_broken_watch_means_one_read_and_no_more_than_backoff_allows() -> None:
    talk = _waiting()
    talk.watch(jobset_view(talk.plan))
    talk.hear(ApiFault(None, "conflict", "410 Gone"))
    talk.sleep(3)
    talk.read(jobset_view(talk.plan))
    assert len(talk.all(Read)) == 1

    # A watch that goes on failing for an hour costs reads ever more rarely
    for _ in range(120):
        talk.hear(ApiFault(None, "unavailable", "reset"), after=30)
        if talk.asks(Read):
            talk.read(jobset_view(talk.plan))
    assert len(talk.all(Read)) < 25


def test_c12_free_restarts_do_not_end_the_set() -> None:
    # Given maxRestarts 1, and five restarts of which none counts
    spec = jobset(max_restarts=1)
    talk = _waiting(spec=spec)
    talk.watch(jobset_view(talk.plan, restarts=5, restarts_counted=0))

    assert talk.state.phase is Phase.WAITING
    assert talk.said[-1].progress is Progress.RUNNING


def test_c12_free_restarts_beyond_the_cap_end_the_step_as_worth_a_retry() -> None:
    talk = _waiting(free_restarts_cap=3)
    talk.watch(jobset_view(talk.plan, restarts=4, restarts_counted=0))
    talk.done(Delete)
    talk.read(None)

    assert (talk.outcome.verdict, talk.outcome.reason) == (Verdict.FAILED, "FreeRestartsCap")
    assert (talk.outcome.retryable, talk.outcome.exit_code) == (True, 75)


def test_metrics_of_the_leader_are_the_steps() -> None:
    talk = _waiting()
    message = '{"metrics": {"loss": 0.5}}'
    talk.watch(completed(talk.plan), finished(talk.plan, message=message), finished(talk.plan, 1))

    assert talk.outcome.metrics == {"loss": 0.5}


def test_a_jobset_seen_to_complete_before_its_leader_is_read_once_more() -> None:
    # Given the watch of JobSets being faster than that of pods
    talk = _waiting()
    talk.watch(completed(talk.plan), pod(talk.plan))
    assert talk.finish is None
    talk.read(completed(talk.plan), finished(talk.plan, message='{"metrics": {"a": 1}}'))

    assert talk.outcome.metrics == {"a": 1}


def test_evidence_that_never_comes_holds_the_end_up_for_seconds_only() -> None:
    talk = _waiting()
    talk.watch(completed(talk.plan))
    talk.sleep(6)

    assert talk.outcome.verdict is Verdict.SUCCEEDED


# --- budgets


def test_a17_two_hours_suspended_and_one_running_fit_a_run_budget_of_ninety_minutes() -> None:
    talk = _waiting(budgets={"queue": "3h", "run": "90m"})
    talk.watch(queued(talk.plan))
    _quiet_reads(talk, 2 * HOUR, queued(talk.plan))
    talk.watch(jobset_view(talk.plan))
    _quiet_reads(talk, HOUR, jobset_view(talk.plan))
    talk.watch(completed(talk.plan), finished(talk.plan))

    assert talk.outcome.verdict is Verdict.SUCCEEDED
    assert talk.outcome.seconds.queued == pytest.approx(2 * HOUR)
    assert talk.outcome.seconds.running == pytest.approx(HOUR)


@pytest.mark.parametrize(
    ("budgets", "shown", "verdict", "seconds"),
    [
        ({"queue": "1h"}, queued, Verdict.QUEUE_TIMEOUT, HOUR),
        ({"startup": "20m"}, starting, Verdict.STARTUP_TIMEOUT, 1200),
        ({"run": "2h"}, jobset_view, Verdict.RUN_TIMEOUT, 2 * HOUR),
    ],
)
def test_a_spent_budget_ends_the_step_and_deletes_the_jobset(
    budgets: dict[str, Any], shown: Any, verdict: Verdict, seconds: float
) -> None:
    talk = _waiting(budgets=budgets)
    talk.watch(shown(talk.plan))
    _quiet_reads(talk, 3 * HOUR, shown(talk.plan))

    assert talk.now - START == pytest.approx(seconds, abs=61)
    assert talk.pending == [Delete(name_of(talk.plan), "uid-1")]
    assert talk.memory.record is not None
    assert talk.memory.record.state == "ending"
    talk.done(Delete)
    talk.read(None)
    assert (talk.outcome.verdict, talk.outcome.exit_code) == (verdict, 124)
    assert talk.outcome.retryable is False


def test_a_budget_is_spent_only_when_a_fresh_read_says_that_the_jobset_has_not_ended() -> None:
    # Given a run budget that is over by our count, and a watch that was silently dropped
    talk = _waiting(budgets={"run": "10m"})
    talk.watch(jobset_view(talk.plan))
    talk.sleep(700)
    assert talk.asks(Read)
    assert not talk.all(Delete)

    # When the read shows that it ended well
    talk.read(completed(talk.plan))

    # Then it ended well
    assert talk.outcome.verdict is Verdict.SUCCEEDED


def test_the_start_up_budget_is_counted_anew_for_each_attempt() -> None:
    talk = _waiting(budgets={"startup": "10m"})
    for attempt in range(4):
        talk.watch(starting(talk.plan, restarts=attempt, restarts_counted=attempt))
        _quiet_reads(talk, 400, starting(talk.plan, restarts=attempt, restarts_counted=attempt))
        talk.watch(jobset_view(talk.plan, restarts=attempt, restarts_counted=attempt))
        talk.sleep(5)

    assert talk.finish is None
    assert not talk.all(Delete)


def test_b13_kueue_preemption_is_back_in_the_queue_and_costs_no_retry() -> None:
    # Given a training that runs, and is then suspended with its pods killed
    talk = _waiting()
    talk.watch(jobset_view(talk.plan), pod(talk.plan))
    talk.sleep(100)
    talk.watch(queued(talk.plan), crashed(talk.plan, exit_code=143, gone=True))

    # Then it is queued again, its run budget pauses, and nothing counts as a failure
    assert talk.said[-1].progress is Progress.QUEUED
    _quiet_reads(talk, 1000, queued(talk.plan))
    resumed = Condition("Suspended", "False", "ResumeJobs", since=talk.now)
    talk.watch(jobset_view(talk.plan, conditions=(resumed,)), pod(talk.plan, created_at=talk.now))
    talk.sleep(50)
    talk.watch(completed(talk.plan), finished(talk.plan))
    assert talk.outcome.verdict is Verdict.SUCCEEDED
    assert talk.outcome.restarts.total == 0
    assert talk.outcome.seconds.running == pytest.approx(150)
    assert talk.outcome.seconds.queued == pytest.approx(1000)


def test_b13_what_a_preemption_killed_is_not_why_the_attempt_failed_later() -> None:
    talk = _waiting()
    talk.watch(jobset_view(talk.plan), pod(talk.plan))
    talk.watch(queued(talk.plan), crashed(talk.plan, exit_code=143, at=talk.now, gone=True))
    talk.sleep(100)
    resumed = Condition("Suspended", "False", "ResumeJobs", since=talk.now)
    talk.watch(jobset_view(talk.plan, conditions=(resumed,)), pod(talk.plan, created_at=talk.now))
    talk.sleep(100)
    died = crashed(talk.plan, 1, exit_code=17, at=talk.now, created_at=talk.now - 90)
    talk.watch(failed(talk.plan), died, jobs=(failed_job(talk.plan, at=talk.now),))

    cause = talk.outcome.attempts[0].cause
    assert cause is not None
    assert (cause.exit_code, cause.index) == (17, 1)


def test_a_relaunched_launcher_goes_on_counting_and_counts_the_time_between() -> None:
    # Given a queue budget of two hours, and a launcher that saw one of them and left
    first = _waiting(budgets={"queue": "2h"})
    first.watch(queued(first.plan))
    _quiet_reads(first, HOUR, queued(first.plan))
    first.hear(EndRequest(EndCause.EVICTION, "node drain"))
    assert first.outcome.exit_code == 76

    # When the next one comes half an hour later
    second = first.successor()
    second.now += 0.5 * HOUR
    second.read(queued(second.plan))

    # Then an hour and a half are spent, and half an hour is left
    assert second.state.spent.queued == pytest.approx(1.5 * HOUR, abs=1)
    _quiet_reads(second, HOUR, queued(second.plan))
    assert second.all(Delete)
    assert second.now - first.now == pytest.approx(HOUR, abs=61)


def test_time_without_a_launcher_counts_no_longer_than_the_stretch_has_lasted() -> None:
    # Given a launcher that died while the JobSet was queued
    first = _waiting(budgets={"run": "1h"})
    first.watch(queued(first.plan))
    first.sleep(61)

    # When the next one comes five hours later and finds it running for ten minutes
    second = first.successor()
    second.now += 5 * HOUR
    resumed = Condition("Suspended", "False", "ResumeJobs", since=second.now - 600)
    second.read(jobset_view(second.plan, conditions=(resumed,)))

    assert second.state.phase is Phase.WAITING
    assert second.state.spent.running == pytest.approx(600, abs=1)


# --- outages


def test_an_outage_ends_without_a_verdict_and_leaves_the_jobset() -> None:
    talk = _waiting(budgets={"outage": "1h", "run": "10m"})
    talk.watch(jobset_view(talk.plan))
    talk.hear(ApiFault(None, "unavailable", "connection refused"))
    began = talk.now
    while talk.finish is None:
        talk.fault(Read) if talk.asks(Read) else talk.sleep(10)

    assert (talk.outcome.verdict, talk.outcome.reason, talk.outcome.exit_code) == (
        Verdict.UNKNOWN,
        "ApiUnavailable",
        69,
    )
    assert talk.now - began == pytest.approx(HOUR, abs=60)
    assert not talk.all(Delete)
    assert any(say.progress is Progress.UNREACHABLE for say in talk.said)
    assert talk.outcome.seconds.outage == pytest.approx(HOUR, abs=60)


def test_an_outage_that_ends_in_time_is_forgotten() -> None:
    talk = _waiting(budgets={"outage": "1h"})
    talk.watch(jobset_view(talk.plan))
    for _ in range(3):
        talk.hear(ApiFault(None, "unavailable", "connection refused"))
        until = talk.now + 0.9 * HOUR
        while talk.now < until:
            talk.fault(Read) if talk.asks(Read) else talk.sleep(10)
        talk.sleep(300)
        talk.read(jobset_view(talk.plan))

    assert talk.state.phase is Phase.WAITING
    assert talk.said[-1].progress is Progress.RUNNING


def test_reads_during_an_outage_back_off_and_do_what_the_server_asks() -> None:
    talk = _waiting()
    talk.watch(jobset_view(talk.plan))
    talk.hear(ApiFault(None, "unavailable", "reset"))
    talk.sleep(2)
    talk.fault(Read, "unavailable", "429: too many requests", retry_after=120)
    talk.sleep(110)
    assert not talk.asks(Read)
    talk.sleep(20)
    assert talk.asks(Read)

    for _ in range(200):
        talk.fault(Read) if talk.asks(Read) else talk.sleep(10)
    assert len(talk.all(Read)) < 20


def test_a_record_that_cannot_be_saved_does_not_end_a_wait() -> None:
    talk = _waiting(budgets={"outage": "1h"})
    talk.hold = (Save,)
    talk.watch(jobset_view(talk.plan))
    for _ in range(300):
        if talk.asks(Save):
            talk.fault(Save, "forbidden", "no longer allowed")
        elif talk.asks(Read):
            talk.read(jobset_view(talk.plan))
        else:
            talk.sleep(60)

    assert talk.state.phase is Phase.WAITING
    assert len(talk.all(Save)) < 80


# --- what it costs


def test_a_training_that_goes_well_costs_few_requests() -> None:
    # Given a training that runs for a day
    talk = _waiting()
    talk.watch(jobset_view(talk.plan))
    saves, reads = len(talk.all(Save)), len(talk.all(Read))
    _quiet_reads(talk, 24 * HOUR, jobset_view(talk.plan))

    # Then with three requests a read, one a save, and three watches opened anew every 55 minutes it stays
    # below 20 an hour
    saves, reads = len(talk.all(Save)) - saves, len(talk.all(Read)) - reads
    assert saves <= 24 * 2 + 1
    assert reads <= 24 * 2 + 1
    assert (3 * reads + saves + 3 * 27) / 24 < 20


def test_a_start_up_that_stands_still_costs_ever_fewer_reads() -> None:
    talk = _waiting(budgets={"startup": "24h"})
    talk.watch(starting(talk.plan))
    _quiet_reads(talk, HOUR, starting(talk.plan))
    assert len(talk.all(Read)) <= 8
    assert all(read.events for read in talk.all(Read))

    before = len(talk.all(Read))
    _quiet_reads(talk, 10 * HOUR, starting(talk.plan))
    assert len(talk.all(Read)) - before <= 21


def test_a_set_that_restarts_all_the_time_saves_at_most_once_a_minute() -> None:
    spec = jobset(max_restarts=10_000)
    talk = _waiting(spec=spec)
    for attempt in range(600):
        talk.watch(jobset_view(talk.plan, restarts=attempt, restarts_counted=attempt))
        talk.sleep(1)

    assert len(talk.all(Save)) <= 14


def test_a_view_without_news_says_nothing_twice() -> None:
    talk = _waiting()
    for _ in range(50):
        talk.watch(jobset_view(talk.plan))

    assert [say.progress for say in talk.said] == [Progress.STARTING, Progress.RUNNING]


def test_the_create_is_asked_for_within_the_first_turns() -> None:
    assert Talk(plan()).all(Create) == [Create(name_of(plan()), 1)]
