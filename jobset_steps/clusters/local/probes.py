"""Readiness probes of the two kinds that need no process in the container: a TCP connect and an HTTP GET.

A probe answers once, within its time limit; when to ask, and what follows, is the kubelet's.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Probe", "Prober", "probe_of"]


@dataclass(frozen=True, slots=True)
class Probe:
    """A readiness probe. Times in seconds; thresholds count answers in a row. `path` is None for a bare connect."""

    host: str
    port: int
    path: str | None
    headers: Mapping[str, str]
    secure: bool
    initial_delay: float
    period: float
    timeout: float
    successes: int
    failures: int

    def ask(self) -> bool:
        """Whether it succeeds now. Blocks for `timeout` seconds at most."""
        try:
            if self.path is None:
                with socket.create_connection((self.host, self.port), timeout=self.timeout):
                    return True
            return self._get(self.path)
        except (OSError, http.client.HTTPException):
            return False

    def _get(self, path: str) -> bool:
        # Like the kubelet, which does not check certificates of probes.
        connection = (
            http.client.HTTPSConnection(
                self.host,
                self.port,
                timeout=self.timeout,
                context=ssl._create_unverified_context(),
            )
            if self.secure
            else http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        )
        try:
            connection.request("GET", path, headers=dict(self.headers))
            return 200 <= connection.getresponse().status < 400
        finally:
            connection.close()


class Prober:
    """Asks a probe again and again, in a thread of its own, and tells each change between ready and not ready."""

    def __init__(self, probe: Probe, tell: Callable[[bool], None]) -> None:
        self._probe, self._tell = probe, tell
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="jobset-steps-probe", daemon=True).start()

    def close(self) -> None:
        """Stop asking; an answer under way is not waited for, and may still be told."""
        self._closed.set()

    def _run(self) -> None:
        ready, in_a_row, last = False, 0, False
        pause = self._probe.initial_delay
        while not self._closed.wait(pause):
            answer = self._probe.ask()
            in_a_row = in_a_row + 1 if answer == last else 1
            last, pause = answer, self._probe.period
            enough = self._probe.successes if answer else self._probe.failures
            if answer != ready and in_a_row >= enough and not self._closed.is_set():
                ready = answer
                self._tell(ready)


def probe_of(
    container: Mapping[str, Any], address: str, ports: Mapping[int, int], rewrite: Callable[[str], str]
) -> Probe | None:
    """The container's readiness probe, None if it has none of these kinds (it is ready while it runs then)."""
    spec = container.get("readinessProbe") or {}
    action = spec.get("httpGet") or spec.get("tcpSocket")
    if not action:
        return None
    named = {
        port["name"]: int(port["containerPort"]) for port in container.get("ports") or () if port.get("name")
    }
    stated = action.get("port")
    number = named.get(stated) if isinstance(stated, str) and not stated.isdigit() else int(stated)
    if number is None:
        return None
    return Probe(
        host=rewrite(str(action["host"])) if action.get("host") else address,
        port=ports.get(number, number),
        path=str(action.get("path") or "/") if "httpGet" in spec else None,
        headers={str(h["name"]): str(h["value"]) for h in action.get("httpHeaders") or ()},
        secure=action.get("scheme") == "HTTPS",
        initial_delay=float(spec.get("initialDelaySeconds") or 0),
        period=float(spec.get("periodSeconds") or 10),
        timeout=float(spec.get("timeoutSeconds") or 1),
        successes=int(spec.get("successThreshold") or 1),
        failures=int(spec.get("failureThreshold") or 3),
    )
