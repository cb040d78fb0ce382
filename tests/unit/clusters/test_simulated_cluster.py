"""The simulated cluster as a Cluster: names, uids, Records, watches, logs, and the faults that can be ordered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from simulated_sets import case, ended, manifest, replicated, scripts

from jobset_steps.clusters import Cluster
from jobset_steps.clusters.simulated import SimulatedCluster
from jobset_steps.errors import ApiError
from jobset_steps.observed import View


class Heard:
    """What a watch was told."""

    def __init__(self) -> None:
        self.views: list[View] = []
        self.errors: list[ApiError] = []

    def __call__(self, seen: View | ApiError) -> None:
        if isinstance(seen, View):
            self.views.append(seen)
        else:
            self.errors.append(seen)


def kind_of(call: Callable[[], object]) -> str:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.kind


def test_it_is_a_cluster() -> None:
    cluster: Cluster = SimulatedCluster()

    assert cluster.name == "simulated"


def test_a_second_create_of_a_name_is_refused_until_the_first_is_gone() -> None:
    cluster = SimulatedCluster(scripts(runs=None, stops_after=7))
    uid = cluster.create(manifest())
    assert kind_of(lambda: cluster.create(manifest())) == "exists"
    cluster.advance(5)

    cluster.delete("t", uid)
    cluster.advance(5)
    assert kind_of(lambda: cluster.create(manifest())) == "exists"
    going = cluster.read("t").jobset
    assert going is not None
    assert going.deleting_since is not None
    cluster.advance(5)

    assert cluster.read("t").jobset is None
    assert cluster.create(manifest()) != uid
    assert cluster.created == {"t": 2}


def test_a_delete_with_another_uid_deletes_nothing() -> None:
    cluster = SimulatedCluster(scripts(runs=None))
    cluster.create(manifest())

    cluster.delete("t", "another")
    cluster.delete("absent", "another")
    cluster.advance(5)

    assert cluster.read("t").jobset is not None


def test_what_is_not_a_jobset_is_invalid() -> None:
    broken = manifest()
    broken["spec"]["replicatedJobs"][0]["replicaz"] = 3

    assert kind_of(lambda: SimulatedCluster().create(broken)) == "invalid"


def test_a_record_is_saved_only_at_the_version_that_was_read() -> None:
    cluster = SimulatedCluster()
    first = cluster.save("d", "one", "")

    assert kind_of(lambda: cluster.save("d", "other", "")) == "conflict"
    second = cluster.save("d", "two", first)
    assert kind_of(lambda: cluster.save("d", "three", first)) == "conflict"

    stored = cluster.load("d")
    assert stored is not None
    assert (stored.text, stored.version) == ("two", second)
    assert cluster.load("other") is None


def test_a_watch_tells_at_once_and_after_each_change_until_it_is_closed() -> None:
    cluster, heard = SimulatedCluster(), Heard()
    watch = cluster.watch("t", heard)
    assert [view.jobset for view in heard.views] == [None]

    cluster.create(manifest())
    cluster.advance_until("t", ended)
    told = len(heard.views)
    watch.close()
    cluster.delete_by_hand("t")
    cluster.advance(60)

    assert ended(heard.views[-1])
    assert len(heard.views) == told


def test_a_pod_that_goes_is_shown_once_more_to_each_watch() -> None:
    the_scripts = scripts(case({"attempt": 0}, exit_code=4), runs=30)
    cluster, first, second = SimulatedCluster(the_scripts), Heard(), Heard()
    cluster.watch("t", first)
    cluster.watch("t", second)
    cluster.create(manifest(failurePolicy={"maxRestarts": 1}))
    cluster.advance_until("t", ended)

    for heard in (first, second):
        gone = [pod for view in heard.views for pod in view.pods if pod.gone]
        assert [(pod.attempt, pod.containers[0].exit_code) for pod in gone] == [(0, 4)]
    assert not [pod for pod in cluster.read("t").pods if pod.gone]


def test_the_pods_of_a_deleted_jobset_are_shown_once_more() -> None:
    cluster, heard = SimulatedCluster(scripts(runs=None)), Heard()
    cluster.watch("t", heard)
    uid = cluster.create(manifest(replicated(pods=2)))
    cluster.advance(5)

    cluster.delete("t", uid)
    cluster.advance(5)

    assert heard.views[-1].jobset is None
    gone = [pod for view in heard.views for pod in view.pods if pod.gone]
    assert sorted((pod.index, pod.containers[0].exit_code) for pod in gone) == [(0, 143), (1, 143)]


def test_logs_can_be_read_until_the_pod_is_gone() -> None:
    cluster = SimulatedCluster(scripts(runs=None, log=("one", "two", "three")))
    uid = cluster.create(manifest())
    cluster.advance(5)
    (pod,) = cluster.read("t").pods

    assert cluster.tail(pod.name, "main", 0, 2).lines == ("two", "three")
    cluster.delete("t", uid)
    cluster.advance(60)
    assert kind_of(lambda: cluster.tail(pod.name, "main", 0, 2)) == "not_found"


def test_the_leaders_lines_are_followed_through_attempts() -> None:
    the_scripts = scripts(
        case({"replicated_job": "leader", "attempt": 0}, exit_code=1, log=("first",)),
        case({"replicated_job": "leader"}, log=("second",)),
        log=("worker",),
    )
    cluster, lines = SimulatedCluster(the_scripts), list[str]()
    cluster.follow("t", lines.append)
    cluster.create(manifest(replicated("leader"), replicated("w"), failurePolicy={"maxRestarts": 1}))

    cluster.advance_until("t", ended)

    assert lines == ["first", "second"]


@pytest.mark.parametrize("call", ["load", "save", "create", "read", "watch", "delete", "tail"])
def test_every_call_can_be_made_to_fail_a_number_of_times(call: str) -> None:
    cluster = SimulatedCluster()
    calls: dict[str, Callable[[], object]] = {
        "load": lambda: cluster.load("d"),
        "save": lambda: cluster.save("d", "", ""),
        "create": lambda: cluster.create(manifest()),
        "read": lambda: cluster.read("t"),
        "watch": lambda: cluster.watch("t", Heard()),
        "delete": lambda: cluster.delete("t", "u"),
        "tail": lambda: cluster.tail("p", "main", 0, 1),
    }
    cluster.faults.order(call, "forbidden", times=2)

    assert [kind_of(calls[call]), kind_of(calls[call])] == ["forbidden", "forbidden"]
    assert cluster.faults.waiting(call) == 0
    assert cluster.created == {}


def test_a2_a_create_whose_answer_is_lost_was_stored_all_the_same() -> None:
    cluster = SimulatedCluster()
    cluster.faults.order("create", after_effect=True)

    assert kind_of(lambda: cluster.create(manifest())) == "unavailable"
    assert cluster.read("t").jobset is not None
    assert kind_of(lambda: cluster.create(manifest())) == "exists"


def test_a_fault_can_carry_the_seconds_to_wait() -> None:
    cluster = SimulatedCluster()
    cluster.faults.order("read", retry_after=7.0)

    with pytest.raises(ApiError) as caught:
        cluster.read("t")

    assert caught.value.retry_after == 7.0


def test_e2_watches_can_be_silenced_broken_and_made_to_repeat_themselves() -> None:
    cluster, heard = SimulatedCluster(), Heard()
    cluster.watch("t", heard)
    cluster.create(manifest())
    cluster.advance_until("t", ended)

    cluster.replay("t", back=2)
    assert not ended(heard.views[-1])
    cluster.break_watches("unauthorized")
    assert [error.kind for error in heard.errors] == ["unauthorized"]
    told = len(heard.views)
    cluster.silence_watches()
    cluster.delete_by_hand("t")
    cluster.advance(60)
    assert len(heard.views) == told


def test_two_jobsets_live_beside_each_other() -> None:
    the_scripts = scripts(case({"replicated_job": "bad"}, exit_code=1), runs=5)
    cluster = SimulatedCluster(the_scripts)
    cluster.create(manifest(replicated("bad"), name="one"))
    cluster.create(manifest(replicated("good"), name="two"))

    states = [
        cluster.advance_until(name, ended).jobset.terminal_state  # type: ignore[union-attr]
        for name in ("one", "two")
    ]

    assert states == ["Failed", "Completed"]


def test_equal_histories_are_equal() -> None:
    def history() -> list[View]:
        the_scripts = scripts(case({"job": 1, "attempt": 0}, exit_code=1, runs=4), runs=9)
        cluster, heard = SimulatedCluster(the_scripts), Heard()
        cluster.watch("t", heard)
        cluster.create(manifest(replicated(replicas=3), failurePolicy={"maxRestarts": 1}))
        cluster.advance_until("t", ended)
        return heard.views

    assert history() == history()
