"""Why each attempt failed, kept before a restart deletes it, and a Record that stays small."""

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
    starting,
)

from jobset_steps.observed import Condition
from jobset_steps.outcome import Attempt, Cause, Outcome, Verdict
from jobset_steps.supervisor.inputs import Done, Tail
from jobset_steps.supervisor.memory import LIMIT, fit
from jobset_steps.supervisor.plan import Record

LOST = (Condition("DisruptionTarget", "True", "DeletionByTaintManager", "node went away", START),)


def _running(**more: Any) -> Talk:
    talk = Talk(plan(**more))
    talk.create()
    talk.watch(jobset_view(talk.plan), pod(talk.plan))
    return talk


def _restart(talk: Talk, *pods: Any, **jobset_changes: Any) -> None:
    """A failure is seen, then the restart that tears it all down."""
    at = talk.now
    talk.watch(jobset_view(talk.plan), *pods, jobs=(failed_job(talk.plan, at=at),))
    changes = {"restarts": 1, "restarts_counted": 1, **jobset_changes}
    talk.watch(starting(talk.plan, **changes))


def test_c7_worker_3_exits_17_on_attempt_0_and_attempt_1_is_good() -> None:
    talk = Talk(plan(spec=jobset(pods=4)))
    talk.create()
    name = f"{name_of(talk.plan)}-workers-0"
    talk.tails = {f"{name}-3-0": ("epoch 7", "ValueError: bad record")}
    _restart(talk, pod(talk.plan), crashed(talk.plan, 3))
    talk.watch(completed(talk.plan, restarts=1, restarts_counted=1), finished(talk.plan, attempt=1))

    first, second = talk.outcome.attempts
    assert first.cause is not None
    assert first.cause.job.endswith("-workers-0")
    assert (first.cause.index, first.cause.exit_code) == (3, 17)
    assert first.cause.log_tail == ("epoch 7", "ValueError: bad record")
    assert (first.cause.container, first.cause.node) == ("main", "node-3")
    assert (second.number, second.cause, second.missed) == (1, None, False)
    assert (talk.outcome.restarts.total, talk.outcome.restarts.counted, talk.outcome.restarts.maximum) == (
        1,
        1,
        2,
    )


def test_c7_a_termination_message_is_the_tail_where_no_log_can_be_read_any_more() -> None:
    talk = _running()
    talk.hold = (Tail,)
    _restart(talk, crashed(talk.plan, message="Traceback\nboom\n"))
    talk.fault(Tail, "not_found")
    talk.watch(completed(talk.plan, restarts=1, restarts_counted=1), finished(talk.plan, attempt=1))

    cause = talk.outcome.attempts[0].cause
    assert cause is not None
    assert cause.log_tail == ("Traceback", "boom")


def test_c7_a_pod_that_is_gone_is_shown_once_more_and_that_is_enough() -> None:
    talk = _running()
    talk.watch(
        starting(talk.plan, restarts=1, restarts_counted=1), crashed(talk.plan, exit_code=3, gone=True)
    )
    talk.watch(completed(talk.plan, restarts=1, restarts_counted=1), finished(talk.plan, attempt=1))

    cause = talk.outcome.attempts[0].cause
    assert cause is not None
    assert cause.exit_code == 3
    assert not talk.all(Tail)


def test_logs_of_at_most_three_pods_an_attempt_are_asked_for() -> None:
    talk = Talk(plan(spec=jobset(pods=50)))
    talk.create()
    for round_ in range(3):
        pods = [crashed(talk.plan, index, at=START + index) for index in range(50)]
        talk.watch(jobset_view(talk.plan, resource_version=str(round_)), *pods)

    assert [tail.pod[-4:] for tail in talk.all(Tail)] == ["-0-0", "-1-0", "-2-0"]


def test_the_first_pod_to_fail_is_the_cause_not_those_that_fell_with_it() -> None:
    talk = Talk(plan(spec=jobset(pods=20)))
    talk.create()
    fallen = [crashed(talk.plan, index, exit_code=143, at=START + 5) for index in range(19)]
    first = crashed(talk.plan, 19, exit_code=1, at=START + 4)
    _restart(talk, *fallen, first)
    talk.watch(completed(talk.plan, restarts=1, restarts_counted=1), finished(talk.plan, attempt=1))

    cause = talk.outcome.attempts[0].cause
    assert cause is not None
    assert (cause.index, cause.exit_code) == (19, 1)


def test_of_two_at_the_same_second_the_one_in_the_first_failed_job_is_the_cause() -> None:
    talk = Talk(plan(spec=jobset(replicas=2), budgets={}))
    talk.create()
    second_job = f"{name_of(talk.plan)}-workers-1"
    died = (
        crashed(talk.plan, 0, job_index=0, exit_code=9),
        crashed(talk.plan, 0, job_index=1, exit_code=17),
    )
    jobs = (failed_job(talk.plan, 0), failed_job(talk.plan, 1))
    message = f"jobset failed due to reaching max number of restarts (first failed job: {second_job})"
    talk.watch(failed(talk.plan, message=message), *died, jobs=jobs)

    cause = talk.outcome.attempts[0].cause
    assert talk.outcome.first_failed_job == second_job
    assert cause is not None
    assert (cause.job, cause.exit_code) == (second_job, 17)


def test_an_attempt_that_nobody_saw_is_missed() -> None:
    # Given a launcher that saw attempt 0 and died, and two restarts before the next one came
    first = _running()
    second = first.successor()
    second.read(jobset_view(second.plan, restarts=2, restarts_counted=2), pod(second.plan, attempt=2))
    second.watch(completed(second.plan, restarts=2, restarts_counted=2), finished(second.plan, attempt=2))

    assert [(a.number, a.missed) for a in second.outcome.attempts] == [(0, True), (1, True), (2, False)]


def test_what_a_dead_launcher_saw_is_in_the_outcome() -> None:
    first = _running()
    _restart(first, crashed(first.plan, exit_code=42))
    first.sleep(61)
    second = first.successor()
    second.read(jobset_view(second.plan, restarts=1, restarts_counted=1), pod(second.plan, attempt=1))
    second.watch(completed(second.plan, restarts=1, restarts_counted=1), finished(second.plan, attempt=1))

    cause = second.outcome.attempts[0].cause
    assert cause is not None
    assert cause.exit_code == 42
    assert second.outcome.attempts[0].action == "RestartJobSet"


def test_each_attempt_names_the_rule_and_the_action_that_answered_it() -> None:
    # Given a disruption that is restarted for free, then a fatal exit code
    talk = _running()
    at = START + 10
    disrupted = failed_job(
        talk.plan, at=at, reason="PodFailurePolicy", message="Pod x has condition DisruptionTarget matching"
    )
    lost = crashed(talk.plan, exit_code=143, at=at, conditions=LOST)
    talk.watch(jobset_view(talk.plan), lost, jobs=(disrupted,))
    talk.watch(starting(talk.plan, restarts=1))
    talk.watch(jobset_view(talk.plan, restarts=1), pod(talk.plan, attempt=1))
    fatal = failed_job(talk.plan, attempt=1, at=at + 9, reason="PodFailurePolicy", message="exit code 64")
    message = f"applying FailJobSet failure policy action (first failed job: {name_of(talk.plan)}-workers-0)"
    end = failed(talk.plan, "FailJobSetFailurePolicyAction", message, restarts=1)
    talk.watch(end, crashed(talk.plan, exit_code=64, at=at + 9, attempt=1), jobs=(fatal,))

    first, last = talk.outcome.attempts
    assert (first.rule, first.action, first.counted) == (
        "disruption",
        "RestartJobSetAndIgnoreMaxRestarts",
        False,
    )
    assert first.cause is not None
    assert first.cause.disrupted
    assert (last.rule, last.action) == ("fatal", "FailJobSet")
    assert (talk.outcome.rule, talk.outcome.action) == ("fatal", "FailJobSet")
    assert (talk.outcome.verdict, talk.outcome.retryable, talk.outcome.exit_code) == (
        Verdict.FAILED,
        False,
        1,
    )


def test_a_jobset_that_failed_before_its_pods_were_seen_is_read_once_more() -> None:
    talk = _running()
    talk.watch(failed(talk.plan))
    assert talk.finish is None
    talk.read(failed(talk.plan), crashed(talk.plan, exit_code=5), jobs=(failed_job(talk.plan),))

    assert talk.outcome.attempts[0].cause is not None
    assert talk.outcome.attempts[0].cause.exit_code == 5


def test_a_jobset_that_failed_before_its_job_was_seen_to_is_read_once_more_for_the_rule() -> None:
    # Given the pod's end and the JobSet's, told before the Job's that lies between the two
    talk = _running()
    end = failed(talk.plan, reason="FailJobSetFailurePolicyAction")
    talk.watch(end, crashed(talk.plan, exit_code=64))
    assert talk.finish is None
    job = failed_job(
        talk.plan,
        reason="PodFailurePolicy",
        message="Container main for pod ns/p failed with exit code 64 matching FailJob rule at index 1",
    )
    talk.read(end, crashed(talk.plan, exit_code=64), jobs=(job,))

    assert (talk.outcome.rule, talk.outcome.action) == ("fatal", "FailJobSet")


def test_the_last_log_lines_are_waited_for_a_few_seconds_where_nothing_else_tells_why() -> None:
    talk = _running()
    talk.hold = (Tail,)
    talk.watch(failed(talk.plan), crashed(talk.plan), jobs=(failed_job(talk.plan),))
    assert talk.finish is None
    tail = talk._take(Tail)
    talk.hear(Done(tail, lines=("the reason",)), after=2)

    cause = talk.outcome.attempts[0].cause
    assert cause is not None
    assert cause.log_tail == ("the reason",)


def test_log_lines_that_never_come_hold_nothing_up() -> None:
    talk = _running()
    talk.hold = (Tail,)
    talk.watch(failed(talk.plan), crashed(talk.plan), jobs=(failed_job(talk.plan),))
    talk.sleep(6)

    assert talk.outcome.verdict is Verdict.FAILED


def _long(attempts: int, lines: int) -> tuple[Attempt, ...]:
    tail = tuple("x" * 200 for _ in range(lines))
    return tuple(
        Attempt(number=n, started_at=START, cause=Cause(job="j", pod="p", message="m" * 100, log_tail=tail))
        for n in range(attempts)
    )


@pytest.mark.parametrize("ended", [False, True])
def test_a_record_fits_into_64_kib_by_losing_the_oldest_log_tails_first(ended: bool) -> None:
    attempts = _long(attempts=100, lines=20)
    outcome = Outcome(verdict=Verdict.FAILED, attempts=attempts) if ended else None
    record = Record(
        run="r",
        step="s",
        made_by_run="r",
        spec_hash="h",
        jobset="j",
        attempts=() if ended else attempts,
        outcome=outcome,
    )

    small = fit(record)

    kept = small.outcome.attempts if small.outcome else small.attempts
    assert len(small.model_dump_json().encode()) <= LIMIT
    assert len(kept) == 100
    assert kept[-1] == attempts[-1]
    assert kept[0].cause is not None
    assert kept[0].cause.log_tail == ()


def test_a_record_of_very_many_attempts_keeps_the_newest() -> None:
    record = Record(
        run="r",
        step="s",
        made_by_run="r",
        spec_hash="h",
        jobset="j",
        attempts=_long(attempts=2000, lines=1),
    )

    small = fit(record)

    assert len(small.model_dump_json().encode()) <= LIMIT
    assert small.attempts[-1].number == 1999


def test_a_thousand_restarts_stay_within_the_record_and_the_outcome() -> None:
    talk = Talk(plan(spec=jobset(max_restarts=5000)))
    talk.create()
    for n in range(1000):
        talk.watch(
            jobset_view(talk.plan, restarts=n, restarts_counted=n),
            crashed(talk.plan, attempt=n, message="why\n" * 30, at=START + n),
            jobs=(failed_job(talk.plan, attempt=n, at=START + n),),
        )
    talk.watch(completed(talk.plan, restarts=1000, restarts_counted=1000), finished(talk.plan, attempt=1000))

    assert talk.outcome.restarts.total == 1000
    assert talk.memory.record is not None
    assert len(talk.memory.record.model_dump_json().encode()) <= LIMIT
    assert talk.outcome == talk.memory.record.outcome


@pytest.mark.parametrize(
    ("first_silent", "second_silent", "began"),
    [(0.2, 0.6, 0), (0.6, 0.2, 1), (0.6, None, 0), (None, 0.6, 1), (0.6, -30.0, 1), (-30.0, 0.6, 0)],
)
def test_of_two_that_ended_within_a_second_the_one_that_fell_silent_first_began_it(
    first_silent: float | None, second_silent: float | None, began: int
) -> None:
    talk = Talk(plan(spec=jobset(pods=2)))
    talk.create()
    talk.hold = (Tail,)
    at = float(int(talk.now))
    talk.watch(
        jobset_view(talk.plan),
        crashed(talk.plan, 0, exit_code=1, at=at),
        crashed(talk.plan, 1, exit_code=1, at=at),
        jobs=(failed_job(talk.plan, at=at),),
    )
    for silent, index in ((first_silent, 0), (second_silent, 1)):
        tail = next(a for a in talk.pending if isinstance(a, Tail) and a.pod.endswith(f"-{index}-0"))
        talk.pending.remove(tail)
        written = None if silent is None else at + silent
        talk.hear(Done(tail, lines=("last words",), written_at=written))
    talk.watch(starting(talk.plan, restarts=1, restarts_counted=1))
    talk.watch(completed(talk.plan, restarts=1, restarts_counted=1), finished(talk.plan, attempt=1))

    cause = talk.outcome.attempts[0].cause
    assert cause is not None
    assert cause.index == began


def test_a_pod_that_was_torn_down_began_nothing_however_early_it_fell_silent() -> None:
    talk = Talk(plan(spec=jobset(pods=2)))
    talk.create()
    talk.hold = (Tail,)
    at = float(int(talk.now))
    views = (
        crashed(talk.plan, 0, exit_code=1, at=at),
        crashed(talk.plan, 1, exit_code=143, at=at, deleting_since=at),
    )
    talk.watch(jobset_view(talk.plan), *views, jobs=(failed_job(talk.plan, at=at),))
    for index, silent in ((0, 0.8), (1, 0.1)):
        tail = next(a for a in talk.pending if isinstance(a, Tail) and a.pod.endswith(f"-{index}-0"))
        talk.pending.remove(tail)
        talk.hear(Done(tail, lines=("last words",), written_at=at + silent))
    # The same ends are shown again: they are known, though their time is finer now.
    talk.watch(jobset_view(talk.plan), *views, jobs=(failed_job(talk.plan, at=at),))
    talk.watch(starting(talk.plan, restarts=1, restarts_counted=1))
    talk.watch(completed(talk.plan, restarts=1, restarts_counted=1), finished(talk.plan, attempt=1))

    cause = talk.outcome.attempts[0].cause
    assert cause is not None
    assert (cause.index, cause.exit_code) == (0, 1)
