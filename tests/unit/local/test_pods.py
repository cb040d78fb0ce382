"""One pod's life, told what happens and when: orders, phase and containers as the kubelet's."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobset_steps.clusters.local.pod_rules import ContainerRules, Kill, Order, PodRules, Run, Terminate
from jobset_steps.clusters.local.pods import PodRun
from jobset_steps.observed import PodView

MAIN = ContainerRules("main")


def pod(
    *containers: ContainerRules,
    restart_policy: Literal["Never", "OnFailure", "Always"] = "Never",
    grace: float = 30,
    active_deadline: float | None = None,
) -> PodRun:
    rules = PodRules(containers or (MAIN,), restart_policy, grace, active_deadline)
    return PodRun(PodView("p", "u", "j", "r", 0, 0, 0), rules, 0.0)


def states(run: PodRun) -> dict[str, tuple[str, str]]:
    return {c.name: (c.state, c.reason) for c in run.view.containers}


def test_a_pod_runs_and_succeeds() -> None:
    run = pod()
    assert run.view.phase == "Pending"
    assert run.begin(0) == [Run("main", 0)]
    assert run.view.phase == "Pending"
    run.started("main", 1)
    assert (run.view.phase, run.view.ready) == ("Running", True)
    assert run.exited("main", 0, None, 2) == []
    assert (run.view.phase, run.view.ready, run.finished) == ("Succeeded", False, True)
    assert states(run) == {"main": ("terminated", "Completed")}


def test_exit_code_signal_times_and_message_are_kept() -> None:
    run = pod()
    run.begin(0)
    run.started("main", 1)
    run.exited("main", 139, 11, 2, message="segfault in step 7")
    assert run.view.phase == "Failed"
    container = run.view.containers[0]
    assert (container.reason, container.exit_code, container.signal) == ("Error", 139, 11)
    assert (container.started_at, container.finished_at, container.message) == (1, 2, "segfault in step 7")


def test_what_cannot_be_started_says_why() -> None:
    run = pod()
    run.begin(0)
    run.exited("main", 128, None, 1, failure="trian: No such file or directory")
    assert run.view.phase == "Failed"
    assert (run.view.containers[0].reason, run.view.containers[0].message) == (
        "StartError",
        "trian: No such file or directory",
    )


def test_init_containers_run_one_after_another_before_the_main_ones() -> None:
    run = pod(ContainerRules("a", init=True), ContainerRules("b", init=True), MAIN)
    assert run.begin(0) == [Run("a", 0)]
    run.started("a", 1)
    assert run.exited("a", 0, None, 2) == [Run("b", 0)]
    run.started("b", 3)
    assert run.view.phase == "Pending"
    assert run.exited("b", 0, None, 4) == [Run("main", 0)]
    run.started("main", 5)
    assert run.view.phase == "Running"


def test_a_failed_init_container_fails_the_pod_and_main_never_starts() -> None:
    run = pod(ContainerRules("a", init=True), MAIN)
    run.begin(0)
    run.started("a", 1)
    assert run.exited("a", 3, None, 2) == []
    assert (run.view.phase, run.finished) == ("Failed", True)
    assert states(run)["main"] == ("waiting", "PodInitializing")


def test_a_sidecar_starts_first_is_restarted_and_ends_after_the_main_container() -> None:
    run = pod(ContainerRules("proxy", init=True, sidecar=True), MAIN, grace=5)
    assert run.begin(0) == [Run("proxy", 0)]
    assert run.started("proxy", 1) == [Run("main", 0)]
    run.started("main", 2)
    assert run.exited("proxy", 1, None, 3) == [Run("proxy", 1)]
    run.started("proxy", 4)
    assert run.exited("main", 0, None, 5) == [Terminate("proxy")]
    assert not run.finished
    assert run.tick(10) == [Kill("proxy")]
    run.exited("proxy", 137, 9, 10)
    assert (run.view.phase, run.finished) == ("Succeeded", True)


def test_on_failure_restarts_at_once_then_after_10_and_20_seconds() -> None:
    run = pod(restart_policy="OnFailure")
    run.begin(0)
    run.started("main", 0)
    assert run.exited("main", 1, None, 1) == [Run("main", 1)]
    run.started("main", 1)
    assert run.exited("main", 2, None, 2) == []
    assert states(run) == {"main": ("waiting", "CrashLoopBackOff")}
    assert run.next_due == 12
    assert run.tick(11) == []
    assert run.tick(12) == [Run("main", 2)]
    run.started("main", 12)
    last = run.view.containers[0].last
    assert last is not None
    assert (last.exit_code, run.view.containers[0].restart_count) == (2, 2)
    run.exited("main", 2, None, 13)
    assert run.next_due == 33
    # Success ends it
    run.tick(33)
    run.started("main", 33)
    assert run.exited("main", 0, None, 34) == []
    assert run.view.phase == "Succeeded"


def test_never_does_not_restart_and_waits_for_the_other_containers() -> None:
    run = pod(MAIN, ContainerRules("other"))
    assert run.begin(0) == [Run("main", 0), Run("other", 0)]
    run.started("main", 1)
    run.started("other", 1)
    assert run.exited("main", 1, None, 2) == []
    assert (run.view.phase, run.view.ready) == ("Running", False)
    run.exited("other", 0, None, 3)
    assert run.view.phase == "Failed"


def test_stop_sends_sigterm_then_sigkill_after_the_grace() -> None:
    run = pod()
    run.begin(0)
    run.started("main", 1)
    assert run.stop(5, 10) == [Terminate("main")]
    assert run.next_due == 15
    assert run.tick(14) == []
    assert run.tick(15) == [Kill("main")]
    run.exited("main", 137, 9, 15)
    assert (run.view.phase, run.finished, run.next_due) == ("Failed", True, None)


def test_a_process_that_ends_well_on_sigterm_succeeds() -> None:
    run = pod()
    run.begin(0)
    run.started("main", 1)
    run.stop(5, 10)
    run.exited("main", 0, None, 11)
    assert run.view.phase == "Succeeded"


def test_stop_without_grace_kills_at_once_and_a_second_stop_only_shortens() -> None:
    run = pod()
    run.begin(0)
    run.started("main", 1)
    run.stop(5, 10)
    run.stop(100, 11)
    assert run.next_due == 15
    assert run.stop(0, 12) == [Kill("main")]


def test_a_pod_in_back_off_that_is_stopped_ends_at_once() -> None:
    run = pod(restart_policy="OnFailure")
    run.begin(0)
    for at in (1, 2):
        run.started("main", at)
        run.exited("main", 1, None, at)
    assert run.stop(30, 3) == []
    assert (run.finished, run.view.phase) == (True, "Failed")


def test_the_active_deadline_fails_the_pod_with_its_reason() -> None:
    run = pod(active_deadline=60)
    run.begin(0)
    run.started("main", 1)
    assert run.next_due == 60
    assert run.tick(60) == [Terminate("main")]
    run.exited("main", 0, None, 61)
    assert (run.view.phase, run.view.reason) == ("Failed", "DeadlineExceeded")


def test_a_lost_pod_is_failed_and_disrupted_not_restarted() -> None:
    run = pod(restart_policy="OnFailure")
    run.begin(0)
    run.started("main", 1)
    run.lost("the guardian process was killed", 2)
    assert (run.finished, run.view.phase) == (True, "Failed")
    assert run.view.condition("DisruptionTarget") is not None
    assert states(run) == {"main": ("terminated", "ContainerStatusUnknown")}


@pytest.mark.parametrize("answer", [True, False])
def test_a_probed_container_is_ready_when_its_probe_says_so(answer: bool) -> None:
    run = pod(ContainerRules("main", probed=True))
    run.begin(0)
    run.started("main", 1)
    assert not run.view.ready
    run.probed("main", answer, 2)
    assert run.view.ready is answer
    condition = run.view.condition("Ready")
    assert (condition is not None and condition.since == 2) is answer


KINDS = st.sampled_from(
    [{"init": True}, {"init": True, "sidecar": True}, {"init": False}, {"init": False, "probed": True}]
)


@given(data=st.data())
def test_whatever_its_containers_do_a_pod_ends_and_nothing_is_started_twice(data: st.DataObject) -> None:
    # Given any pod, and a kubelet that carries out its orders: what runs may end at any time, in any way
    kinds = sorted(data.draw(st.lists(KINDS, min_size=0, max_size=3)), key=lambda kind: not kind["init"])
    containers = [ContainerRules(f"c{n}", **kind) for n, kind in enumerate(kinds)]
    policy = data.draw(st.sampled_from(["Never", "OnFailure"]))
    deadline = data.draw(st.sampled_from([None, 5.0, 50.0]))
    run = pod(
        *containers,
        MAIN,
        restart_policy=policy,
        grace=data.draw(st.sampled_from([0, 3])),
        active_deadline=deadline,
    )
    now, alive, starting, killed = 0.0, set(), set(), set()

    def obey(orders: list[Order]) -> None:
        for order in orders:
            if isinstance(order, Run):
                assert order.container not in alive | starting
                starting.add(order.container)
            else:
                # Only what runs, or is about to, is told to end
                assert order.container in alive | starting
                if isinstance(order, Kill):
                    killed.add(order.container)

    def end(container: str) -> None:
        alive.discard(container)
        starting.discard(container)
        code = 137 if container in killed else data.draw(st.sampled_from([0, 0, 1]))
        killed.discard(container)
        obey(run.exited(container, code, None, now))

    obey(run.begin(now))
    for step in range(60):
        if run.finished:
            break
        now += data.draw(st.sampled_from([0.0, 1.0, 20.0]))
        obey(run.tick(now))
        # After a tick nothing is due any more
        assert run.next_due is None or run.next_due > now
        if starting and data.draw(st.booleans()):
            container = min(starting)
            starting.discard(container)
            alive.add(container)
            obey(run.started(container, now))
        elif alive and data.draw(st.booleans()):
            end(data.draw(st.sampled_from(sorted(alive))))
        elif step > 30:
            obey(run.stop(1, now))
        for container in sorted(killed):
            end(container)
    # When it was stopped and all that was killed has ended
    obey(run.stop(0, now))
    while not run.finished:
        assert killed or alive or starting
        end(min(killed or alive or starting))
    # Then nothing of it runs, and its phase is final
    assert alive | starting == set()
    assert run.view.finished
    assert not run.view.ready
    if run.view.phase == "Succeeded":
        assert all(c.exit_code == 0 for c in run.view.containers if not c.init)
