"""JobSets run, fail, restart and end on this machine, as real processes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from local_sets import Watched, eventually, jobset, log_of, processes, python, replicated, sh, terminal

from jobset_steps.clusters.local import LocalCluster
from jobset_steps.errors import ApiError


def test_c7_a_crash_in_the_first_attempt_restarts_the_whole_set_and_logs_are_kept_by_attempt(
    cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given two workers of which the second one dies in attempt 0, while the first would run for ever
    script = """
        date +%s.%N
        if [ $ATTEMPT = 0 ]; then
            if [ $JOB_COMPLETION_INDEX = 1 ]; then sleep 0.5; date +%s.%N; exit 17; fi
            exec sleep 600
        fi
        echo done
    """
    watched = Watched(cluster, "crash")
    cluster.create(jobset("crash", replicated("w", sh(script), pods=2), max_restarts=2))
    # When it has ended
    view = watched.ended()
    # Then the set was restarted once, and completed
    assert view.jobset is not None
    assert (view.jobset.terminal_state, view.jobset.restarts) == ("Completed", 1)
    # And the termination that caused it was seen, although its pod was deleted at once
    causes = [
        c for pod in watched.pods.values() if pod.attempt == 0 for c in pod.containers if c.exit_code == 17
    ]
    assert len(causes) == 1
    # And each attempt has its own logs
    assert "done" not in log_of(cluster, "crash", 0)
    assert log_of(cluster, "crash", 1).count("done") == 2
    died = max(float(line) for line in log_of(cluster, "crash", 0).split())
    started = [float(line) for line in log_of(cluster, "crash", 1).split() if line != "done"]
    with capsys.disabled():
        print(f"\nprocess death -> processes of the new attempt: {max(started) - died:.3f} s")


def test_200_short_pods_at_once(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    watched = Watched(cluster, "many")
    began = time.monotonic()
    cluster.create(jobset("many", replicated("w", sh("echo $JOB_COMPLETION_INDEX"), pods=200)))
    assert terminal(watched.ended()) == "Completed"
    with capsys.disabled():
        print(f"\n200 short pods: {time.monotonic() - began:.2f} s")
    assert sorted(map(int, log_of(cluster, "many", 0).split())) == list(range(200))


def test_a_set_that_always_fails_ends_with_the_controllers_own_words(cluster: LocalCluster) -> None:
    watched = Watched(cluster, "bad")
    cluster.create(jobset("bad", replicated("w", sh("exit 3")), max_restarts=2))
    view = watched.ended()
    assert view.jobset is not None
    failed = view.jobset.condition("Failed")
    assert failed is not None
    assert (failed.reason, view.jobset.restarts) == ("ReachedMaxRestarts", 2)
    assert "(first failed job: bad-w-0)" in failed.message


def test_sigterm_is_honoured_within_the_grace(cluster: LocalCluster, tmp_path: Path) -> None:
    # Given a pod that needs a while to write its checkpoint on SIGTERM
    mark = tmp_path / "checkpoint"
    script = f"trap 'sleep 0.5; echo saved > {mark}; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    watched = Watched(cluster, "polite")
    uid = cluster.create(jobset("polite", replicated("w", sh(script), terminationGracePeriodSeconds=20)))
    watched.running()
    assert eventually(lambda: "up" in log_of(cluster, "polite", 0))
    # When the JobSet is deleted
    cluster.delete("polite", uid)
    watched.gone()
    # Then it had the time, and its end was shown
    assert mark.read_text() == "saved\n"
    assert [pod.containers[0].exit_code for pod in watched.pods.values() if pod.gone] == [0]


def test_who_ignores_sigterm_is_killed_after_the_grace(cluster: LocalCluster) -> None:
    watched = Watched(cluster, "stubborn")
    script = "trap '' TERM; echo up; sleep 600 & wait; while :; do sleep 0.05; done"
    uid = cluster.create(jobset("stubborn", replicated("w", sh(script), terminationGracePeriodSeconds=1)))
    watched.running()
    assert eventually(lambda: "up" in log_of(cluster, "stubborn", 0))
    began = time.monotonic()
    cluster.delete("stubborn", uid)
    watched.gone()
    assert time.monotonic() - began >= 1
    assert [pod.containers[0].exit_code for pod in watched.pods.values() if pod.gone] == [137]


def test_delete_with_another_uid_does_nothing_and_a_name_that_lives_is_taken(cluster: LocalCluster) -> None:
    watched = Watched(cluster, "one")
    manifest = jobset("one", replicated("w", sh("exec sleep 600")))
    uid = cluster.create(manifest)
    watched.running()
    cluster.delete("one", "another-uid")
    with pytest.raises(ApiError) as exists:
        cluster.create(manifest)
    assert exists.value.kind == "exists"
    view = cluster.read("one")
    assert view.jobset is not None
    assert (view.jobset.uid, view.jobset.deleting_since) == (uid, None)
    # And once it is gone the name is free
    cluster.delete("one", uid)
    watched.gone()
    assert cluster.read("one").jobset is None
    assert cluster.create(manifest) != uid


def test_a_jobset_run_by_another_cluster_is_neither_made_twice_nor_called_gone(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    manifest = jobset("mine", replicated("w", sh("exec sleep 600")))
    cluster.create(manifest)
    with LocalCluster(tmp_path) as other:
        with pytest.raises(ApiError) as exists:
            other.create(manifest)
        assert exists.value.kind == "exists"
        with pytest.raises(ApiError) as unavailable:
            other.read("mine")
        assert unavailable.value.kind == "unavailable"


def test_suspended_starts_nothing_until_resumed(cluster: LocalCluster) -> None:
    watched = Watched(cluster, "later")
    uid = cluster.create(jobset("later", replicated("w", sh("true")), suspend=True))
    view = watched.until(lambda v: v.jobset is not None and v.jobset.condition("Suspended") is not None)
    assert view.pods == ()
    cluster.suspend(uid, suspended=False)
    assert terminal(watched.ended()) == "Completed"


def test_a_pod_that_is_deleted_counts_as_disrupted_or_failed_not_as_done(cluster: LocalCluster) -> None:
    watched = Watched(cluster, "evicted")
    job = replicated("w", sh('[ "$ATTEMPT" = 0 ] && exec sleep 600; true'), terminationGracePeriodSeconds=1)
    job["template"]["spec"]["podReplacementPolicy"] = "Failed"
    cluster.create(jobset("evicted", job, max_restarts=1))
    pod = watched.running().pods[0]
    cluster.delete_pod(pod.uid)
    view = watched.ended()
    assert view.jobset is not None
    assert (view.jobset.terminal_state, view.jobset.restarts) == ("Completed", 1)


def test_on_failure_restarts_the_container_in_its_pod(cluster: LocalCluster, tmp_path: Path) -> None:
    once = tmp_path / "once"
    script = f"echo run; [ -e {once} ] && exit 0; touch {once}; exit 9"
    watched = Watched(cluster, "inplace")
    job = replicated("w", sh(script), restartPolicy="OnFailure")
    job["template"]["spec"]["backoffLimit"] = 2
    cluster.create(jobset("inplace", job))
    assert terminal(watched.ended()) == "Completed"
    (pod,) = watched.pods.values()
    (container,) = pod.containers
    assert container.restart_count == 1
    assert container.last is not None
    assert container.last.exit_code == 9
    assert log_of(cluster, "inplace", 0) == "run\nrun\n"


def test_init_containers_and_a_sidecar_live_around_the_main_container(cluster: LocalCluster) -> None:
    # Given an init container that prepares a volume, a sidecar that serves it, and a main container that reads it
    data = {"volumeMounts": [{"name": "data", "mountPath": "/shared"}]}
    prepare = sh("echo prepared > /shared/a", **data) | {"name": "prepare"}
    sidecar = sh("touch /shared/up; exec sleep 600", **data) | {"name": "sidecar", "restartPolicy": "Always"}
    main = sh("while [ ! -e /shared/up ]; do sleep 0.02; done; cat /shared/a", **data)
    pod = {"initContainers": [prepare, sidecar], "volumes": [{"name": "data", "emptyDir": {}}]}
    watched = Watched(cluster, "around")
    cluster.create(jobset("around", replicated("w", main, terminationGracePeriodSeconds=5, **pod)))
    # Then the pod succeeds although the sidecar had to be ended
    assert terminal(watched.ended()) == "Completed"
    assert "prepared" in log_of(cluster, "around", 0)
    (pod_view,) = watched.pods.values()
    ends = {c.name: c.exit_code for c in pod_view.containers}
    assert ends == {"prepare": 0, "sidecar": 143, "main": 0}


def test_a_probe_decides_when_the_next_replicated_job_starts(cluster: LocalCluster, tmp_path: Path) -> None:
    # Given a leader that serves only after a while, and workers that start in order after it
    serve = f"""
import os, socket, time
time.sleep(0.5)
server = socket.create_server((os.environ["IP"], 7070))
open({str(tmp_path / "serves")!r}, "w").close()
server.accept()
"""
    probe = {"tcpSocket": {"port": 7070}, "periodSeconds": 1, "initialDelaySeconds": 0}
    leader = python(
        serve,
        readinessProbe=probe,
        env=[{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
    )
    worker = sh(f"test -e {tmp_path / 'serves'}")
    watched = Watched(cluster, "ordered")
    order = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
    cluster.create(jobset("ordered", replicated("leader", leader), replicated("w", worker), **order))
    assert terminal(watched.ended()) == "Completed"


def test_what_cannot_be_executed_fails_with_the_reason(cluster: LocalCluster) -> None:
    watched = Watched(cluster, "typo")
    container = sh("") | {"command": ["no-such-program", "x"]}
    cluster.create(jobset("typo", replicated("w", container)))
    assert terminal(watched.ended()) == "Failed"
    (pod,) = watched.pods.values()
    assert (pod.containers[0].reason, pod.containers[0].exit_code) == ("StartError", 128)
    assert pod.containers[0].message == "no-such-program: No such file or directory"


def test_an_image_without_a_command_is_refused_before_anything_starts(cluster: LocalCluster) -> None:
    container = {"name": "main", "image": "pytorch/pytorch:2.9", "args": ["train.py"]}
    with pytest.raises(ApiError) as error:
        cluster.create(jobset("image", replicated("w", container)))
    assert error.value.kind == "invalid"
    assert "containers[0].command" in error.value.message
    assert "say what to run" in error.value.message
    assert cluster.guardian is None


def test_close_ends_all_pods_and_later_calls_are_refused(tmp_path: Path) -> None:
    mark = f"sleep 6{time.time_ns() % 10**9}"
    local = LocalCluster(tmp_path)
    watched = Watched(local, "closing")
    local.create(jobset("closing", replicated("w", sh(f"{mark} & {mark}"), pods=3)))
    watched.running(3)
    assert eventually(lambda: len(processes(mark.split()[1])) >= 6)
    local.close()
    local.close()
    assert processes(mark.split()[1]) == {}
    with pytest.raises(ApiError) as error:
        local.read("closing")
    assert error.value.kind == "unavailable"
