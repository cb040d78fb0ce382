"""The API server away: cut, refusing, or silent. A training never fails by it; only the outage budget ends the wait."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from jobset_steps.clusters.kubernetes import KubernetesCluster
from jobset_steps.launch import plan_of
from jobset_steps.outcome import Verdict
from jobset_steps.runner import Hooks, Runner
from jobset_steps.supervisor.inputs import Progress, Say
from tests.cluster.conftest import Place
from tests.cluster.steps import jobset, replicated, request


class Proxy:
    """Passes bytes between a loopback port and the API server, until it is told to cut or to fall silent."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self.open = True
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close every connection and refuse new ones."""
        self.open = False
        for pair in self._pairs:
            for each in pair:
                with suppress(OSError):
                    # Closing alone would wait for the thread that reads from it.
                    each.shutdown(socket.SHUT_RDWR)
        self._pairs.clear()

    def close(self) -> None:
        self.cut()
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._server.accept()
            except OSError:
                return
            if not self.open:
                here.close()
                continue
            there = socket.create_connection(self._target)
            self._pairs.append((here, there))
            for one, other in ((here, there), (there, here)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            pass
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(place: Place, tmp_path: Path) -> Iterator[tuple[Proxy, KubernetesCluster]]:
    """A proxy, and the launcher's cluster behind it."""
    config = yaml.safe_load(Path(place.kubeconfig).read_text())
    cluster = config["clusters"][0]["cluster"]
    where = urlsplit(cluster["server"])
    proxy = Proxy((where.hostname or "", where.port or 443))
    cluster.update(server=f"https://127.0.0.1:{proxy.port}")
    path = tmp_path / "proxied.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    behind = KubernetesCluster(kubeconfig=str(path), namespace=place.name)
    yield proxy, behind
    behind.close()
    proxy.close()


def test_a9_an_outage_in_the_middle_of_a_training_fails_nothing(
    place: Place, proxy: tuple[Proxy, KubernetesCluster]
) -> None:
    door, cluster = proxy
    runner = Runner(cluster)
    said: list[Say] = []

    def say(each: Say) -> None:
        said.append(each)
        if each.progress is Progress.RUNNING and door.open:
            door.cut()
            threading.Timer(8.0, setattr, (door, "open", True)).start()

    plan = plan_of(request(jobset(replicated("workers", "sleep 5; echo done")), place))
    outcome = runner.run(plan, Hooks(deliver=lambda _: None, say=say))
    runner.close()
    assert outcome.verdict is Verdict.SUCCEEDED
    assert Progress.UNREACHABLE in [each.progress for each in said]


def test_an_outage_beyond_its_budget_leaves_the_jobset_running(
    place: Place, proxy: tuple[Proxy, KubernetesCluster]
) -> None:
    door, cluster = proxy
    runner = Runner(cluster)

    def say(each: Say) -> None:
        if each.progress is Progress.RUNNING:
            door.cut()

    plan = plan_of(request(jobset(replicated("workers", "sleep 600")), place, budgets={"outage": 6}))
    outcome = runner.run(plan, Hooks(deliver=lambda _: None, say=say))
    runner.close()
    assert (outcome.verdict, outcome.reason, outcome.exit_code) == (Verdict.UNKNOWN, "ApiUnavailable", 69)
    assert [item["metadata"]["name"] for item in place.items("jobsets")] == [outcome.jobset]


def test_a_waiting_step_asks_for_nothing_while_nothing_happens(
    place: Place, until: Callable[..., Any]
) -> None:
    cluster = place.cluster()
    runner = Runner(cluster)
    counts: list[int] = []
    begun: list[Say] = []

    def quiet_for_ten_seconds() -> None:
        counts.append(cluster.requests)
        threading.Timer(10.0, lambda: counts.append(cluster.requests)).start()

    def say(each: Say) -> None:
        begun.append(each)
        if [each.progress for each in begun].count(Progress.RUNNING) == 20:
            threading.Timer(5.0, quiet_for_ten_seconds).start()

    # 20 steps in one process: one watch a kind serves them all.
    tree = jobset(replicated("workers", "sleep 40"))
    for number in range(20):
        runner.add(plan_of(request(tree, place, run=f"r{number}")), Hooks(deliver=lambda _: None, say=say))
    runner.run_all()
    runner.close()
    cluster.close()
    before, after = counts
    assert after - before <= 3
