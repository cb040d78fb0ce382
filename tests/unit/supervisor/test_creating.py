"""From the first input to a JobSet whose uid is recorded: the order of things, and every way a create can go."""

from __future__ import annotations

import pytest
from step_talk import START, Memory, Talk, completed, finished, jobset_view, name_of, plan

from jobset_steps.outcome import Verdict
from jobset_steps.spec.naming import IDENTITY, RUN
from jobset_steps.supervisor import Phase
from jobset_steps.supervisor.inputs import (
    Create,
    Delete,
    Deliver,
    Finish,
    Load,
    Progress,
    Read,
    Save,
    Say,
    WakeAt,
)


def _order(talk: Talk) -> list[str]:
    kinds = [action for action in talk.log if not isinstance(action, Say | WakeAt | Read)]
    return [
        f"Save {action.record.state}" if isinstance(action, Save) else type(action).__name__
        for action in kinds
    ]


def test_the_order_is_intent_create_uid_outcome_deliver_mark_finish() -> None:
    talk = Talk(plan())
    talk.create()
    talk.watch(completed(talk.plan))
    talk.read(completed(talk.plan))

    assert _order(talk) == [
        "Load",
        "Save intent",
        "Create",
        "Save created",
        "Save ended",
        "Deliver",
        "Save ended",
        "Finish",
    ]
    assert talk.memory.record is not None
    assert (talk.memory.record.delivered_launcher, talk.memory.record.delivered_retry) == ("pod-a", 0)


def test_nothing_is_created_before_the_intent_is_stored() -> None:
    talk = Talk(plan(), hold=(Save,))
    talk.fault(Save)
    talk.sleep(1000)

    assert not talk.all(Create)
    assert talk.state.phase is Phase.INTENDING


def test_nothing_is_waited_for_before_the_uid_is_stored_and_nothing_is_lost_meanwhile() -> None:
    # Given a JobSet that ends while its uid is still being saved
    talk = Talk(plan())
    talk.hold = (Save,)
    talk.create()
    talk.watch(completed(talk.plan))
    assert talk.state.phase is Phase.RECORDING

    # When the save is answered at last
    talk.hold = ()
    talk.hear(talk.memory.save(talk._take(Save)))

    # Then what was seen meanwhile is judged, without another change of the world
    assert talk.state.phase in (Phase.GATHERING, Phase.DONE)


def test_a1_a_launcher_that_comes_back_adopts_the_jobset_and_returns_its_result() -> None:
    # Given a launcher that was killed after the create took effect, before its answer
    first = Talk(plan())
    assert first.asks(Create)

    # When the same step is started again
    second = first.successor(launcher="pod-a", retry=0)
    second.read(jobset_view(second.plan))
    second.read(jobset_view(second.plan))
    second.watch(completed(second.plan))
    second.read(completed(second.plan))

    # Then no second JobSet is asked for, and the first one's result is the step's
    assert not second.all(Create)
    assert second.outcome.verdict is Verdict.SUCCEEDED
    assert second.outcome.uid == "uid-1"


def test_a1_a_launcher_that_comes_back_after_the_uid_was_saved_never_creates() -> None:
    first = Talk(plan())
    first.create()

    second = first.successor()
    second.read(jobset_view(second.plan))

    assert second.state.phase is Phase.WAITING
    assert not second.all(Create)


def test_a2_a_create_that_timed_out_but_took_effect_is_adopted() -> None:
    talk = Talk(plan())
    talk.fault(Create, "unavailable", "504: the request may still be processing")
    talk.sleep(5)
    talk.read(jobset_view(talk.plan))

    assert len(talk.all(Create)) == 1
    assert talk.memory.record is not None
    assert (talk.memory.record.state, talk.memory.record.uid) == ("created", "uid-1")


def test_a2_a_create_that_timed_out_without_effect_is_sent_again_after_a_look() -> None:
    talk = Talk(plan())
    talk.fault(Create)
    talk.sleep(5)
    talk.read(None)

    assert len(talk.all(Create)) == 2
    talk.create()
    assert talk.state.phase is Phase.WAITING


def test_a2_a_taken_name_is_an_error_that_names_the_owner_and_deletes_nothing() -> None:
    # Given our name taken by another run's JobSet
    talk = Talk(plan())
    other = plan(run="run-9")
    foreign = jobset_view(talk.plan, uid="theirs")
    marks = dict(jobset_view(other).annotations)
    labels = {**dict(foreign.labels), IDENTITY: "0123456789"}
    foreign = jobset_view(
        talk.plan, uid="theirs", labels=tuple(labels.items()), annotations=tuple(marks.items())
    )
    assert marks[RUN] == "run-9"

    talk.fault(Create, "exists")
    talk.read(foreign)

    assert talk.outcome.verdict is Verdict.REJECTED
    assert talk.outcome.exit_code == 64
    assert talk.outcome.reason == "NameTaken"
    assert "run-9" in talk.outcome.message
    assert "theirs" in talk.outcome.message
    assert not talk.all(Delete)
    assert talk.outcome.leaked == ""


def test_a2_a_jobset_of_this_identity_but_another_spec_is_not_adopted() -> None:
    talk = Talk(plan())
    talk.fault(Create, "exists")
    talk.read(jobset_view(plan(spec_hash="other")))

    assert (talk.outcome.verdict, talk.outcome.reason) == (Verdict.REJECTED, "NameTaken")
    assert not talk.all(Delete)


def test_a1_a_name_that_was_taken_and_is_free_again_sends_the_launcher_back_to_the_record() -> None:
    # Given two launchers that read the Record before either had made anything
    slow = Talk(plan())
    quick = slow.successor(retry=0)
    # When the quick one has made its JobSet, and it has ended and is gone, before the slow one is told that the name is taken
    quick.read(None)
    quick.create()
    quick.watch(completed(quick.plan), finished(quick.plan))
    assert quick.outcome.verdict is Verdict.SUCCEEDED
    slow.fault(Create, "exists")
    slow.read(None)
    # Then the slow one tells that outcome and trains nothing
    assert slow.outcome.verdict is Verdict.SUCCEEDED
    assert len(slow.all(Create)) == 1


def test_a2_a_name_that_was_taken_by_somebody_else_and_is_free_again_is_used() -> None:
    talk = Talk(plan())
    talk.fault(Create, "exists")
    talk.read(None)
    talk.read(None)
    talk.create()

    assert talk.state.phase is Phase.WAITING
    assert len(talk.all(Create)) == 2


def test_c1_what_the_server_calls_invalid_ends_at_once_with_one_create() -> None:
    talk = Talk(plan())
    talk.fault(Create, "invalid", 'admission webhook "vjobset.kb.io" denied the request: name too long')

    assert (talk.outcome.verdict, talk.outcome.exit_code) == (Verdict.REJECTED, 64)
    assert "name too long" in talk.outcome.message
    assert len(talk.all(Create)) == 1
    assert talk.outcome.attempts == ()


def test_c1_a_refusal_that_old_webhooks_give_as_403_is_a_rejected_spec() -> None:
    talk = Talk(plan())
    talk.fault(Create, "forbidden", 'admission webhook "vjobset.kb.io" denied the request: bad')

    assert talk.outcome.verdict is Verdict.REJECTED


def test_forbidden_is_forbidden() -> None:
    talk = Talk(plan())
    talk.fault(Create, "forbidden", "jobsets is forbidden: User x cannot create")

    assert (talk.outcome.verdict, talk.outcome.exit_code) == (Verdict.FORBIDDEN, 77)


@pytest.mark.parametrize("kind", [Load, Save])
def test_a_record_that_may_not_be_touched_is_forbidden_before_anything_is_made(kind: type) -> None:
    talk = Talk(plan(), hold=(kind,))
    talk.fault(kind, "forbidden", "configmaps is forbidden")

    assert (talk.outcome.verdict, talk.outcome.exit_code) == (Verdict.FORBIDDEN, 77)
    assert not talk.all(Create)


def test_c16_a_webhook_that_is_down_is_waited_for() -> None:
    message = 'Internal error occurred: failed calling webhook "mjobset.kb.io": connection refused'
    talk = Talk(plan())
    talk.fault(Create, "unavailable", message)
    talk.sleep(2)
    talk.fault(Create, "unavailable", message)
    talk.sleep(4)
    talk.create()

    assert talk.state.phase is Phase.WAITING
    assert len(talk.all(Create)) == 3
    assert not talk.all(Read)
    assert any(say.progress is Progress.STUCK and say.cause == "WebhookUnavailable" for say in talk.said)


def test_c16_a_webhook_that_stays_down_ends_with_the_start_up_budget() -> None:
    talk = Talk(plan(budgets={"startup": 300}))
    for _ in range(100):
        if not talk.asks(Create):
            break
        talk.fault(Create, "unavailable", "failed calling webhook: no endpoints available")
        talk.sleep(61)
    talk.read(None)

    assert talk.outcome.verdict is Verdict.STARTUP_TIMEOUT
    assert talk.outcome.reason == "WebhookUnavailable"
    assert len(talk.all(Create)) < 20


def test_a_quota_on_jobsets_is_waited_for() -> None:
    talk = Talk(plan())
    talk.fault(Create, "forbidden", "jobsets is forbidden: exceeded quota: team, requested: count=1")
    assert talk.finish is None
    talk.sleep(2)

    assert talk.asks(Create)


def test_a_server_that_never_answers_a_create_ends_with_the_outage_budget_and_no_verdict() -> None:
    talk = Talk(plan(budgets={"outage": 600}))
    for _ in range(100):
        if talk.finish:
            break
        for kind in (Create, Read):
            if talk.asks(kind):
                talk.fault(kind)
        talk.sleep(30)

    assert (talk.outcome.verdict, talk.outcome.reason, talk.outcome.exit_code) == (
        Verdict.UNKNOWN,
        "ApiUnavailable",
        69,
    )
    assert not talk.all(Deliver)
    assert talk.now - START < 700


def test_who_loses_the_swap_of_the_uid_deletes_what_it_made_and_follows_the_winner() -> None:
    # Given two launchers that both made a JobSet (the first one's was deleted in between)
    memory = Memory()
    loser = Talk(plan(), memory)
    winner = Talk(plan(launcher="pod-b"), memory)
    winner.read(None)
    winner.create("uid-winner")

    # When the loser records its uid
    loser.create("uid-loser")

    # Then its own JobSet goes, by uid, and until it is gone
    assert loser.all(Delete) == [Delete(name_of(loser.plan), "uid-loser")]
    loser.done(Delete)
    loser.read(jobset_view(loser.plan, uid="uid-loser"))
    assert loser.state.uid == "uid-loser"
    loser.sleep(2)
    loser.read(None)
    # and it follows the winner's
    assert (loser.state.phase, loser.state.uid) == (Phase.WAITING, "uid-winner")
    assert memory.record is not None
    assert memory.record.uid == "uid-winner"


def test_a_lost_create_that_takes_effect_after_ours_was_deleted_is_deleted_too() -> None:
    # Given a create without an answer, a second one that made the JobSet, and a person who deleted that
    talk = Talk(plan())
    talk.fault(Create)
    talk.sleep(1)
    talk.read(None)
    talk.create("uid-1")
    talk.watch(jobset_view(talk.plan))

    # When the name is free the first create takes effect after all
    talk.watch(jobset_view(talk.plan, uid="uid-late"))
    talk.read(jobset_view(talk.plan, uid="uid-late"))

    # Then what no Record knows is deleted, and the outcome is that ours was deleted
    talk.done(Delete)
    talk.read(jobset_view(talk.plan, uid="uid-late"))
    assert talk.all(Delete)[-1] == Delete(name_of(talk.plan), "uid-late")
    talk.done(Delete)
    talk.sleep(15)
    talk.read(None)
    assert talk.outcome.verdict is Verdict.DELETED_EXTERNALLY
    assert talk.outcome.leaked == ""


def test_a_save_whose_answer_was_lost_is_known_as_our_own() -> None:
    # Given an intent that was stored, though the answer was lost
    talk = Talk(plan(), hold=(Save,))
    save = talk._take(Save)
    talk.memory.save(save)
    talk.pending.append(save)
    talk.fault(Save)
    talk.hold = ()

    # When it is tried again
    talk.sleep(2)

    # Then the lost swap is understood, and the create goes out
    assert talk.asks(Create)
    assert talk.memory.saves == 1


def test_a_record_that_somebody_deleted_is_written_anew() -> None:
    talk = Talk(plan())
    talk.create()
    talk.memory.record, talk.memory.version = None, ""
    talk.watch(completed(talk.plan))
    talk.read(completed(talk.plan))

    assert talk.outcome.verdict is Verdict.SUCCEEDED
    assert talk.memory.record is not None
    assert talk.memory.record.state == "ended"


def test_a_namespace_that_is_gone_is_not_hammered() -> None:
    # Given saves that always meet a conflict, as in a namespace that is not there
    talk = Talk(plan(budgets={"outage": 600}), hold=(Save,))
    saves = 0
    while talk.finish is None and saves < 1000:
        saves += talk.asks(Save)
        talk.fault(Save, "conflict") if talk.asks(Save) else talk.sleep(10)

    assert (talk.outcome.verdict, talk.outcome.reason) == (Verdict.UNKNOWN, "ApiUnavailable")
    assert saves < 25


def test_after_finish_every_input_is_ignored() -> None:
    talk = Talk(plan())
    talk.fault(Create, "invalid", "no")
    log = list(talk.log)
    talk.watch(jobset_view(talk.plan))

    assert talk.log == log
    assert isinstance(log[-1], Finish)
