"""How long a Job waits before it makes a pod in place of a failed one: 10 s, doubled by failure, at most ten minutes."""

from __future__ import annotations

from collections.abc import Iterable

from jobset_steps.observed import PodView
from jobset_steps.semantics.job_pods import finished_at

__all__ = ["failures_in_a_row", "ready_again_at"]

_FIRST = 10.0
_LONGEST = 600.0


def ready_again_at(failures: int, last_failure_at: float | None) -> float | None:
    """When the next pod may be made after so many failures in a row; None: at once. POSIX seconds."""
    if failures == 0 or last_failure_at is None:
        return None
    delay = _FIRST
    for _ in range(failures - 1):
        delay = min(delay * 2, _LONGEST)
        if delay == _LONGEST:
            break
    return last_failure_at + delay


def failures_in_a_row(
    before: int, last_failure_at: float | None, succeeded: Iterable[PodView], failed: Iterable[PodView]
) -> tuple[int, float | None]:
    """Failures since the last success and the time of the last one, with pods that ended since they were counted."""
    successes = [finished_at(pod) for pod in succeeded]
    failures = [finished_at(pod) for pod in failed]
    if not successes:
        return (before + len(failures), max(failures)) if failures else (before, last_failure_at)
    last_success = max(successes)
    after = [time for time in failures if time > last_success]
    return len(after), max(after, default=None)
