"""Streams the leader's log into ours, attempt after attempt. Best effort: a training never waits for its log.

The leader is the first pod of the first replicated job; its first container speaks. A stream that breaks is taken up
where it stopped, by time, so that at most the lines of one second come twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from jobset_steps.clusters.kubernetes.client import Client, Response, lines, wake
from jobset_steps.clusters.kubernetes.kinds import PODS
from jobset_steps.errors import ApiError
from jobset_steps.observed import PodView, View

__all__ = ["Follower", "leader"]

# Seconds between looks at what the cache knows; costs no request.
_LOOK = 0.5


def leader(view: View) -> PodView | None:
    """The newest attempt's first pod of the first replicated job, once it has started, else None."""
    first = view.jobset.replicated_jobs[0].name if view.jobset and view.jobset.replicated_jobs else None
    pods = [
        pod
        for pod in view.pods
        if pod.replicated_job == first and pod.job_index == 0 and pod.index == 0 and pod.phase != "Pending"
    ]
    return max(pods, key=lambda pod: (pod.attempt, pod.created_at or 0.0), default=None)


class Follower:
    """One followed JobSet, with a thread of its own."""

    def __init__(
        self, client: Client, namespace: str, peek: Callable[[], View | None], write: Callable[[str], None]
    ) -> None:
        self._client, self._namespace, self._peek, self._write = client, namespace, peek, write
        self._closed = threading.Event()
        self._stream: Response | None = None
        self._thread = threading.Thread(target=self._run, name="jobset-steps-follow", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop; what is already being written is finished."""
        self._closed.set()
        if (stream := self._stream) is not None:
            wake(stream)

    def _run(self) -> None:
        done: set[str] = set()
        since: float | None = None
        while not self._closed.wait(_LOOK):
            view = self._peek()
            pod = leader(view) if view else None
            if pod is None or pod.uid in done or not pod.containers:
                continue
            started = time.time()
            try:
                self._stream_of(pod, since)
            except ApiError as error:
                if error.kind == "unavailable":
                    since = started if since is None else time.time()
                    continue
            since = None
            done.add(pod.uid)

    def _stream_of(self, pod: PodView, since: float | None) -> None:
        container = next(c.name for c in pod.containers if not c.init)
        query: dict[str, str | int] = {"container": container, "follow": "true"}
        if since is not None:
            query["sinceSeconds"] = max(1, round(time.time() - since))
        # A training may be silent for hours, so silence does not break this stream; a lost node ends the pod instead.
        stream = self._client.open(f"{PODS.path(self._namespace, pod.name)}/log", query, silence=86400.0)
        self._stream = stream
        try:
            for line in lines(stream):
                if self._closed.is_set():
                    return
                self._write(line.decode("utf-8", "replace"))
        finally:
            self._stream = None
            stream.close()
