"""A launcher that is itself a pod: which run and step it serves, who owns its JobSet, and why it is told to end.

All of it is read from the pod's own metadata and from its Workflow. A launcher outside a Workflow (a plain pod or Job)
is told run and step by its command line.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jobset_steps.clusters.kubernetes.client import Client
from jobset_steps.clusters.kubernetes.kinds import PODS
from jobset_steps.clusters.kubernetes.views import pod_view, seconds
from jobset_steps.errors import ApiError
from jobset_steps.supervisor.inputs import EndRequest
from jobset_steps.supervisor.plan import EngineAttempt, Owner
from jobset_steps.supervisor.workflow import LauncherPod, WorkflowView, why_ending

__all__ = ["LauncherPodHost", "Place", "place_of", "workflow_view"]

_NODE_NAME = "workflows.argoproj.io/node-name"
_RETRY = re.compile(r"\((\d+)\)$")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a launcher pod stands: `run` and `step` are "" outside a Workflow, where `owner` is None."""

    run: str
    step: str
    engine: EngineAttempt
    owner: Owner | None


def place_of(pod: Mapping[str, Any]) -> Place:
    """The place that a pod's metadata names.

    Argo names a node "wf[0].train(0:item)(1)": what follows the workflow's name is the step, loop item included, and a
    last bracket that holds a number alone is the retry. The run is the Workflow's name with eight digits of its uid, so
    that a Workflow that took the name of a deleted one is another run.
    """
    meta = pod["metadata"]
    node = (meta.get("annotations") or {}).get(_NODE_NAME, "")
    owner = next((o for o in meta.get("ownerReferences") or () if o.get("kind") == "Workflow"), None)
    if not node or owner is None:
        return Place("", "", EngineAttempt(meta["uid"]), None)
    retry = _RETRY.search(node)
    whole = node[: retry.start()] if retry else node
    step = whole.removeprefix(owner["name"]).lstrip(".") or "main"
    return Place(
        run=f"{owner['name']}-{owner['uid'][:8]}",
        step=step,
        engine=EngineAttempt(meta["uid"], int(retry[1]) if retry else 0),
        owner=Owner(owner["apiVersion"], owner["kind"], owner["name"], owner["uid"]),
    )


def workflow_view(item: Mapping[str, Any]) -> WorkflowView:
    """A Workflow as read."""
    meta, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    deadline = spec.get("activeDeadlineSeconds")
    return WorkflowView(
        name=meta["name"],
        uid=meta["uid"],
        phase=status.get("phase") or "",
        shutdown=spec.get("shutdown") or "",
        deadline=None if deadline is None else float(deadline),
        started_at=seconds(status.get("startedAt")),
        deleting=bool(meta.get("deletionTimestamp")),
    )


class LauncherPodHost:
    """The pod this process runs in. Raises ApiError from `place` where the pod cannot be read."""

    def __init__(
        self,
        client: Client,
        now: Callable[[], float],
        pod: str | None = None,
        owner: Owner | None = None,
    ) -> None:
        self._client, self._now = client, now
        self._pod = pod or os.environ.get("POD_NAME") or socket.gethostname()
        self._place: Place | None = None
        self._owner = owner
        self.namespace = client.namespace

    def place(self) -> Place:
        """Where this launcher stands; read once."""
        if self._place is None:
            self._place = place_of(self._read())
        return self._place

    def why_ending(self) -> EndRequest:
        """Why this process was sent SIGTERM. Two requests; what cannot be read counts as not known."""
        try:
            item: Mapping[str, Any] | None = self._read()
        except ApiError:
            item = None
        owner = self._owner or (self._place.owner if self._place else place_of(item).owner if item else None)
        workflow, read = self._workflow(owner) if owner else (None, True)
        return why_ending(
            _launcher_pod(item) if item else None,
            workflow,
            owner.uid if owner else "",
            self._now(),
            read=read,
        )

    def _read(self) -> Mapping[str, Any]:
        return self._client.call("GET", PODS.path(self._client.namespace, self._pod))

    def _workflow(self, owner: Owner) -> tuple[WorkflowView | None, bool]:
        path = f"/apis/{owner.api_version}/namespaces/{self._client.namespace}/workflows/{owner.name}"
        try:
            return workflow_view(self._client.call("GET", path)), True
        except ApiError as error:
            return None, error.kind == "not_found"


def _launcher_pod(item: Mapping[str, Any]) -> LauncherPod:
    view = pod_view(item)
    deadline = (item.get("spec") or {}).get("activeDeadlineSeconds")
    return LauncherPod(
        deleting=view.deleting_since is not None,
        deadline=None if deadline is None else float(deadline),
        started_at=seconds((item.get("status") or {}).get("startTime")),
        disrupted=view.condition("DisruptionTarget") is not None,
    )
