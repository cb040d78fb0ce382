"""JobSets from creation to their end in the simulated cluster, as the test cluster has shown them."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_sets import case, ended, manifest, replicated, scripts

from jobset_steps.clusters.simulated import SimulatedCluster
from jobset_steps.clusters.simulated.scripts import PodScript, Scripts
from jobset_steps.errors import ApiError, BadInput
from jobset_steps.observed import JobSetView, PodView, View

FOREVER: dict[str, Any] = {"runs": None}


def run(the_scripts: Scripts, jobset: dict[str, Any]) -> tuple[SimulatedCluster, View, list[PodView]]:
    """To its end, with every pod that ever was, in the order in which they were first seen."""
    cluster = SimulatedCluster(the_scripts)
    pods: dict[str, PodView] = {}
    cluster.watch("t", lambda seen: pods.update((pod.uid, pod) for pod in seen.pods))  # type: ignore[union-attr]
    cluster.create(jobset)
    return cluster, cluster.advance_until("t", ended), list(pods.values())


def status(view: View) -> JobSetView:
    assert view.jobset is not None
    return view.jobset


def end(view: View) -> tuple[str, str]:
    jobset = status(view)
    condition = jobset.condition("Failed") or jobset.condition("Completed")
    assert condition is not None
    return jobset.terminal_state, condition.reason


def test_max_restarts_two_is_three_runs() -> None:
    _, view, pods = run(scripts(exit_code=1), manifest(failurePolicy={"maxRestarts": 2}))

    assert end(view) == ("Failed", "ReachedMaxRestarts")
    assert (status(view).restarts, status(view).restarts_counted) == (2, 2)
    assert [pod.attempt for pod in pods] == [0, 1, 2]


def test_max_restarts_minus_one_is_one_run() -> None:
    _, view, pods = run(scripts(exit_code=1), manifest(failurePolicy={"maxRestarts": -1}))

    assert (end(view), len(pods)) == (("Failed", "ReachedMaxRestarts"), 1)


def test_without_a_failure_policy_one_failure_ends_it() -> None:
    _, view, pods = run(scripts(exit_code=1), manifest())

    assert (end(view), len(pods)) == (("Failed", "FailedJobs"), 1)


def test_a_crash_in_the_first_attempt_is_outlived() -> None:
    the_scripts = scripts(case({"job": 1, "pod": 2, "attempt": 0}, exit_code=17, runs=5), runs=20)
    jobset = manifest(replicated(replicas=2, pods=3), failurePolicy={"maxRestarts": 1})

    _, view, pods = run(the_scripts, jobset)

    assert end(view) == ("Completed", "AllJobsCompleted")
    assert status(view).restarts == 1
    crashed = next(pod for pod in pods if pod.containers and pod.containers[0].exit_code == 17)
    assert (crashed.job, crashed.index, crashed.attempt) == ("t-w-1", 2, 0)
    assert len(pods) == 12


def test_a_failed_dependency_ends_the_jobset_and_its_dependants_never_start() -> None:
    depends = [{"name": "a", "status": "Ready"}]
    the_scripts = scripts(case({"replicated_job": "a"}, exit_code=1, ready_after=None))

    _, view, pods = run(the_scripts, manifest(replicated("a"), replicated("b", depends_on=depends)))

    assert end(view) == ("Failed", "FailedJobs")
    assert {pod.replicated_job for pod in pods} == {"a"}


def test_a_dependency_that_is_ready_lets_its_dependants_start() -> None:
    depends = [{"name": "a", "status": "Ready"}]
    the_scripts = scripts(case({"replicated_job": "a"}, ready_after=10, runs=60), runs=5)

    _, view, pods = run(the_scripts, manifest(replicated("a"), replicated("b", depends_on=depends)))

    assert end(view)[0] == "Completed"
    first, second = pods
    assert (first.created_at, second.replicated_job) == (status(view).created_at, "b")
    assert second.created_at == (first.created_at or 0) + 11


def test_a_driver_that_succeeds_first_completes_the_jobset_and_the_rest_is_stopped() -> None:
    policy = {"operator": "All", "targetReplicatedJobs": ["driver"]}
    the_scripts = scripts(case({"replicated_job": "driver"}, runs=5), runs=None)
    jobset = manifest(replicated("driver"), replicated("w", 2), successPolicy=policy)

    cluster, view, _ = run(the_scripts, jobset)

    assert end(view)[0] == "Completed"
    cluster.advance(60)
    left = cluster.read("t")
    assert [job.name for job in left.jobs] == ["t-driver-0"]
    assert status(left).terminal_state == "Completed"


@pytest.mark.parametrize(("driver", "worker", "state"), [(5, 8, "Completed"), (8, 5, "Failed")])
def test_which_end_is_seen_first_decides(driver: float, worker: float, state: str) -> None:
    the_scripts = scripts(
        case({"replicated_job": "driver"}, runs=driver),
        case({"replicated_job": "w"}, runs=worker, exit_code=1),
    )
    jobset = manifest(replicated("driver"), replicated("w"), successPolicy={"operator": "Any"})

    assert end(run(the_scripts, jobset)[1])[0] == state


@pytest.mark.parametrize("strategy", ["Recreate", "BlockingRecreate"])
def test_c10_only_blocking_recreate_keeps_attempts_apart(strategy: str) -> None:
    the_scripts = scripts(
        case({"job": 0, "attempt": 0}, exit_code=1, runs=5),
        case({"job": 1, "attempt": 0}, runs=None, stops_after=20),
        runs=30,
    )
    policy = {"maxRestarts": 1, "restartStrategy": strategy}
    cluster = SimulatedCluster(the_scripts)
    together: set[bool] = set()

    def look(seen: View | ApiError) -> None:
        assert isinstance(seen, View)
        together.add(len({pod.attempt for pod in seen.pods if not pod.finished and not pod.gone}) > 1)

    cluster.watch("t", look)
    cluster.create(manifest(replicated(replicas=2), failurePolicy=policy))
    cluster.advance_until("t", ended)

    assert (True in together) is (strategy == "Recreate")


def test_c12_disruptions_restart_for_free() -> None:
    disruption = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}
    rule = {
        "name": "disruption",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureMessagePatterns": ["DisruptionTarget"],
    }
    cases = [case({"attempt": attempt, "pod": 0}, disrupted=True, runs=5) for attempt in range(5)]
    jobset = manifest(
        replicated(pods=2, podFailurePolicy={"rules": [disruption]}),
        failurePolicy={"maxRestarts": 1, "rules": [rule]},
    )

    _, view, pods = run(scripts(*cases, runs=50), jobset)

    assert end(view)[0] == "Completed"
    assert (status(view).restarts, status(view).restarts_counted) == (5, 0)
    disrupted = [pod for pod in pods if pod.condition("DisruptionTarget") is not None]
    assert [(pod.attempt, pod.containers[0].exit_code) for pod in disrupted] == [(n, 143) for n in range(5)]


def test_b13_a_suspended_jobset_waits_and_is_not_restarted() -> None:
    cluster = SimulatedCluster(scripts(runs=100))
    cluster.create(manifest(replicated(pods=2)))
    cluster.advance(50)

    cluster.suspend("t")
    cluster.advance(1000)
    paused = cluster.read("t")
    cluster.suspend("t", suspended=False)
    view = cluster.advance_until("t", ended)

    assert [pod.phase for pod in paused.pods] == []
    assert status(paused).condition("Suspended") is not None
    assert (end(view)[0], status(view).restarts) == ("Completed", 0)


def test_a_jobset_suspended_from_the_start_makes_no_pod() -> None:
    cluster = SimulatedCluster()
    cluster.create(manifest(replicated(replicas=2), suspend=True))
    cluster.advance(100)

    view = cluster.read("t")
    assert ([job.suspended for job in view.jobs], view.pods) == ([True, True], ())
    cluster.suspend("t", suspended=False)
    assert end(cluster.advance_until("t", ended))[0] == "Completed"


def test_c8_a_pod_deleted_by_hand_restarts_the_set_once_its_job_has_failed() -> None:
    cluster = SimulatedCluster(scripts(runs=100))
    cluster.create(manifest(replicated(pods=2), failurePolicy={"maxRestarts": 1}))
    cluster.advance(10)

    cluster.delete_pod(cluster.read("t").pods[0].uid)
    view = cluster.advance_until("t", lambda seen: status(seen).restarts > 0, limit=5)

    assert status(view).restarts_counted == 1


def test_c8_a_pod_on_a_lost_node_holds_up_the_restart() -> None:
    the_scripts = scripts(
        case({"pod": 0, "attempt": 0}, exit_code=1, runs=5),
        case({"pod": 1, "attempt": 0}, lost=True, runs=None),
    )
    cluster = SimulatedCluster(the_scripts)
    cluster.create(manifest(replicated(pods=2), failurePolicy={"maxRestarts": 1}))

    cluster.advance(3600)

    view = cluster.read("t")
    assert (status(view).restarts, status(view).terminal_state) == (0, "")
    (stuck,) = [pod for pod in view.pods if pod.deleting_since is not None]
    assert (stuck.index, stuck.node) == (1, "node-1")


def test_the_kubelet_restarts_a_container_until_the_backoff_limit() -> None:
    job = replicated(restart_policy="OnFailure", backoffLimit=2)

    _, view, pods = run(scripts(exit_code=9), manifest(job))

    assert end(view) == ("Failed", "FailedJobs")
    assert len(pods) == 1
    (failed,) = view.jobs
    assert failed.conditions[-1].reason == "BackoffLimitExceeded"
    (container,) = pods[0].containers
    assert (container.restart_count, container.exit_code) == (2, 143)
    assert container.last is not None
    assert container.last.exit_code == 9


def test_the_ttl_removes_a_jobset_that_has_ended() -> None:
    cluster, view, _ = run(scripts(), manifest(ttlSecondsAfterFinished=60))
    finished = status(view).condition("Completed")
    assert finished is not None

    cluster.advance(59)
    assert cluster.read("t").jobset is not None
    cluster.advance(2)

    assert cluster.read("t").jobset is None


def test_a_pod_that_no_node_takes_is_told_by_an_event() -> None:
    cluster = SimulatedCluster(scripts(unschedulable=True))
    cluster.create(manifest())
    cluster.advance(10)

    view = cluster.read("t", events=True)

    assert [pod.phase for pod in view.pods] == ["Pending"]
    assert ("Pod", "FailedScheduling") in {(event.kind, event.reason) for event in view.events}
    cluster.delete("t", status(view).uid)
    cluster.advance()
    assert cluster.read("t").jobset is None


def test_an_image_that_cannot_be_pulled_leaves_the_pod_waiting() -> None:
    cluster = SimulatedCluster(scripts(cannot_pull=True))
    cluster.create(manifest())
    cluster.advance(60)

    (pod,) = cluster.read("t").pods

    assert (pod.phase, pod.containers[0].reason) == ("Pending", "ImagePullBackOff")


def test_a_container_killed_for_its_memory_says_so() -> None:
    _, _, pods = run(scripts(oom=True), manifest())

    assert (pods[0].containers[0].reason, pods[0].containers[0].exit_code) == ("OOMKilled", 137)


def test_a_grace_period_that_is_over_kills() -> None:
    the_scripts = scripts(case({"pod": 0}, exit_code=1, runs=5), case({"pod": 1}, runs=None, stops_after=100))

    _, view, pods = run(the_scripts, manifest(replicated(pods=2, grace=10)))

    killed = next(pod for pod in pods if pod.index == 1)
    assert (killed.containers[0].exit_code, killed.containers[0].signal) == (137, 9)
    assert killed.containers[0].finished_at == (status(view).created_at or 0) + 1 + 5 + 10


def test_scripts_are_read_from_yaml_and_faults_are_named() -> None:
    text = "cases:\n- replicatedJob: w\n  attempt: 0\n  script: {exitCode: 3, runs: 2}\ndefault: {runs: 9}\n"

    read = Scripts.from_yaml(text)

    assert read.cases[0].script == PodScript(exit_code=3, runs=2)
    assert read.default.runs == 9
    with pytest.raises(BadInput, match=r"script\.exitcode"):
        Scripts.from_yaml("cases: [{script: {exitcode: 3}}]")
