"""Never train twice, unless a new training is due: what each Record means for each launcher."""

from __future__ import annotations

from typing import Any

import pytest
from step_talk import Memory, Talk, completed, crashed, failed, failed_job, jobset_view, name_of, plan, pod

from jobset_steps.observed import Condition
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.supervisor import Phase
from jobset_steps.supervisor.inputs import Create, Delete, Deliver, Done, Read
from jobset_steps.supervisor.life import Found, decide
from jobset_steps.supervisor.plan import Record

LOST = (Condition("DisruptionTarget", "True", "DeletionByTaintManager"),)


def _record(**changes: Any) -> Record:
    fields: dict[str, Any] = {
        "run": "run-1",
        "step": "train",
        "made_by_run": "run-1",
        "spec_hash": "abc",
        "jobset": name_of(plan()),
        "uid": "uid-1",
        "state": "created",
        **changes,
    }
    return Record(**fields)


def _ended(verdict: Verdict = Verdict.FAILED, *, retryable: bool = False, **changes: Any) -> Record:
    outcome = Outcome(verdict=verdict, retryable=retryable)
    return _record(state="ended", outcome=outcome, **{"delivered_launcher": "pod-a", **changes})


# Given a Record, and a launcher (name, retry index); then
@pytest.mark.parametrize(
    ("record", "launcher", "retry", "found"),
    [
        (None, "pod-a", 0, Found.FRESH),
        (_record(state="intent", uid=""), "pod-b", 1, Found.RESUME),
        (_record(), "pod-b", 1, Found.FOLLOW),
        (
            _record(state="ending", outcome=Outcome(verdict=Verdict.RUN_TIMEOUT)),
            "pod-b",
            1,
            Found.FINISH_ENDING,
        ),
        (_record(spec_hash="another"), "pod-b", 1, Found.REFUSE),
        # an outcome that was delivered to nobody is delivered, whatever it is
        (_ended(retryable=True, delivered_launcher=""), "pod-b", 1, Found.REPLAY),
        # the same launcher, its container restarted
        (_ended(retryable=True), "pod-a", 0, Found.REPLAY),
        # the engine's own retry trains again only what is worth it
        (_ended(retryable=True), "pod-b", 1, Found.AGAIN),
        (_ended(retryable=False), "pod-b", 1, Found.REPLAY),
        # a person's retry, a new launcher with no higher index, trains again whatever the verdict
        (_ended(retryable=False), "pod-b", 0, Found.AGAIN),
        (_ended(Verdict.RUN_TIMEOUT), "pod-b", 0, Found.AGAIN),
        (_ended(Verdict.REJECTED), "pod-b", 0, Found.AGAIN),
        (_ended(retryable=False, delivered_retry=2), "pod-b", 2, Found.AGAIN),
        # what succeeded is never trained again
        (_ended(Verdict.SUCCEEDED), "pod-b", 0, Found.REPLAY),
        (_ended(Verdict.SUCCEEDED), "pod-b", 1, Found.REPLAY),
    ],
)
def test_what_a_record_means(record: Record | None, launcher: str, retry: int, found: Found) -> None:
    assert decide(plan(launcher=launcher, retry=retry), record) is found


def test_a_launcher_that_follows_a_generation_replays_its_end_and_begins_no_other() -> None:
    assert decide(plan(launcher="pod-b", retry=1), _ended(retryable=True), following=1) is Found.REPLAY


def test_a_launcher_that_follows_an_old_generation_is_superseded() -> None:
    assert decide(plan(), _record(generation=2), following=1) is Found.SUPERSEDED


def test_in_a_slot_only_the_run_that_made_it_trains_again() -> None:
    record = _ended(retryable=True, slot="2026-01-01")
    other = plan(run="run-2", slot="2026-01-01", launcher="pod-b", retry=1)

    assert decide(other, record) is Found.REPLAY
    assert decide(plan(slot="2026-01-01", launcher="pod-b", retry=1), record) is Found.AGAIN


def _fail(talk: Talk, *, disrupted: bool = False) -> None:
    died = crashed(talk.plan, conditions=LOST if disrupted else ())
    talk.watch(failed(talk.plan, uid=talk.state.uid), died, jobs=(failed_job(talk.plan),))


def test_a13_a_failure_of_the_training_itself_is_not_retried() -> None:
    # Given a training that used up its restarts by its own crashes
    first = Talk(plan())
    first.create()
    _fail(first)
    assert (first.outcome.reason, first.outcome.exit_code) == ("ReachedMaxRestarts", 1)

    # When the engine tries again all the same
    second = first.successor(retry=1)

    # Then the recorded outcome is given once more and nothing is created
    assert second.outcome == first.outcome
    assert not second.all(Create)


def test_a13_a_waiter_that_was_killed_is_retried_and_adopts() -> None:
    first = Talk(plan())
    first.create()

    second = first.successor(retry=1)
    second.read(completed(second.plan))

    assert second.outcome.verdict is Verdict.SUCCEEDED
    assert not second.all(Create)


def test_a_failure_that_infrastructure_caused_begins_a_new_generation_once_nothing_is_left() -> None:
    first = Talk(plan())
    first.create()
    _fail(first, disrupted=True)
    assert (first.outcome.retryable, first.outcome.exit_code) == (True, 75)

    # When the engine tries again
    second = first.successor(retry=1)

    # Then the JobSet of the first generation goes first, with its pods
    assert second.pending == [Delete(name_of(first.plan), "uid-1")]
    second.done(Delete)
    second.read(failed(first.plan))
    second.sleep(2)
    second.read(None, pod(first.plan))
    assert not second.all(Create)
    second.sleep(30)
    second.read(None)

    # and only then is the second generation created, under another name, counted anew
    assert second.all(Create) == [Create(name_of(first.plan, 2), 2)]
    second.create("uid-2")
    assert second.memory.record is not None
    assert (second.memory.record.generation, second.memory.record.uid) == (2, "uid-2")
    second.watch(completed(second.plan, uid="uid-2", generation=2))
    second.read(completed(second.plan, uid="uid-2", generation=2))
    assert (second.outcome.generation, second.outcome.restarts.total) == (2, 0)
    assert [attempt.cause for attempt in second.outcome.attempts] == [None]


def test_a_generation_that_cannot_be_removed_ends_the_step_and_names_the_leak() -> None:
    first = Talk(plan(budgets={"startup": 300}))
    first.create()
    _fail(first, disrupted=True)

    second = first.successor(retry=1)
    while second.finish is None and second.now < first.now + 1000:
        second.fault(Delete) if second.asks(Delete) else second.sleep(5)

    assert second.outcome.verdict is Verdict.STARTUP_TIMEOUT
    assert second.outcome.leaked == f"team/{name_of(first.plan)}"
    assert not second.all(Create)


def test_a_persons_retry_trains_again_whatever_the_verdict() -> None:
    first = Talk(plan())
    first.create()
    _fail(first)

    again = first.successor(launcher="pod-c", retry=0)
    again.done(Delete)
    again.read(None)

    assert again.asks(Create)


def test_an_outcome_that_was_never_delivered_is_delivered() -> None:
    # Given a launcher that died between its outcome and its outputs
    first = Talk(plan(), hold=(Deliver,))
    first.create()
    _fail(first, disrupted=True)
    assert first.asks(Deliver)

    # When the next one comes
    second = first.successor(retry=1)

    # Then it hands that outcome over, once, and trains nothing
    assert [action.outcome.reason for action in second.all(Deliver)] == ["ReachedMaxRestarts"]
    assert second.outcome.exit_code == 75
    assert not second.all(Create)
    assert second.memory.record is not None
    assert second.memory.record.delivered_launcher == "pod-b"


def test_another_spec_under_the_same_identity_is_refused_and_changes_nothing() -> None:
    first = Talk(plan())
    first.create()
    before = first.memory.record

    second = first.successor(spec_hash="changed")

    assert (second.outcome.verdict, second.outcome.reason, second.outcome.exit_code) == (
        Verdict.REJECTED,
        "SpecChanged",
        64,
    )
    assert "another run or step name" in second.outcome.message
    assert first.memory.record == before
    assert second.all(Deliver)


def test_a_jobset_that_somebody_deleted_is_never_made_again() -> None:
    first = Talk(plan())
    first.create()

    second = first.successor()
    second.read(None)

    assert (second.outcome.verdict, second.outcome.exit_code) == (Verdict.DELETED_EXTERNALLY, 1)
    assert not second.all(Create)


def test_a_jobset_of_another_uid_under_our_name_is_not_ours() -> None:
    talk = Talk(plan())
    talk.create()
    theirs = jobset_view(talk.plan, uid="uid-2", labels=(), annotations=())
    talk.watch(theirs)
    assert talk.finish is None
    talk.read(theirs)

    assert talk.outcome.verdict is Verdict.DELETED_EXTERNALLY
    assert not talk.all(Delete)
    assert "uid-2" in talk.outcome.message


def test_absence_proves_something_only_in_a_complete_view() -> None:
    talk = Talk(plan())
    talk.create()
    talk.watch(None)

    assert talk.finish is None
    assert talk.asks(Read)
    talk.read(jobset_view(talk.plan))
    assert talk.state.phase is Phase.WAITING


def test_an_absence_that_was_read_before_the_uid_was_known_proves_nothing() -> None:
    from jobset_steps.observed import View
    from jobset_steps.supervisor.inputs import Seen

    talk = Talk(plan())
    talk.sleep(10)
    talk.create()
    talk.hear(Seen(View(None, complete=True, read_at=talk.now - 5)))

    assert talk.finish is None


def test_two_launchers_of_one_training_both_end_with_its_outcome() -> None:
    # Given a launcher that was thought dead and its successor, both waiting
    memory = Memory()
    first = Talk(plan(), memory)
    first.create()
    second = first.successor()
    second.read(jobset_view(second.plan))

    # When the JobSet ends in a retryable failure, seen first by the one that is no longer waited for
    _fail(first, disrupted=True)
    _fail(second, disrupted=True)

    # Then the successor reports that failure, and begins no generation of its own
    assert second.outcome.exit_code == 75
    assert not second.all(Create)
    assert memory.record is not None
    assert memory.record.delivered_launcher == "pod-b"
    # and the engine's next launcher may train again
    third = second.successor(launcher="pod-c", retry=2)
    assert third.state.phase is Phase.CLEARING


def test_a_launcher_that_is_too_late_ends_without_a_verdict() -> None:
    first = Talk(plan())
    first.create()
    second = first.successor()
    second.read(jobset_view(second.plan))
    _fail(second, disrupted=True)
    third = second.successor(launcher="pod-c", retry=2)
    third.done(Delete)
    third.read(None)

    # When the first one, long thought dead, sees its JobSet gone
    first.watch(None)
    first.read(None)

    assert (first.outcome.verdict, first.outcome.reason) == (Verdict.UNKNOWN, "Superseded")
    assert not first.all(Deliver)


def test_what_a_launcher_delivered_stands_whatever_happened_to_the_record_meanwhile() -> None:
    # Given a launcher that has delivered a failure, its mark still to be saved
    first = Talk(plan(), hold=(Deliver,))
    first.create()
    _fail(first)
    late = first._take(Deliver)
    # and a later one that delivered it too, and a person's retry after that
    second = first.successor(retry=1)
    assert second.outcome.exit_code == 1
    third = second.successor(launcher="pod-c", retry=0)
    third.done(Delete)
    third.read(None)

    # When the first one's delivery is answered at last
    first.hear(Done(late))

    # Then its outcome is what it delivered, and the new generation is left alone
    assert first.outcome.reason == "ReachedMaxRestarts"
    assert third.memory.record is not None
    assert (third.memory.record.generation, third.memory.record.delivered_launcher) == (2, "")
