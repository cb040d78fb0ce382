"""Logs on disk: the last lines of a container, and the leader's followed over attempts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_sets import Watched, eventually, jobset, replicated, sh, terminal

from jobset_steps.clusters.local import LocalCluster
from jobset_steps.clusters.local.logs import last_lines
from jobset_steps.errors import ApiError


def test_the_last_lines_of_a_pod_that_is_gone(cluster: LocalCluster) -> None:
    watched = Watched(cluster, "tail")
    uid = cluster.create(jobset("tail", replicated("w", sh("seq 1 100; printf end"))))
    watched.ended()
    cluster.delete("tail", uid)
    watched.gone()
    (pod,) = watched.pods.values()
    assert cluster.tail(pod.name, "main", 0, 3).lines == ("99", "100", "end")
    assert cluster.tail(pod.name, "", 0, 1).lines == ("end",)
    with pytest.raises(ApiError) as error:
        cluster.tail(pod.name, "main", 1, 3)
    assert error.value.kind == "not_found"


def test_the_leaders_log_is_followed_from_attempt_to_attempt(cluster: LocalCluster) -> None:
    # Given a leader and a worker of which the leader's lines are wanted, those of both attempts
    leader = sh("echo attempt $ATTEMPT; sleep 0.3; echo more; printf last; [ $ATTEMPT = 1 ]")
    worker = sh("echo noise; [ $ATTEMPT = 1 ] || sleep 600")
    lines: list[str] = []
    follower = cluster.follow("f", lines.append)
    watched = Watched(cluster, "f")
    cluster.create(
        jobset(
            "f",
            replicated("leader", leader),
            replicated("w", worker, terminationGracePeriodSeconds=1),
            max_restarts=1,
        )
    )
    # While it runs, what is written appears
    assert eventually(lambda: "attempt 0" in lines)
    assert terminal(watched.ended()) == "Completed"
    follower.close()
    # Then all of it was written once, in order, the line without an end too
    assert lines == ["attempt 0", "more", "last", "attempt 1", "more", "last"]


@given(
    lines=st.lists(
        st.text(st.characters(exclude_characters="\r\n\x85\u2028", exclude_categories=["Cs"])), max_size=30
    ),
    end=st.booleans(),
    count=st.integers(0, 40),
)
def test_last_lines_are_the_last_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: bool, count: int
) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "log"
    text = "\n".join(lines) + ("\n" if end and lines else "")
    path.write_bytes(text.encode())
    expected = text.removesuffix("\n").split("\n") if text else []
    assert last_lines(path, count) == tuple(
        expected[len(expected) - count :] if count < len(expected) else expected
    ) * (count > 0)


def test_a_line_without_end_costs_no_more_than_its_length(cluster: LocalCluster) -> None:
    # Given 20 MB in one line: read as a whole for every block of it, that takes minutes
    size = 20_000_000
    lines: list[str] = []
    follower = cluster.follow("long", lines.append)
    watched = Watched(cluster, "long")
    cluster.create(jobset("long", replicated("w", sh(f"head -c {size} /dev/zero | tr '\\0' x"))))
    watched.ended()
    began = time.process_time()
    follower.close()
    (pod,) = watched.pods.values()
    (tail,) = cluster.tail(pod.name, "main", 0, 50).lines
    # Then nothing of it is lost to who follows, its end is the tail, and it was quick
    assert sum(map(len, lines)) == size
    assert 0 < len(tail) <= 256 * 1024
    assert time.process_time() - began < 3
