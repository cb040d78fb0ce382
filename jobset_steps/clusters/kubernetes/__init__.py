"""The Kubernetes cluster: the Cluster protocol on a real API server with the real JobSet controller.

Each method is one exchange with the server, or one watch kept open; what an answer means for the step is the supervisor's
to decide. JobSets outlive this object: closing it ends watches and streams and deletes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from jobset_steps.clusters import Notify, Stored, Subscription
from jobset_steps.clusters.kubernetes.cache import Cache
from jobset_steps.clusters.kubernetes.client import Client
from jobset_steps.clusters.kubernetes.dry_run import refuse_what_could_never_run
from jobset_steps.clusters.kubernetes.follow import Follower
from jobset_steps.clusters.kubernetes.kinds import JOBS, JOBSET_NAME, JOBSETS, PODS, Kind
from jobset_steps.clusters.kubernetes.launcher_pod import LauncherPodHost
from jobset_steps.clusters.kubernetes.views import event_view, log_tail
from jobset_steps.clusters.kubernetes.workflows import Read, WorkflowWatch, read_workflow
from jobset_steps.errors import ApiError
from jobset_steps.observed import LogTail, View
from jobset_steps.supervisor.plan import Owner

__all__ = ["KubernetesCluster"]

_RECORD = "record"


class KubernetesCluster:
    """One namespace of a Kubernetes cluster.

    `kubeconfig` is a path (None: the usual places, or the pod's own service account), `namespace` the JobSets' namespace
    (None: the context's or the pod's own). Raises BadInput where there is no usable configuration.
    """

    name = "kubernetes"

    def __init__(
        self, *, kubeconfig: str | None = None, context: str | None = None, namespace: str | None = None
    ) -> None:
        self._client = Client(kubeconfig, context)
        self.namespace = namespace or self._client.namespace
        self._cache = Cache(self._client, self.namespace, time.time)
        self._followers: list[Follower] = []

    @property
    def requests(self) -> int:
        """Requests sent to the API server so far."""
        return self._client.requests

    def launcher_pod(self, pod: str | None = None, *, owner: Owner | None = None) -> LauncherPodHost:
        """The pod that this process runs in, by name (None: $POD_NAME, else the host name), and its Workflow if known."""
        return LauncherPodHost(self._client, time.time, pod, owner)

    def follow_workflow(self, name: str, heard: Callable[[Read], None]) -> Subscription:
        """Call `heard`, from a thread of its own, with an Argo Workflow of this namespace now and at every change."""
        return WorkflowWatch(self._client, self.namespace, name, heard)

    def read_workflow(self, name: str) -> Read:
        """An Argo Workflow of this namespace, read afresh. Raises ApiError."""
        return read_workflow(self._client, self.namespace, name)

    def load(self, digest: str) -> Stored | None:
        """See Cluster.load."""
        try:
            found = self._client.call("GET", self._configmaps(_record_name(digest)))
        except ApiError as error:
            if error.kind == "not_found":
                return None
            raise
        return Stored((found.get("data") or {}).get(_RECORD, ""), found["metadata"]["resourceVersion"])

    def save(self, digest: str, text: str, version: str, *, owner: Mapping[str, Any] | None = None) -> str:
        """See Cluster.save."""
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": _record_name(digest), "labels": {"jobset-steps/identity": digest}},
            "data": {_RECORD: text},
        }
        if owner is not None:
            body["metadata"]["ownerReferences"] = [dict(owner)]
        try:
            if not version:
                saved = self._client.call("POST", self._configmaps(), body=body)
            else:
                body["metadata"]["resourceVersion"] = version
                saved = self._client.call("PUT", self._configmaps(_record_name(digest)), body=body)
        except ApiError as error:
            if error.kind in ("exists", "not_found"):
                raise ApiError("conflict", error.message) from error
            raise
        return str(saved["metadata"]["resourceVersion"])

    def create(self, manifest: Mapping[str, Any]) -> str:
        """See Cluster.create. Child Jobs and pods are dry-run first: JobSet itself admits what can never run."""
        refuse_what_could_never_run(self._client, self.namespace, manifest)
        created = self._client.call(
            "POST", JOBSETS.path(self.namespace), query={"fieldValidation": "Strict"}, body=dict(manifest)
        )
        return str(created["metadata"]["uid"])

    def read(self, name: str, *, events: bool = False) -> View:
        """See Cluster.read. Three requests, four with events."""
        try:
            jobset = [self._client.call("GET", JOBSETS.path(self.namespace, name))]
        except ApiError as error:
            # Only the object may be missing: a server without the JobSet kind says so in other words.
            if error.kind != "not_found" or name not in error.message:
                raise
            jobset = []
        jobs, pods = (self._list(kind, {"labelSelector": f"{JOBSET_NAME}={name}"}) for kind in (JOBS, PODS))
        view = self._cache.fold(name, jobset, jobs, pods)
        return view if not events else self._with_events(view)

    def watch(self, name: str, notify: Notify) -> Subscription:
        """See Cluster.watch. One watch a kind serves all JobSets watched through this object."""
        self._cache.add(name, notify)
        return _Closing(lambda: self._cache.remove(name))

    def delete(self, name: str, uid: str) -> None:
        """See Cluster.delete."""
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Foreground",
        }
        try:
            self._client.call("DELETE", JOBSETS.path(self.namespace, name), body=body)
        except ApiError as error:
            if error.kind not in ("not_found", "conflict"):
                raise

    def tail(self, pod: str, container: str, attempt: int, lines: int) -> LogTail:
        """See Cluster.tail. At most 64 KiB."""
        text = self._client.text(
            f"{PODS.path(self.namespace, pod)}/log",
            {"container": container, "tailLines": lines, "limitBytes": 65536, "timestamps": "true"},
        )
        return log_tail(text, lines)

    def follow(self, name: str, write: Callable[[str], None]) -> Subscription:
        """See Cluster.follow."""
        follower = Follower(self._client, self.namespace, lambda: self._cache.peek(name), write)
        self._followers.append(follower)
        follower.start()
        return follower

    def close(self) -> None:
        """End watches and streams. JobSets stay."""
        for follower in self._followers:
            follower.close()
        self._cache.close()
        self._client.close()

    def _list(self, kind: Kind, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        """All objects of a kind, page by page."""
        items: list[dict[str, Any]] = []
        page: dict[str, Any] = {"limit": 500}
        while True:
            answer = self._client.call("GET", kind.path(self.namespace), query={**query, **page})
            items += answer.get("items") or []
            if not (token := answer.get("metadata", {}).get("continue")):
                return items
            page["continue"] = token

    def _with_events(self, view: View) -> View:
        from dataclasses import replace

        names = {part.name for part in (view.jobset, *view.jobs, *view.pods) if part is not None}
        answer = self._client.call(
            "GET", f"/api/v1/namespaces/{self.namespace}/events", query={"limit": 2000}
        )
        events = (event_view(item) for item in answer.get("items") or ())
        return replace(view, events=tuple(event for event in events if event.name in names))

    def _configmaps(self, name: str = "") -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps" + (f"/{name}" if name else "")


class _Closing:
    """A subscription that closes by a call."""

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close

    def close(self) -> None:
        self._close()


def _record_name(digest: str) -> str:
    return f"jobset-steps-{digest}"
