"""Follows one Argo Workflow: whoever cleans up after it must hear that it is shut down, ended or gone.

One watch, opened anew for as long as the Workflow is there; where watching is not allowed, a read every few minutes. What it
says of a Workflow is what the server said last: nothing here decides what that means.
"""

from __future__ import annotations

import base64
import gzip
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jobset_steps.clusters.kubernetes.client import Client, Response, lines, wake
from jobset_steps.clusters.kubernetes.launcher_pod import workflow_view
from jobset_steps.errors import ApiError
from jobset_steps.supervisor.workflow import WorkflowView

__all__ = ["NodeView", "Read", "WorkflowWatch", "nodes_of", "read_workflow"]

_WATCH_SECONDS = 3300
_SILENCE = 300.0
_BACKOFF = (1.0, 2.0, 5.0, 10.0, 30.0)
# Where a watch is not allowed: eighteen reads an hour.
_EVERY = 200.0


@dataclass(frozen=True, slots=True)
class NodeView:
    """What of a node decides. `started_at` is as the server wrote it: it tells one try of a node from a later one."""

    phase: str
    started_at: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """A Workflow as read: None where there is none. `nodes` is by the whole name of each node."""

    workflow: WorkflowView | None
    nodes: Mapping[str, NodeView]


class WorkflowWatch:
    """The watch of one Workflow; `heard` is called from its thread with every change, the first read included."""

    def __init__(self, client: Client, namespace: str, name: str, heard: Callable[[Read], None]) -> None:
        self._client, self._heard = client, heard
        self._collection = _collection(namespace)
        self._name = name
        self._closed = threading.Event()
        self._stream: Response | None = None
        self._thread = threading.Thread(target=self._run, name="jobset-steps-workflow", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following it."""
        self._closed.set()
        if (stream := self._stream) is not None:
            wake(stream)

    def _run(self) -> None:
        failures = 0
        while not self._closed.is_set():
            pause = 0.0
            try:
                item = self._client.call("GET", f"{self._collection}/{self._name}")
                self._heard(_read(item))
                self._watch(str(item["metadata"]["resourceVersion"]))
                failures = 0
            except ApiError as error:
                if error.kind == "not_found":
                    self._heard(Read(None, {}))
                    return
                pause = max(error.retry_after or 0.0, _BACKOFF[min(failures, len(_BACKOFF) - 1)])
                if error.kind == "forbidden":
                    pause = _EVERY
                elif error.kind == "conflict":
                    pause = 0.0 if failures == 0 else pause  # 410: begin from a fresh read
                failures += 1
            self._closed.wait(pause)

    def _watch(self, version: str) -> None:
        query = {
            "watch": "true",
            "fieldSelector": f"metadata.name={self._name}",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": _WATCH_SECONDS,
        }
        stream = self._client.open(self._collection, query, silence=_SILENCE)
        self._stream = stream
        try:
            for line in lines(stream):
                if self._closed.is_set():
                    return
                try:
                    event = json.loads(line)
                    change, item = event["type"], event["object"]
                except (ValueError, KeyError, TypeError) as error:
                    raise ApiError("unavailable", f"the watch sent something unreadable: {error}") from error
                if change == "ERROR":
                    raise ApiError("conflict", str(item.get("message", "the watch ended with an error")))
                if change == "DELETED":
                    raise ApiError("not_found", f"the Workflow {self._name} was deleted")
                if change != "BOOKMARK":
                    self._heard(_read(item))
        finally:
            self._stream = None
            stream.close()


def read_workflow(client: Client, namespace: str, name: str) -> Read:
    """A Workflow, read afresh. Raises ApiError."""
    try:
        return _read(client.call("GET", f"{_collection(namespace)}/{name}"))
    except ApiError as error:
        if error.kind == "not_found":
            return Read(None, {})
        raise


def nodes_of(status: Mapping[str, Any]) -> dict[str, NodeView]:
    """The nodes of a Workflow's status by name. Argo compresses them where there are many."""
    nodes = status.get("nodes") or {}
    if packed := status.get("compressedNodes"):
        nodes = json.loads(gzip.decompress(base64.b64decode(packed)))
    return {
        node["name"]: NodeView(
            str(node.get("phase") or ""), str(node.get("startedAt") or ""), str(node.get("message") or "")
        )
        for node in nodes.values()
    }


def _collection(namespace: str) -> str:
    return f"/apis/argoproj.io/v1alpha1/namespaces/{namespace}/workflows"


def _read(item: Mapping[str, Any]) -> Read:
    return Read(workflow_view(item), nodes_of(item.get("status") or {}))
