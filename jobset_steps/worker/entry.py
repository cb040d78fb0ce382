"""The first process of a training container: waits for the coordinator's name, runs the command, ends as it ended.

Recipes put this very file into the pod (`python -c`), so that the image needs nothing of this package; that is why it
imports only the standard library and keeps to what Python 3.8 understands. It never changes an exit code: it keeps the
command's own, except that an end after SIGTERM is 143, never 0. One that others' failures give is told a little later.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

TIMEOUT = 1800.0
"""Seconds to wait for the coordinator's name: as long as a step's start-up may last, for its pod may need a new node."""
NO_COORDINATOR = 75
"""Exit code where the name never resolved: a new attempt may find it."""
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
AFTERMATH = (1, 128 + int(signal.SIGABRT))
"""How a process ends whose peer is gone: an exception of Python's, or an abort of a collective library's."""
LAG = 2.0
"""Seconds that such an end is held back. The controllers see ends with up to a second's delay, and the first one decides:
a fatal exit code, a kill for lack of memory or a lost node must not be taken for the crash of the pods around it."""


def wait_for_name(
    host: str,
    timeout: float = TIMEOUT,
    *,
    resolve: Callable[..., Any] = socket.getaddrinfo,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
    pause: float = 1.0,
) -> str:
    """Wait until `host` resolves, at most `timeout` seconds; returns its first address.

    A name that is not there yet is not an error: a pod's name appears only some time after the pod, and resolvers
    remember for up to 30 s that it was not there. Raises TimeoutError.
    """
    end = clock() + timeout
    while True:
        try:
            return str(resolve(host, None)[0][4][0])
        except OSError as error:
            left = end - clock()
            if left <= 0:
                raise TimeoutError(
                    f"the coordinator's name {host} did not resolve within {timeout:g} s: {error}"
                ) from error
        sleep(min(pause, left))


def run(command: list[str]) -> int:
    """Run `command`, hand signals on to it, reap whatever becomes a child of this process; returns the exit code."""
    child: subprocess.Popen[bytes] | None = None
    signalled: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        signalled.append(number)
        if child is not None:
            with suppress(ProcessLookupError):
                os.kill(child.pid, number)

    for wanted in FORWARDED:
        signal.signal(wanted, forward)
    try:
        # A session of its own: a signal to the whole group must not reach the command twice.
        child = subprocess.Popen(command, start_new_session=True)
    except OSError as error:
        say(f"cannot run {command[0]}: {error.strerror}")
        return 127 if isinstance(error, FileNotFoundError) else 126
    for number in list(signalled):
        os.kill(child.pid, number)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child.pid:
            break
    if signal.SIGTERM in signalled:
        return 128 + int(signal.SIGTERM)
    code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    if code in AFTERMATH and os.environ.get("JOBSET_STEPS_WORLD_SIZE", "1") != "1":
        end = time.monotonic() + LAG
        while time.monotonic() < end and signal.SIGTERM not in signalled:
            time.sleep(0.05)
    return code


def terminated(number: int, frame: FrameType | None) -> None:
    """SIGTERM before there is a command."""
    raise SystemExit(128 + number)


def say(text: str) -> None:
    """One line on standard error, with who says it."""
    print("jobset-steps: " + text, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Entry: `[--at-once] [--] command arguments...`; returns the exit code. At once: without the coordinator's name."""
    at_once = arguments[:1] == ["--at-once"]
    command = arguments[1:] if at_once else arguments
    command = command[1:] if command[:1] == ["--"] else command
    if not command:
        say("a command is missing: python -m jobset_steps.worker -- command arguments...")
        return 64
    signal.signal(signal.SIGTERM, terminated)
    host = os.environ.get("JOBSET_STEPS_COORDINATOR")
    if host and not at_once:
        try:
            wait_for_name(host)
        except TimeoutError as error:
            say(str(error))
            return NO_COORDINATOR
    return run(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
