"""What a real API server does on a bad day, and what the cluster makes of it: one ApiError kind, or nothing at all."""

from __future__ import annotations

import queue
from pathlib import Path
from typing import Any

import pytest

from jobset_steps.clusters.kubernetes import KubernetesCluster
from jobset_steps.clusters.kubernetes.client import Client, lines, wake
from jobset_steps.errors import ApiError, BadInput
from jobset_steps.observed import View
from tests.unit.clusters.kubernetes.api_server import Answer, Request, Reset, serving

WAIT = 20.0


def status(code: int, message: str, reason: str = "") -> Answer:
    return Answer(code, {"kind": "Status", "message": message, "reason": reason, "code": code})


def jobset(version: str, **status_: Any) -> dict[str, Any]:
    meta = {"name": "w", "namespace": "default", "uid": "u1", "resourceVersion": version}
    return {"metadata": meta, "spec": {}, "status": status_}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Reset(), "unavailable"),
        (status(504, "request did not complete within the allotted time"), "unavailable"),
        (status(500, 'failed calling webhook "mjobset.kb.io": connection refused'), "unavailable"),
        (status(503, "apiserver is shutting down"), "unavailable"),
        (status(429, "too many requests"), "unavailable"),
        (status(409, "already exists", "AlreadyExists"), "exists"),
        (status(409, "the object has been modified", "Conflict"), "conflict"),
        (status(422, "JobSet is invalid", "Invalid"), "invalid"),
        (
            status(403, 'admission webhook "vjobset.kb.io" denied the request: too long', "Forbidden"),
            "invalid",
        ),
        (
            status(403, 'jobsets is forbidden: User "x" cannot create resource "jobsets"', "Forbidden"),
            "forbidden",
        ),
        (
            status(403, 'pods "x" is forbidden: no PriorityClass with name y was found', "Forbidden"),
            "invalid",
        ),
        (
            status(403, 'pods "x" is forbidden: exceeded quota: q, requested: pods=1', "Forbidden"),
            "unavailable",
        ),
        (status(401, "Unauthorized"), "unauthorized"),
    ],
)
def test_a2_a9_c1_c16_an_answer_has_one_meaning(answer: Answer | Reset, kind: str, tmp_path: Path) -> None:
    with serving(lambda _: answer, tmp_path) as (kubeconfig, _, _), pytest.raises(ApiError) as caught:
        KubernetesCluster(kubeconfig=kubeconfig).create({"metadata": {"name": "w"}, "spec": {}})
    assert caught.value.kind == kind


def test_a2_a_create_is_never_sent_again_by_the_client(tmp_path: Path) -> None:
    with serving(lambda _: Reset(), tmp_path) as (kubeconfig, requests, _):
        with pytest.raises(ApiError):
            KubernetesCluster(kubeconfig=kubeconfig).create({"metadata": {"name": "w"}, "spec": {}})
        assert len(requests) == 1


def test_a9_retry_after_reaches_the_caller(tmp_path: Path) -> None:
    answer = Answer(429, {"message": "slow down"}, headers={"Retry-After": "7"})
    with serving(lambda _: answer, tmp_path) as (kubeconfig, _, _), pytest.raises(ApiError) as caught:
        KubernetesCluster(kubeconfig=kubeconfig).load("d")
    assert caught.value.retry_after == 7.0


def test_e3_a_token_that_rotated_on_disk_is_read_again(tmp_path: Path) -> None:
    accepted = ["first"]

    def script(request: Request) -> Answer:
        return Answer(body=jobset("1")) if request.token == accepted[0] else status(401, "Unauthorized")

    with serving(script, tmp_path) as (kubeconfig, requests, token_file):
        cluster = KubernetesCluster(kubeconfig=kubeconfig)
        cluster.load("d")
        token_file.write_text("second")
        accepted[0] = "second"
        cluster.load("d")
        assert [request.token for request in requests] == ["first", "first", "second"]


def watched(
    streams: list[Any], tmp_path: Path, *, until: str, versions: list[str] | None = None
) -> tuple[list[View | ApiError], list[Request]]:
    """What a watcher of JobSet "w" hears: `streams` answer its JobSet watches one after another, then silence."""
    lists = versions or ["10"]
    heard: queue.Queue[View | ApiError] = queue.Queue()

    def script(request: Request) -> Answer:
        if "/jobsets" not in request.path:
            return (
                Answer(lines=[], hold=True)
                if request.is_watch
                else Answer(body={"metadata": {"resourceVersion": "1"}})
            )
        if request.is_watch:
            return streams.pop(0) if streams else Answer(lines=[], hold=True)
        version = lists.pop(0) if len(lists) > 1 else lists[0]
        return Answer(body={"metadata": {"resourceVersion": version}, "items": [jobset(version)]})

    with serving(script, tmp_path) as (kubeconfig, requests, _):
        cluster = KubernetesCluster(kubeconfig=kubeconfig)
        subscription = cluster.watch("w", heard.put)
        views: list[View | ApiError] = []
        while until not in versions_of(views):
            views.append(heard.get(timeout=WAIT))
        subscription.close()
        cluster.close()
        return views, [request for request in requests if "/jobsets" in request.path]


def versions_of(views: list[View | ApiError]) -> list[str]:
    seen = [view.jobset.resource_version for view in views if isinstance(view, View) and view.jobset]
    return [version for place, version in enumerate(seen) if place == 0 or seen[place - 1] != version]


def event(kind: str, item: Any) -> dict[str, Any]:
    return {"type": kind, "object": item}


def test_e2_a_version_that_is_too_old_starts_from_one_fresh_list(tmp_path: Path) -> None:
    gone = event("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version: 10 (20)"})
    streams = [Answer(lines=[gone]), Answer(lines=[event("MODIFIED", jobset("21"))], hold=True)]
    views, requests = watched(streams, tmp_path, until="21", versions=["10", "20"])
    assert versions_of(views) == ["10", "20", "21"]
    assert len([request for request in requests if not request.is_watch]) == 2
    assert not [view for view in views if isinstance(view, ApiError)]


def test_e2_a_replayed_old_event_changes_nothing(tmp_path: Path) -> None:
    end = jobset("12", terminalState="Completed")
    after = {**jobset("13", terminalState="Completed")}
    events = [event("MODIFIED", item) for item in (end, jobset("11"), after)]
    views, _ = watched([Answer(lines=events, hold=True)], tmp_path, until="13")
    assert versions_of(views) == ["10", "12", "13"]


def test_e2_a_watch_that_ends_goes_on_where_it_stopped(tmp_path: Path) -> None:
    bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "15"}})
    streams = [
        Answer(lines=[event("MODIFIED", jobset("11")), bookmark]),
        Answer(lines=[event("MODIFIED", jobset("16"))], hold=True),
    ]
    views, requests = watched(streams, tmp_path, until="16")
    assert versions_of(views) == ["10", "11", "16"]
    assert "resourceVersion=15" in [request.path for request in requests if request.is_watch][1]


def test_a9_a_watch_that_the_server_refuses_is_tried_again(tmp_path: Path) -> None:
    streams: list[Any] = [
        status(503, "shutting down"),
        Answer(lines=["nonsense"]),
        Answer(lines=[event("MODIFIED", jobset("11"))], hold=True),
    ]
    views, _ = watched(streams, tmp_path, until="11")
    assert versions_of(views) == ["10", "11"]


def test_a_stream_that_has_ended_by_itself_can_still_be_told_to_end(tmp_path: Path) -> None:
    with serving(lambda _: Answer(lines=[{}]), tmp_path) as (kubeconfig, _, _):
        client = Client(kubeconfig)
        stream = client.open("/watch", {}, silence=5)
        assert len(list(lines(stream))) == 1
        wake(stream)  # its connection is back in the pool
        stream.close()
        wake(stream)


def test_no_configuration_is_one_clear_message(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--kubeconfig"):
        KubernetesCluster(kubeconfig=str(tmp_path / "none"))
