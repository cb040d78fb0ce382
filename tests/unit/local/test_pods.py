"""One pod's life, told what happens and when: orders, phase and containers as the kubelet's."""

from __future__ import annotations

from typing import Literal

import pytest

from jobset_steps.clusters.local.pods import ContainerRules, Kill, PodRules, PodRun, Run, Terminate
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
