"""How the pods of one attempt find each other: the coordinator's name, and one port on which it tells where to go.

It opens nothing by itself. The coordinator listens on its own address and the JobSet's rendezvous port, never on every
interface: on one machine each pod has an address of its own.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from jobset_steps.worker.context import Context, MissingEnvironment, context
from jobset_steps.worker.entry import wait_for_name

__all__ = ["announce", "ask", "wait_for_coordinator"]


def wait_for_coordinator(
    timeout: float = 300.0,
    *,
    where: Context | None = None,
    resolve: Callable[..., Any] = socket.getaddrinfo,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """The coordinator's IP address, once its name resolves; TimeoutError after `timeout` seconds.

    A name that is not known at first is no error. `resolve`, `clock` and `sleep` stand in for those of the system.
    """
    here = context() if where is None else where
    if not here.coordinator:
        raise MissingEnvironment("JOBSET_STEPS_COORDINATOR is not set: the DNS name of the pod with rank 0")
    return wait_for_name(here.coordinator, timeout, resolve=resolve, clock=clock, sleep=sleep)


@contextmanager
def announce(here: Context, address: str, what: dict[str, Any]) -> Iterator[None]:
    """On the leader: tell whoever asks on the rendezvous port `what` (as JSON) while the block lasts.

    Raises OSError where the port is taken by another process. A port that an earlier attempt has just left is not taken.
    """
    said = json.dumps({"of": _attempt(here), **what}).encode() + b"\n"
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.create_server((address, _port(here)), family=family, backlog=1024)

    def serve() -> None:
        while True:
            try:
                asker, _ = server.accept()
            except OSError:
                return  # closed: the block has ended
            with asker, suppress(OSError):
                asker.settimeout(5)
                asker.sendall(said)

    threading.Thread(target=serve, daemon=True, name="announce").start()
    try:
        yield
    finally:
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        server.close()


def ask(here: Context, address: str, timeout: float) -> dict[str, Any]:
    """On the others: what the leader of this very attempt announces; TimeoutError after `timeout` seconds.

    A leader that does not listen yet is waited for, and one of an earlier attempt, still ending, is passed over.
    """
    end = time.monotonic() + timeout
    last = "nobody listens"
    while time.monotonic() < end:
        try:
            with socket.create_connection((address, _port(here)), timeout=5) as leader:
                told = json.loads(leader.makefile("rb").readline())
            if told["of"] == _attempt(here):
                return dict(told)
            last = f"{told['of']} answers"
        except (OSError, ValueError, KeyError, TypeError) as error:
            last = str(error) or type(error).__name__
        time.sleep(0.1)
    raise TimeoutError(
        f"no answer of the leader of {_attempt(here)} on {address}:{_port(here)} within {timeout:g} s: {last}"
    )


def _attempt(here: Context) -> str:
    return f"{here.jobset} attempt {here.attempt}"


def _port(here: Context) -> int:
    if not here.port:
        raise MissingEnvironment("JOBSET_STEPS_PORT is not set: the rendezvous port on the coordinator")
    return here.port
