"""One watch per kind for any number of JobSets: what is known of them now, and a call at every change.

A watch makes waiting fast and is never the truth: a silent or broken one is opened anew, one that is too old (410) starts
from a fresh list, and reads that others make are folded in. Nothing here decides what a change means.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobset_steps.clusters.kubernetes.client import Client, Response, lines, wake
from jobset_steps.clusters.kubernetes.kinds import JOBSET_NAME, KINDS, Kind, newer, owner_of
from jobset_steps.errors import ApiError
from jobset_steps.observed import PodView, View

__all__ = ["Cache"]

# The server ends a watch after this many seconds; with three kinds that is three requests in this time.
_WATCH_SECONDS = 3300
# The server sends a bookmark about once a minute: silence for longer than this is a dead connection.
_SILENCE = 300.0
_BACKOFF = (1.0, 2.0, 5.0, 10.0, 30.0)
# Above this many JobSets a watch asks for all that carry our label, below it for those by name.
_BY_NAME = 20

Listener = Callable[[View | ApiError], None]


class Cache:
    """What is known of the watched JobSets of one namespace. `now` gives POSIX seconds."""

    def __init__(self, client: Client, namespace: str, now: Callable[[], float]) -> None:
        self._client, self._namespace, self._now = client, namespace, now
        self._lock = threading.RLock()
        self._listeners: dict[str, Listener] = {}
        # kind -> JobSet name -> object name -> (resourceVersion, view)
        self._objects: dict[str, dict[str, dict[str, tuple[str, Any]]]] = {kind.name: {} for kind in KINDS}
        self._gone: dict[str, list[PodView]] = {}
        self._loops = [_Loop(self, kind) for kind in KINDS]

    def add(self, name: str, listener: Listener) -> None:
        """Begin to watch a JobSet; the listener hears from threads of this cache."""
        with self._lock:
            self._listeners[name] = listener
        for loop in self._loops:
            loop.retarget()

    def remove(self, name: str) -> None:
        """Stop watching it; what was known of it is forgotten."""
        with self._lock:
            self._listeners.pop(name, None)
            self._gone.pop(name, None)
            for objects in self._objects.values():
                objects.pop(name, None)
        for loop in self._loops:
            loop.retarget()

    def close(self) -> None:
        """End all watches."""
        with self._lock:
            self._listeners.clear()
        for loop in self._loops:
            loop.retarget()

    def watched(self) -> tuple[str, ...]:
        """Names of the JobSets that are watched."""
        with self._lock:
            return tuple(self._listeners)

    def replace(self, kind: Kind, name: str, items: Sequence[Mapping[str, Any]]) -> None:
        """Take a fresh list of one JobSet's objects of a kind as the truth."""
        with self._lock:
            known = self._objects[kind.name].setdefault(name, {})
            listed = {item["metadata"]["name"] for item in items}
            for lost in [key for key in known if key not in listed]:
                self._forget(kind, name, known.pop(lost)[1])
            for item in items:
                self._keep(kind, name, item)

    def apply(self, kind: Kind, item: Mapping[str, Any], *, deleted: bool) -> None:
        """Fold one watch event in and tell the listener."""
        with self._lock:
            name = owner_of(kind, item)
            listener = self._listeners.get(name)
            if listener is None:
                return
            if deleted:
                self._objects[kind.name].get(name, {}).pop(item["metadata"]["name"], None)
                self._forget(kind, name, kind.view(item))
            else:
                self._keep(kind, name, item)
            listener(self.view(name))

    def fold(self, name: str, *lists: Sequence[Mapping[str, Any]]) -> View:
        """Take a fresh read of all kinds as the truth; the complete View of it."""
        with self._lock:
            for kind, items in zip(KINDS, lists, strict=True):
                self.replace(kind, name, items)
            view = self.view(name, complete=True)
            if name not in self._listeners:
                for objects in self._objects.values():
                    objects.pop(name, None)
            return view

    def peek(self, name: str) -> View:
        """What is known of a JobSet now; pods that went stay to be told of in the next View."""
        with self._lock:
            return self._view(name, (), complete=False)

    def view(self, name: str, *, complete: bool = False) -> View:
        """What is known of a JobSet now. Pods that went since the last View are in it once more."""
        with self._lock:
            return self._view(name, tuple(self._gone.pop(name, ())), complete)

    def _view(self, name: str, gone: tuple[PodView, ...], complete: bool) -> View:
        jobsets, jobs, pods = (
            [view for _, view in self._objects[k.name].get(name, {}).values()] for k in KINDS
        )
        return View(
            jobsets[0] if jobsets else None,
            tuple(jobs),
            (*pods, *gone),
            complete=complete,
            read_at=self._now(),
        )

    def tell_all(self, kind: Kind) -> None:
        """Tell every listener what is known, after a list."""
        with self._lock:
            for name, listener in tuple(self._listeners.items()):
                listener(self.view(name))

    def fault(self, error: ApiError) -> None:
        """Tell every listener that a watch cannot be kept up."""
        with self._lock:
            for listener in tuple(self._listeners.values()):
                listener(error)

    def _keep(self, kind: Kind, name: str, item: Mapping[str, Any]) -> None:
        meta = item["metadata"]
        known = self._objects[kind.name].setdefault(name, {})
        before = known.get(meta["name"])
        version = meta.get("resourceVersion", "")
        if before is not None and before[1].uid == meta.get("uid") and newer(before[0], version):
            return
        if before is not None and before[1].uid != meta.get("uid"):
            self._forget(kind, name, before[1])
        known[meta["name"]] = (version, kind.view(item))

    def _forget(self, kind: Kind, name: str, view: Any) -> None:
        if isinstance(view, PodView) and name in self._listeners:
            self._gone.setdefault(name, []).append(replace(view, gone=True))


class _Loop:
    """The watch of one kind: list, watch, again. Its thread lives while anything is watched."""

    def __init__(self, cache: Cache, kind: Kind) -> None:
        self._cache, self._kind = cache, kind
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stream: Response | None = None
        self._query: dict[str, str] | None = None

    def retarget(self) -> None:
        """Watch what is to be watched now: keep the stream if it still covers that, else begin anew."""
        with self._changed:
            wanted = self._wanted()
            if wanted == self._query:
                return
            self._query = wanted
            self._changed.notify_all()
            if self._stream is not None:
                wake(self._stream)
            if wanted is not None and self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name=f"jobset-steps-watch-{self._kind.name}", daemon=True
                )
                self._thread.start()

    def _wanted(self) -> dict[str, str] | None:
        names = sorted(self._cache.watched())
        if not names:
            return None
        if len(names) > _BY_NAME:
            return {"labelSelector": "jobset-steps/identity"}
        if self._kind.name != "jobsets":
            return {"labelSelector": f"{JOBSET_NAME} in ({','.join(names)})"}
        if len(names) == 1:
            return {"fieldSelector": f"metadata.name={names[0]}"}
        return {"labelSelector": "jobset-steps/identity"}

    def _run(self) -> None:
        failures = 0
        version = ""
        listed: dict[str, str] | None = None
        while True:
            with self._changed:
                query = self._query
                if query is None:
                    self._thread = None
                    return
            try:
                if query != listed or not version:
                    version = self._list(query)
                    listed = query
                version = self._watch(query, version)
                failures = 0
            except ApiError as error:
                with self._changed:
                    if self._query != query:
                        continue
                if error.kind in ("conflict", "not_found", "invalid"):
                    version = ""  # 410: the version is too old to go on from
                    if failures == 0:
                        failures = 1
                        continue
                if error.kind != "unavailable" or failures:
                    self._cache.fault(error)
                pause = max(error.retry_after or 0.0, _BACKOFF[min(failures, len(_BACKOFF) - 1)])
                failures += 1
                with self._changed:
                    self._changed.wait_for(lambda asked=query: self._query != asked, pause)  # type: ignore[misc]

    def _list(self, query: Mapping[str, str]) -> str:
        kind, cache = self._kind, self._cache
        answer = cache._client.call("GET", kind.path(cache._namespace), query=query)
        per_name: dict[str, list[Mapping[str, Any]]] = {name: [] for name in cache.watched()}
        for item in answer.get("items") or ():
            if (bucket := per_name.get(owner_of(kind, item))) is not None:
                bucket.append(item)
        for name, items in per_name.items():
            cache.replace(kind, name, items)
        cache.tell_all(kind)
        return str(answer["metadata"]["resourceVersion"])

    def _watch(self, query: Mapping[str, str], version: str) -> str:
        """Follow changes until the server ends the watch; the version to go on from, "" to list anew."""
        kind, cache = self._kind, self._cache
        stream = cache._client.open(
            kind.path(cache._namespace),
            {
                **query,
                "watch": "true",
                "resourceVersion": version,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": _WATCH_SECONDS,
            },
            silence=_SILENCE,
        )
        with self._changed:
            if self._query != query:
                stream.close()
                return version
            self._stream = stream
        try:
            for line in lines(stream):
                try:
                    event = json.loads(line)
                    change, item = event["type"], event["object"]
                except (ValueError, KeyError, TypeError) as error:
                    raise ApiError("unavailable", f"the watch sent something unreadable: {error}") from error
                if change == "ERROR":
                    raise ApiError("conflict", str(item.get("message", "the watch ended with an error")))
                version = item["metadata"]["resourceVersion"]
                if change != "BOOKMARK":
                    cache.apply(kind, item, deleted=change == "DELETED")
        finally:
            with self._changed:
                self._stream = None
            stream.close()
        return version
