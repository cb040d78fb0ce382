"""Faults to order in the simulated cluster: which call fails, how, how often, and whether it took effect before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from jobset_steps.errors import ApiError

__all__ = ["CALLS", "Faults"]

CALLS = ("load", "save", "create", "read", "watch", "delete", "tail")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Ordered:
    kind: str
    message: str
    after_effect: bool
    retry_after: float | None


class Faults:
    """Faults wait in order, by call; each is met once."""

    def __init__(self) -> None:
        self._ordered: dict[str, deque[_Ordered]] = {call: deque() for call in CALLS}

    def order(
        self,
        call: str,
        kind: str = "unavailable",
        *,
        times: int = 1,
        after_effect: bool = False,
        message: str = "",
        retry_after: float | None = None,
    ) -> None:
        """Let the next `times` calls of this name raise ApiError `kind`.

        `after_effect`: what the call asks for is done, and only its answer is lost. Raises KeyError for a call that
        there is none of, ValueError for an unknown kind.
        """
        ApiError(kind, message)
        fault = _Ordered(kind, message or f"{kind} (simulated)", after_effect, retry_after)
        self._ordered[call].extend([fault] * times)

    def waiting(self, call: str) -> int:
        """How many are still to come for this call."""
        return len(self._ordered[call])

    def around(self, call: str, effect: Callable[[], _T]) -> _T:
        """Carry out `effect`, unless a fault is ordered for this call. Raises ApiError."""
        if not self._ordered[call]:
            return effect()
        fault = self._ordered[call].popleft()
        if fault.after_effect:
            effect()
        raise ApiError(fault.kind, fault.message, retry_after=fault.retry_after)
