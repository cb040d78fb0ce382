"""Who is told of changes: a View after each turn of the loop in which a JobSet changed, however much did.

Pods that were deleted since somebody's last View are shown to them once more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from jobset_steps.clusters import Notify
from jobset_steps.clusters.controller import Controller
from jobset_steps.errors import ApiError
from jobset_steps.observed import View

__all__ = ["Watch", "Watches"]


class Watch:
    """One subscription. Its lock holds while notify runs, so that `close` returns after it."""

    def __init__(self, name: str, notify: Notify, forget: Callable[[Watch], None], gone_number: int) -> None:
        self.name, self.gone_number = name, gone_number
        self.new = True
        self._notify, self._forget = notify, forget
        self._lock = threading.RLock()
        self._closed = False

    def tell(self, seen: View | ApiError) -> None:
        """Call notify unless it was closed."""
        with self._lock:
            if not self._closed:
                self._notify(seen)

    def close(self) -> None:
        """Stop it."""
        with self._lock:
            self._closed = True
        self._forget(self)


class Watches:
    """All subscriptions of one cluster. Called under its lock, but for `Watch.close`."""

    def __init__(self, controller: Controller, elsewhere: Callable[[str], ApiError | None]) -> None:
        self._controller, self._elsewhere = controller, elsewhere
        self._watches: dict[int, Watch] = {}

    def add(self, name: str, notify: Notify) -> Watch:
        """Begin to watch a JobSet, whether there is one of that name or not."""
        watch = Watch(name, notify, self._forget, self._controller.gone_number)
        self._watches[id(watch)] = watch
        return watch

    def all(self) -> list[Watch]:
        """Those that are on."""
        return list(self._watches.values())

    def news(self, changed: Collection[str], now: float) -> list[tuple[Watch, View | ApiError]]:
        """What to tell whom, to be told once the lock is released."""
        news: list[tuple[Watch, View | ApiError]] = []
        for watch in self.all():
            if watch.new or watch.name in changed:
                # That it is not here says nothing of a JobSet that another process runs.
                seen = self._elsewhere(watch.name) or self._controller.view(
                    watch.name, now, gone_after=watch.gone_number
                )
                watch.new, watch.gone_number = False, self._controller.gone_number
                news.append((watch, seen))
        return news

    def _forget(self, watch: Watch) -> None:
        self._watches.pop(id(watch), None)
