"""The plugin's server over real processes: one start however many ask, outputs, what is over, and who may call."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobset_steps.clusters.kubernetes.workflows import NodeView, Read
from jobset_steps.clusters.local import LocalCluster
from jobset_steps.serve.app import EXECUTE, app_of
from jobset_steps.serve.steps import Namespace, Steps
from jobset_steps.supervisor.workflow import WorkflowView
from tests.unit.spec.examples import container, job, jobset, pod, replicated

NODE = "wf.train"


class Argo:
    """What Argo's side is told and tells: one Workflow, which a test shuts down or whose nodes it begins anew."""

    def __init__(self) -> None:
        self.workflow: WorkflowView | None = WorkflowView("wf", "0123456789", phase="Running")
        self.nodes = {NODE: NodeView("Pending", "at one")}
        self._listeners: list[Callable[[Read], None]] = []

    def follow_workflow(self, name: str, heard: Callable[[Read], None]) -> Any:
        self._listeners.append(heard)
        # From a thread of its own, as a watch does.
        threading.Thread(target=self.tell, daemon=True).start()
        return self

    def read_workflow(self, name: str) -> Read:
        return Read(self.workflow, self.nodes)

    def close(self) -> None:
        self._listeners.clear()

    def tell(self) -> None:
        for heard in tuple(self._listeners):
            heard(Read(self.workflow, dict(self.nodes)))


class Server:
    def __init__(self, folder: Path) -> None:
        self.argo, self.cluster = Argo(), LocalCluster(folder, notice=lambda _: None)
        self.steps = Steps(lambda _: Namespace(self.cluster, self.argo))
        self._app = app_of(self.steps.answer, lambda: "secret")

    def ask(self, script: str, node: str = NODE, token: str = "secret", **body: Any) -> dict[str, Any]:
        main = container(command=["sh", "-c", script])
        spec = jobset(replicated(spec=job(pod(main), backoffLimit=0)))
        spec = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", **spec}
        asked = {
            "workflow": {"metadata": {"name": "wf", "namespace": "ns", "uid": "0123456789"}},
            "template": {"plugin": {"jobset-steps": {"spec": json.dumps(spec), "node": node, **body}}},
        }
        answer = asyncio.run(self._post(asked, token))
        return answer.json() if answer.status_code == 200 else {"status": answer.status_code}

    async def _post(self, asked: dict[str, Any], token: str) -> httpx.Response:
        transport = httpx.ASGITransport(app=self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://plugin") as client:
            return await client.post(EXECUTE, json=asked, headers={"Authorization": f"Bearer {token}"})

    def until_ended(self, script: str, **more: Any) -> dict[str, Any]:
        end = time.monotonic() + 30
        while (answer := self.ask(script, **more))["node"]["phase"] == "Running":
            assert time.monotonic() < end, answer
            time.sleep(0.05)
        return answer["node"]  # type: ignore[no-any-return]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.steps.stop(10)
    made.cluster.close()


def test_whoever_has_not_argos_token_is_turned_away(server: Server) -> None:
    assert server.ask("true", token="guess") == {"status": 403}
    assert server.cluster.guardian is None


def test_however_many_ask_about_a_node_it_is_trained_once(server: Server, tmp_path: Path) -> None:
    script = f"echo once >> {tmp_path}/trained; sleep 0.5"
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: server.ask(script), range(64)))
    assert server.until_ended(script)["phase"] == "Succeeded"
    assert server.until_ended(script)["outputs"]["exitCode"] == "0"
    assert (tmp_path / "trained").read_text() == "once\n"


def test_a_failure_has_outputs(server: Server) -> None:
    node = server.until_ended("exit 65")
    outputs = {each["name"]: each["value"] for each in node["outputs"]["parameters"]}
    assert (node["phase"], outputs["verdict"], outputs["restarts"]) == ("Failed", "Failed", "0")


def test_what_cannot_run_is_refused_with_every_fault_and_starts_nothing(server: Server) -> None:
    node = server.until_ended("true", options={"on_failure": "maybe", "colour": "red"})
    assert (node["phase"], node["outputs"]["exitCode"]) == ("Failed", "64")
    assert "on_failure" in node["message"]
    assert "colour" in node["message"]
    assert server.cluster.guardian is None


def test_a14_a_workflow_that_is_shut_down_ends_its_training(server: Server, tmp_path: Path) -> None:
    script = f"trap 'echo told >> {tmp_path}/told; exit 143' TERM; touch {tmp_path}/up; sleep 60 & wait"
    assert server.ask(script)["node"]["phase"] == "Running"
    end = time.monotonic() + 20
    while not (tmp_path / "up").exists():
        assert time.monotonic() < end
        assert server.ask(script)["node"]["phase"] == "Running"
        time.sleep(0.05)
    server.argo.workflow = WorkflowView("wf", "0123456789", phase="Running", shutdown="Terminate")
    server.argo.tell()
    node = server.until_ended(script)
    assert (node["phase"], node["outputs"]["exitCode"]) == ("Failed", "143")
    assert (tmp_path / "told").exists()


def test_a_try_that_argo_begins_anew_after_a_failure_trains_again(server: Server, tmp_path: Path) -> None:
    script = f"echo again >> {tmp_path}/trained; exit 64"
    assert server.until_ended(script)["phase"] == "Failed"
    assert server.until_ended(script)["phase"] == "Failed"
    assert (tmp_path / "trained").read_text() == "again\n"
    server.argo.nodes = {NODE: NodeView("Pending", "at two")}
    server.argo.tell()
    assert server.until_ended(script)["phase"] == "Failed"
    assert (tmp_path / "trained").read_text() == "again\nagain\n"
