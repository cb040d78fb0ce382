"""Starts the processes of one pod for torch.distributed's `env://`, without torchrun, and ends as the one that failed first.

Recipes put this very file into the pod (`python -c`), under the entry. It computes ranks from the pod's environment and
nothing else; it restarts nothing, for the JobSet alone restarts, and it never changes an exit code.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType

GRACE = 30.0
"""Seconds that the other processes have after SIGTERM when one failed: as a pod has by default."""
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def variables(environ: Mapping[str, str], local_rank: int, processes: int) -> dict[str, str]:
    """What process `local_rank` of `processes` in this pod has besides the pod's own environment.

    The names are those of torch.distributed (`env://`) and torchrun; NODE_RANK is what Lightning reads.
    """
    node = (
        int(environ.get("JOBSET_STEPS_RANK_OFFSET", "0"))
        + int(environ.get("JOBSET_STEPS_JOB_INDEX") or "0")
        * int(environ.get("JOBSET_STEPS_PODS_PER_JOB", "1"))
        + int(environ.get("JOB_COMPLETION_INDEX") or "0")
    )
    found = {
        "RANK": node * processes + local_rank,
        "WORLD_SIZE": int(environ["JOBSET_STEPS_WORLD_SIZE"]) * processes,
        "LOCAL_RANK": local_rank,
        "LOCAL_WORLD_SIZE": processes,
        "NODE_RANK": node,
        "GROUP_RANK": node,
        "GROUP_WORLD_SIZE": int(environ["JOBSET_STEPS_WORLD_SIZE"]),
    }
    if processes > 1 and "OMP_NUM_THREADS" not in environ:
        # Each would otherwise start as many threads as the pod has processors; torchrun says 1 as well.
        found["OMP_NUM_THREADS"] = 1
    return {name: str(value) for name, value in found.items()}


def run(command: list[str], processes: int) -> int:
    """Run `command` that many times at once; returns 0, or the exit code (128 + signal) of the first that failed."""
    children: list[subprocess.Popen[bytes]] = []

    def forward(number: int, frame: FrameType | None) -> None:
        tell(children, number)

    for wanted in FORWARDED:
        signal.signal(wanted, forward)
    try:
        for local_rank in range(processes):
            mine = {**os.environ, **variables(os.environ, local_rank, processes)}
            children.append(subprocess.Popen(command, env=mine))
    except OSError:
        tell(children, signal.SIGKILL)
        raise
    left = {child.pid: child for child in children}
    first = 0
    while left and not first:
        pid, status = os.waitpid(-1, 0)
        child = left.pop(pid, None)
        if child is not None:
            child.returncode = code_of(status)
            first = child.returncode
    if first:
        tell(children, signal.SIGTERM)
        end = time.monotonic() + GRACE
        for child in left.values():
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, end - time.monotonic()))
        tell(children, signal.SIGKILL)
    return first


def tell(children: list[subprocess.Popen[bytes]], number: int) -> None:
    """Send a signal to all that still run."""
    for child in children:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(child.pid, number)


def code_of(status: int) -> int:
    """The exit code in a wait status, 128 + the signal where one ended it."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def main(arguments: list[str]) -> int:
    """`PROCESSES command arguments...`; returns the exit code."""
    processes, command = int(arguments[0]), arguments[1:]
    try:
        if processes > 1:
            return run(command, processes)
        os.execvpe(command[0], command, {**os.environ, **variables(os.environ, 0, 1)})
    except OSError as error:
        print(f"jobset-steps: cannot run {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
