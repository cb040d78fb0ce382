"""The cluster's end of the guardian: start, terminate and kill containers, and hear what became of them.

Nothing here blocks but the first start of a guardian (a fork) and what follows a guardian's death. It knows containers
by an id and decides nothing about them.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Command", "Exited", "Processes", "Started"]

MARK = "JOBSET_STEPS_GUARD"
"""In the environment of all that is started here, so that it is found even where its guardian was killed."""

_PATIENCE = 10.0
"""Seconds to wait for what must die after its guardian died."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to execute: `argv[0]` is looked up in the PATH of `env`; standard output and error are added to `log`."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    log: Path


@dataclass(frozen=True, slots=True)
class Started:
    """The main process runs. `at` is in seconds of time.monotonic()."""

    id: str
    pid: int
    at: float


@dataclass(frozen=True, slots=True)
class Exited:
    """The main process and all its descendants are gone.

    `code` is 128 + `signal` where a signal ended it. `error` says why it could not be started, "" if it was. `lost`:
    the guardian died and took it along, so code and signal are not the container's own.
    """

    id: str
    code: int
    signal: int | None
    at: float
    error: str = ""
    lost: bool = False


class Processes:
    """One guardian at a time, started when first needed and again after its death. Not thread-safe."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(16)
        self._guardian: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._alive: set[str] = set()
        self._in = b""
        self._out = b""

    @property
    def guardian(self) -> int | None:
        """The guardian's pid while one runs."""
        return self._guardian.pid if self._guardian else None

    def fileno(self) -> int | None:
        """What to select on for `receive`, None while there is no guardian."""
        return self._socket.fileno() if self._socket else None

    @property
    def wants_write(self) -> bool:
        """Whether `flush` has something left to send."""
        return bool(self._out)

    def start(self, id: str, command: Command) -> None:
        """Start a container under an id never used before."""
        if self._guardian is None:
            self._launch()
        self._alive.add(id)
        self._send(
            {
                "do": "start",
                "id": id,
                "argv": command.argv,
                "env": {**command.env, MARK: self._mark},
                "cwd": command.cwd,
                "log": str(command.log),
            }
        )

    def terminate(self, id: str) -> None:
        """SIGTERM to the main process. Nothing happens to one that has ended."""
        self._send({"do": "terminate", "id": id})

    def kill(self, id: str) -> None:
        """SIGKILL to the main process and all its descendants."""
        self._send({"do": "kill", "id": id})

    def flush(self) -> None:
        """Send what can be sent now."""
        try:
            while self._out and self._socket is not None:
                self._out = self._out[self._socket.send(self._out) :]
        except BlockingIOError:
            pass
        except OSError:
            self._out = b""  # The guardian is gone, which `receive` will find.

    def receive(self) -> list[Started | Exited]:
        """What happened since the last call, in order. A guardian that died ends all it had."""
        if self._socket is None:
            return []
        over = False
        try:
            while data := self._socket.recv(1 << 18):
                self._in += data
            over = True
        except BlockingIOError:
            pass
        except OSError:
            over = True
        *lines, self._in = self._in.split(b"\n")
        events = [self._event(json.loads(line)) for line in lines]
        return events + self._lost() if over else events

    def close(self) -> None:
        """End all that runs and wait until it is gone."""
        if self._guardian is None:
            return
        assert self._socket is not None
        self._socket.close()
        try:
            self._guardian.wait(3 * _PATIENCE)
        except subprocess.TimeoutExpired:
            self._guardian.kill()
            self._guardian.wait()
            self._sweep()
        self._forget()

    def _launch(self) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            self._guardian = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    str(Path(__file__).with_name("guardian.py")),
                    str(theirs.fileno()),
                    str(os.getpid()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # Ctrl-C at a terminal is for us to answer.
                start_new_session=True,
            )
        self._socket = ours

    def _send(self, order: Mapping[str, Any]) -> None:
        if self._socket is not None:
            self._out += json.dumps(order).encode() + b"\n"
            self.flush()

    def _event(self, fact: Mapping[str, Any]) -> Started | Exited:
        if fact["event"] == "started":
            return Started(fact["id"], fact["pid"], fact["at"])
        self._alive.discard(fact["id"])
        return Exited(fact["id"], fact["code"], fact["signal"], fact["at"], fact["error"])

    def _lost(self) -> list[Started | Exited]:
        assert self._guardian is not None
        self._guardian.kill()
        self._guardian.wait()
        self._sweep()
        lost = [
            Exited(id, 137, signal.SIGKILL, time.monotonic(), "the guardian process was killed", lost=True)
            for id in sorted(self._alive)
        ]
        self._forget()
        return list(lost)

    def _forget(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._guardian, self._socket = None, None
        self._alive.clear()
        self._in = self._out = b""

    def _sweep(self) -> None:
        """Wait until nothing with our mark is left. The keepers do the work; who lost its keeper is killed here."""
        until = time.monotonic() + _PATIENCE
        mark = f"{MARK}={self._mark}".encode()
        while (left := _marked(mark)) and time.monotonic() < until:
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)


def _marked(mark: bytes) -> list[int]:
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            # A zombie has no environment, and another user's process is not ours.
            with contextlib.suppress(OSError):
                if mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
    return found
