"""JobSets small enough to read, and a watch that keeps what it was told."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jobset_steps.clusters.local import LocalCluster
from jobset_steps.errors import ApiError
from jobset_steps.observed import PodView, View

LIMIT = 30.0
"""Seconds that anything here may take on a busy machine."""


def field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


ATTEMPT = field("ATTEMPT", "metadata.annotations['jobset.sigs.k8s.io/restart-attempt']")


def sh(script: str, **container: Any) -> dict[str, Any]:
    """A container that runs a shell script; it knows its attempt."""
    env = [ATTEMPT, *container.pop("env", ())]
    return {"name": "main", "image": "none", "command": ["sh", "-c", script], "env": env, **container}


def python(code: str, **container: Any) -> dict[str, Any]:
    """A container that runs Python code; it knows its attempt."""
    return sh("", **container) | {"command": ["python", "-c", code]}


def replicated(
    name: str, container: dict[str, Any], *, replicas: int = 1, pods: int = 1, **pod: Any
) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [container], **pod}}
    job = {
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": template,
    }
    return {"name": name, "replicas": replicas, "template": {"spec": job}}


def jobset(name: str, *jobs: dict[str, Any], max_restarts: int | None = None, **spec: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"replicatedJobs": list(jobs), **spec}
    if max_restarts is not None:
        body["failurePolicy"] = {"maxRestarts": max_restarts, "restartStrategy": "BlockingRecreate"}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": body}


class Watched:
    """A JobSet under watch: every View that was told, and the last of each pod."""

    def __init__(self, cluster: LocalCluster, name: str) -> None:
        self.name = name
        self.views: list[View] = []
        self.pods: dict[str, PodView] = {}
        self._news = threading.Condition()
        self._subscription = cluster.watch(name, self._hear)

    def _hear(self, seen: View | ApiError) -> None:
        assert isinstance(seen, View), seen
        with self._news:
            self.views.append(seen)
            self.pods |= {pod.uid: pod for pod in seen.pods}
            self._news.notify_all()

    def until(self, what: Callable[[View], bool], limit: float = LIMIT) -> View:
        with self._news:
            assert self._news.wait_for(lambda: any(map(what, self.views)), limit), self.views[-1:]
            return next(view for view in self.views if what(view))

    def ended(self) -> View:
        return self.until(lambda view: view.jobset is not None and view.jobset.terminal_state != "")

    def running(self, pods: int = 1) -> View:
        return self.until(lambda view: sum(pod.phase == "Running" for pod in view.pods) >= pods)

    def gone(self) -> None:
        """Until it is there no more; it was there before."""
        with self._news:
            gone = self._news.wait_for(lambda: self.views[-1].jobset is None and bool(self.pods), LIMIT)
            assert gone, self.views[-1:]


def terminal(view: View) -> str:
    assert view.jobset is not None
    return view.jobset.terminal_state


def log_of(cluster: LocalCluster, jobset: str, attempt: int, pod: str = "") -> str:
    """All that the pods of an attempt wrote whose name begins like this."""
    files = sorted((cluster.root / "jobsets" / jobset / "logs" / f"attempt-{attempt}").glob(f"{pod}*.log"))
    assert files, f"no logs of {jobset}, attempt {attempt}"
    return "".join(path.read_text() for path in files)


def processes(mark: str) -> dict[int, str]:
    """pid -> state of every process that has this mark in its command line, zombies of them included."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                found[int(name)] = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
    return found


def eventually(what: Callable[[], bool], limit: float = LIMIT) -> bool:
    until = time.monotonic() + limit
    while not (held := what()) and time.monotonic() < until:
        time.sleep(0.02)
    return held
