"""torchrun, but with the exit code of the process that failed first, and without waiting long for pods that hang.

torchrun itself ends with 1 whatever its processes end with, so a failure policy could not tell a fatal exit code from a
crash. Recipes put this very file into the pod, in torchrun's place; it takes torchrun's arguments.
"""

from __future__ import annotations

import os
import sys
from typing import Any

PATIENCE = 5.0
"""Seconds that a node whose processes failed waits for the other nodes to end too."""


def main(arguments: list[str]) -> int:
    """Run torchrun; returns the exit code of the first process that failed, 128 + its signal where one ended it."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    wait_less_after_a_failure()
    read_zero()
    try:
        torchrun([*hosting(arguments, os.environ.get("JOB_COMPLETION_INDEX", "0")), *arguments])
    except ChildFailedError as error:
        print(error, file=sys.stderr, flush=True)
        code = int(error.get_first_failure()[1].exitcode)
        return code if code >= 0 else 128 - code
    return 0


def hosting(arguments: list[str], index: str) -> list[str]:
    """With c10d: whether this pod hosts the rendezvous, and how long it may take until all pods are there.

    torchrun would find the host by comparing names, but a pod calls itself by another name than the others call it.
    """
    if "--rdzv_backend=c10d" not in arguments:
        return []
    return [f"--rdzv_conf=is_host={int(index == '0')},read_timeout=900,join_timeout=900"]


def wait_less_after_a_failure() -> None:
    """A node whose processes failed ends soon.

    Older versions of torchrun have it wait five minutes for the other nodes, which may hang in a collective call; the
    JobSet restarts them all once this one ends. The method is torchrun's own affair: where it has another shape, nothing
    is changed.
    """
    from torch.distributed.elastic.agent.server import api

    wait = getattr(api.SimpleElasticAgent, "_exit_barrier", None)

    def wait_less(agent: Any) -> Any:
        group, limit = getattr(agent, "_worker_group", None), getattr(agent, "_exit_barrier_timeout", None)
        if group is not None and limit is not None and group.state is api.WorkerState.FAILED:
            agent._exit_barrier_timeout = min(PATIENCE, limit)
        return wait(agent) if wait else None

    if wait is not None:
        api.SimpleElasticAgent._exit_barrier = wait_less


def read_zero() -> None:
    """PyTorch 1.13 under Python 3.11, as in Debian 12, cannot read torchrun's own default of --redirects, "0"."""
    from torch.distributed.elastic.multiprocessing import Std

    if Std.from_str("0") is None:
        Std.from_str = staticmethod(lambda text: Std(int(text)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
