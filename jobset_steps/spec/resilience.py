"""How a child Job has to fail so that a failure policy can tell a disruption, a fatal exit code and a crash apart.

JobSet sees only the Job's reason and message. These rules make a disrupted pod and a fatal exit code end the Job by its
podFailurePolicy, each with words of its own; any other exit code ends it by backoffLimit 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["FATAL_EXIT_CODES", "TERMINATED", "pod_failure_policy"]

FATAL_EXIT_CODES = (2, 64, 65, 66, 77, 78)
"""Exit codes that no restart mends: wrong usage, bad input, no permission, bad configuration (BSD's sysexits)."""
TERMINATED = 143
"""Exit code of a container that SIGTERM ended."""


def pod_failure_policy(
    fatal_exit_codes: Sequence[int] = FATAL_EXIT_CODES, *, reclaimed: bool = False
) -> dict[str, Any]:
    """A podFailurePolicy: a disrupted pod fails its Job, then a fatal exit code does. `fatal_exit_codes` may be empty.

    The disruption comes first, because an evicted pod also has an exit code. With `reclaimed`, an end by SIGTERM fails
    the Job in words of its own too: FailurePolicy.spot answers it.
    """
    disrupted = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    codes = [[TERMINATED]] if reclaimed else []
    if rest := sorted(set(fatal_exit_codes) - {TERMINATED} if reclaimed else set(fatal_exit_codes)):
        codes.append(rest)
    by_code = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": values}} for values in codes]
    return {"rules": [disrupted, *by_code]}
