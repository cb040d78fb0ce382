"""Cancel deletes, eviction keeps: the tombstone, the create under way, the repeated delete, and the named leak."""

from __future__ import annotations

from typing import Any

import pytest
from step_talk import (
    START,
    Memory,
    Talk,
    completed,
    crashed,
    failed,
    failed_job,
    jobset_view,
    name_of,
    plan,
    pod,
)

from jobset_steps.outcome import Verdict
from jobset_steps.supervisor import Phase
from jobset_steps.supervisor.inputs import (
    Create,
    Delete,
    Deliver,
    EndCause,
    EndRequest,
    Load,
    Progress,
    Read,
    Save,
)

CANCEL = EndRequest(EndCause.CANCEL, "the Workflow was shut down")
EVICTION = EndRequest(EndCause.EVICTION, "the node is drained")
UNKNOWN = EndRequest(EndCause.UNKNOWN, "the API server does not answer")


def _running(**more: Any) -> Talk:
    talk = Talk(plan(**more))
    talk.create()
    talk.watch(jobset_view(talk.plan), pod(talk.plan))
    return talk


def _states(talk: Talk) -> list[str]:
    return [save.record.state for save in talk.all(Save)]


def test_a4_a_cancel_deletes_by_uid_and_ends_non_zero() -> None:
    talk = _running()
    talk.hear(CANCEL)

    # the tombstone first, then the delete with the uid as its precondition
    assert _states(talk)[-1] == "ending"
    assert talk.pending == [Delete(name_of(talk.plan), "uid-1")]
    talk.done(Delete)
    talk.read(jobset_view(talk.plan, deleting_since=talk.now), pod(talk.plan))
    assert talk.finish is None
    talk.watch(None)
    talk.read(None)

    assert (talk.outcome.verdict, talk.outcome.exit_code) == (Verdict.CANCELLED, 143)
    assert "the Workflow was shut down" in talk.outcome.message
    assert talk.outcome.leaked == ""
    assert _states(talk)[-2:] == ["ended", "ended"] or _states(talk)[-1] == "ended"


def test_gone_means_its_pods_too() -> None:
    talk = _running()
    talk.hear(CANCEL)
    talk.done(Delete)
    talk.read(None, pod(talk.plan))
    assert talk.finish is None
    talk.sleep(3)
    talk.read(None, pod(talk.plan, gone=True))

    assert talk.outcome.leaked == ""


def test_b8_a_delete_that_fails_three_times_is_sent_a_fourth_time() -> None:
    talk = _running()
    talk.hear(CANCEL)
    for _ in range(3):
        talk.fault(Delete, "unavailable", "500")
        talk.sleep(6)
    talk.done(Delete)
    talk.read(None)

    assert len(talk.all(Delete)) == 4
    assert talk.outcome.leaked == ""


def test_b8_a_delete_that_always_fails_names_the_leak_within_the_grace() -> None:
    talk = _running()
    talk.hear(CANCEL)
    began = talk.now
    while talk.finish is None:
        talk.fault(Delete, "unavailable", "500") if talk.asks(Delete) else talk.sleep(1)

    name = f"team/{name_of(talk.plan)}"
    assert talk.outcome.leaked == name
    assert name in talk.outcome.message
    assert talk.outcome.exit_code == 143
    assert talk.now - began <= 26


def test_b8_a_time_out_deletes_and_confirms_with_more_patience() -> None:
    talk = _running(budgets={"run": "10m"})
    while not talk.asks(Delete):
        talk.read(jobset_view(talk.plan)) if talk.asks(Read) else talk.sleep(60)
    began = talk.now
    while talk.finish is None:
        talk.fault(Delete, "unavailable", "500") if talk.asks(Delete) else talk.sleep(5)

    assert (talk.outcome.verdict, talk.outcome.exit_code) == (Verdict.RUN_TIMEOUT, 124)
    assert talk.outcome.leaked == f"team/{name_of(talk.plan)}"
    assert talk.now - began == pytest.approx(600, abs=20)


def test_a_delete_that_was_taken_and_forgotten_is_repeated() -> None:
    talk = _running(grace=120.0)
    talk.hear(CANCEL)
    talk.done(Delete)
    for _ in range(10):
        if talk.asks(Delete):
            break
        talk.read(jobset_view(talk.plan)) if talk.asks(Read) else talk.sleep(10)

    assert len(talk.all(Delete)) >= 2


def test_a_cancel_waits_for_a_create_under_way_and_deletes_what_it_made() -> None:
    talk = Talk(plan())
    talk.hear(CANCEL)
    assert _states(talk)[-1] == "ending"
    assert not talk.all(Delete)
    talk.done(Create, uid="uid-1")

    assert talk.all(Delete) == [Delete(name_of(talk.plan), "uid-1")]


def test_a_cancel_after_a_create_without_answer_waits_until_it_cannot_take_effect_any_more() -> None:
    talk = Talk(plan())
    talk.hear(CANCEL)
    talk.fault(Create, "unavailable", "504")
    talk.read(None)
    assert talk.finish is None

    # When it does take effect after all
    talk.sleep(2)
    talk.read(jobset_view(talk.plan, uid="late"))
    assert talk.all(Delete) == [Delete(name_of(talk.plan), "late")]
    talk.done(Delete)
    talk.sleep(10)
    talk.read(None)

    assert talk.outcome.verdict is Verdict.CANCELLED
    assert talk.outcome.leaked == ""


def test_a_cancel_before_anything_was_created_creates_nothing() -> None:
    talk = Talk(plan(), hold=(Load,))
    talk.hear(CANCEL)
    load = talk._take(Load)
    talk.hold = ()
    talk.hear(talk.memory.load(load))

    assert talk.outcome.verdict is Verdict.CANCELLED
    assert not talk.all(Create)
    assert not talk.all(Delete)
    # and nobody resumes it
    assert talk.memory.record is not None
    assert talk.memory.record.state == "ended"


def test_a_cancel_while_the_intent_is_being_saved_creates_nothing() -> None:
    talk = Talk(plan(), hold=(Save,))
    talk.hear(CANCEL)
    save = talk._take(Save)
    talk.hold = ()
    talk.hear(talk.memory.save(save))

    assert talk.outcome.verdict is Verdict.CANCELLED
    assert not talk.all(Create)


def test_a_cancel_of_a_launcher_that_has_just_come_back_ends_the_running_jobset() -> None:
    first = _running()
    second = Talk(plan(launcher="pod-b", retry=1), first.memory, hold=(Load,))
    second.hear(CANCEL)
    load = second._take(Load)
    second.hold = ()
    second.hear(second.memory.load(load))

    assert second.all(Delete) == [Delete(name_of(first.plan), "uid-1")]


def test_a_relaunched_launcher_that_finds_a_tombstone_finishes_the_deletion_first() -> None:
    # Given a run time-out whose launcher died after the tombstone
    first = _running(budgets={"run": "10m"})
    while not first.asks(Delete):
        first.read(jobset_view(first.plan)) if first.asks(Read) else first.sleep(60)

    # When the engine's retry comes
    second = first.successor(retry=1)

    # Then it deletes, confirms, and reports the time-out
    assert second.pending == [Delete(name_of(first.plan), "uid-1")]
    second.done(Delete)
    second.read(None)
    assert (second.outcome.verdict, second.outcome.exit_code) == (Verdict.RUN_TIMEOUT, 124)
    assert not second.all(Create)


def test_a_persons_retry_after_a_cancel_that_was_cut_short_finishes_it_and_trains() -> None:
    # Given a cancel whose launcher was killed before it could confirm the deletion
    first = _running()
    first.hear(CANCEL)

    # When a person retries the step, with a new launcher
    again = first.successor(launcher="pod-c", retry=0)
    again.done(Delete)
    again.sleep(12)
    again.read(None)
    # the generation before is looked at once more before the next one
    again.done(Delete)
    again.read(None)

    assert again.all(Create) == [Create(name_of(first.plan, 2), 2)]


def test_an_eviction_saves_what_was_spent_and_leaves_the_jobset() -> None:
    talk = _running()
    talk.sleep(600)
    talk.hear(EVICTION)

    assert (talk.outcome.verdict, talk.outcome.reason, talk.outcome.exit_code) == (
        Verdict.UNKNOWN,
        "LauncherEvicted",
        76,
    )
    assert not talk.all(Delete)
    assert not talk.all(Deliver)
    assert talk.memory.record is not None
    assert talk.memory.record.state == "created"
    assert talk.memory.record.spent.running == pytest.approx(600)


def test_who_cannot_tell_leaves_and_says_so() -> None:
    talk = _running()
    talk.hear(UNKNOWN)

    assert talk.outcome.exit_code == 76
    assert "cannot tell" in talk.outcome.message
    assert "left running" in talk.outcome.message
    assert not talk.all(Delete)


def test_an_eviction_during_a_create_records_what_it_made_if_it_can() -> None:
    talk = Talk(plan())
    talk.hear(EVICTION)
    assert talk.finish is None
    talk.done(Create, uid="uid-1")

    assert talk.outcome.exit_code == 76
    assert talk.memory.record is not None
    assert (talk.memory.record.state, talk.memory.record.uid) == ("created", "uid-1")


def test_an_eviction_is_not_held_up_by_a_server_that_does_not_answer() -> None:
    talk = _running(budgets={})
    talk.hold = (Save,)
    talk.hear(EVICTION)
    talk.sleep(6)

    assert talk.outcome.exit_code == 76


def test_an_eviction_in_the_middle_of_a_time_out_leaves_the_tombstone_for_the_next() -> None:
    talk = _running(budgets={"run": "10m"})
    while not talk.asks(Delete):
        talk.read(jobset_view(talk.plan)) if talk.asks(Read) else talk.sleep(60)
    talk.hear(EVICTION)

    assert talk.outcome.exit_code == 76
    assert talk.memory.record is not None
    assert talk.memory.record.state == "ending"


def test_a_cancel_beats_an_eviction_and_an_eviction_does_not_stop_a_cancel() -> None:
    talk = _running()
    talk.hold = (Save,)
    talk.hear(EVICTION)
    talk.hold = ()
    talk.hear(CANCEL)
    assert talk.state.phase is Phase.ENDING

    other = _running()
    other.hear(CANCEL)
    other.hear(EVICTION)
    assert other.state.phase is Phase.ENDING
    assert other.finish is None


def test_a_second_cancel_sends_the_delete_again_and_a_third_gives_up() -> None:
    talk = _running(grace=300.0)
    talk.hear(CANCEL)
    for _ in range(5):
        talk.fault(Delete)
        talk.sleep(20)
    talk.fault(Delete) if talk.asks(Delete) else None
    deletes = len(talk.all(Delete))
    talk.hear(CANCEL)
    assert len(talk.all(Delete)) == deletes + 1

    talk.hear(CANCEL)
    assert talk.outcome.leaked
    assert talk.outcome.exit_code == 143


def test_an_end_that_was_seen_before_the_cancel_stands() -> None:
    # Given a JobSet that has failed, its last log lines still under way
    talk = _running()
    talk.hold = tuple(kind for kind in (Save,))
    died = crashed(talk.plan)
    talk.watch(failed(talk.plan), died, jobs=(failed_job(talk.plan),))
    talk.hear(CANCEL)
    talk.hold = ()
    while talk.asks(Save):
        talk.hear(talk.memory.save(talk._take(Save)))

    assert talk.outcome.verdict is Verdict.FAILED
    assert not talk.all(Delete)


def test_a_time_out_gives_way_to_an_end_that_is_seen_before_the_delete_is_sent() -> None:
    talk = _running(budgets={"run": "10m"})
    talk.hold = (Save,)
    while talk.state.phase is Phase.WAITING:
        talk.read(jobset_view(talk.plan)) if talk.asks(Read) else talk.sleep(60)
    assert talk.state.phase is Phase.ENDING
    talk.watch(completed(talk.plan), pod(talk.plan, phase="Succeeded"))
    talk.hold = ()
    while talk.asks(Save):
        save = talk._take(Save)
        talk.hear(talk.memory.save(save))

    assert talk.outcome.verdict is Verdict.SUCCEEDED
    assert not talk.all(Delete)


def test_a_tombstone_that_cannot_be_saved_does_not_keep_a_known_jobset_alive() -> None:
    talk = _running()
    talk.hold = (Save,)
    talk.hear(CANCEL)
    talk.fault(Save)

    assert talk.all(Delete)


def test_a_time_out_waits_for_its_tombstone_but_not_for_ever() -> None:
    talk = _running(budgets={"run": "10m"})
    talk.hold = (Save,)
    while talk.state.phase is Phase.WAITING:
        talk.read(jobset_view(talk.plan)) if talk.asks(Read) else talk.sleep(60)
    began = talk.now
    while not talk.asks(Delete):
        talk.fault(Save, "forbidden") if talk.asks(Save) else talk.sleep(1)

    assert 60 <= talk.now - began < 130


def test_a_cancel_is_over_in_time_even_if_nothing_can_be_saved() -> None:
    talk = _running()
    talk.hold = (Save,)
    talk.hear(CANCEL)
    began = talk.now
    while talk.finish is None:
        if talk.asks(Save):
            talk.fault(Save)
        elif talk.asks(Delete):
            talk.done(Delete)
        elif talk.asks(Read):
            talk.read(None)
        else:
            talk.sleep(1)

    assert talk.outcome.verdict is Verdict.CANCELLED
    assert talk.now - began < 30
    assert talk.all(Deliver)


def test_in_a_slot_another_run_waits_but_does_not_cancel() -> None:
    memory = Memory()
    owner = Talk(plan(slot="2026-01-01"), memory)
    owner.create()
    other = Talk(plan(run="run-2", slot="2026-01-01", launcher="pod-x"), memory)
    other.read(jobset_view(other.plan))
    assert other.state.phase is Phase.WAITING
    saved = memory.record

    other.hear(CANCEL)

    assert (other.outcome.verdict, other.outcome.exit_code) == (Verdict.CANCELLED, 143)
    assert "belongs to run 'run-1'" in other.outcome.message
    assert not other.all(Delete)
    assert memory.record == saved
    # while the run that made it may
    owner.hear(CANCEL)
    assert owner.all(Delete)


def test_in_a_slot_another_run_gets_the_result_and_leaves_no_mark() -> None:
    memory = Memory()
    owner = Talk(plan(slot="2026-01-01"), memory)
    owner.create()
    owner.watch(completed(owner.plan))
    owner.read(completed(owner.plan))
    other = Talk(plan(run="run-2", slot="2026-01-01", launcher="pod-x"), memory)

    assert other.outcome.verdict is Verdict.SUCCEEDED
    assert not other.all(Create)
    assert memory.record is not None
    assert memory.record.delivered_launcher == "pod-a"


def test_ending_is_told() -> None:
    talk = _running()
    talk.hear(CANCEL)

    assert talk.said[-1].progress is Progress.ENDING
    assert talk.now == START
