"""Addresses and ports of this machine that no other local cluster uses, whichever process it runs in.

A claim is an abstract Unix socket: machine-wide like the loopback addresses themselves (both belong to the network
namespace), taken atomically, and given back by the kernel when its process ends, however it ends.
"""

from __future__ import annotations

import errno
import random
import socket
import sys
from collections import deque
from pathlib import Path

__all__ = ["Addresses", "NoneLeft", "Port", "draw_port", "has_own_addresses"]

_LINUX = sys.platform.startswith("linux")
# 127.0.0.1, 127.0.1.1 and 127.0.0.53 are in use on common systems; the middle of the range is not.
_FIRST, _LAST = 64, 191
_LOWEST_PORT = 10_000


class NoneLeft(Exception):
    """No address or port could be had."""


def has_own_addresses() -> bool:
    """Whether each pod can have a loopback address of its own here: yes on Linux, elsewhere only 127.0.0.1 exists."""
    return _LINUX and _bindable("127.64.0.1", 0)


class Addresses:
    """Loopback addresses, 254 at a time. Where there is only 127.0.0.1, that one for everybody."""

    def __init__(self) -> None:
        self._own = has_own_addresses()
        self._claims: list[socket.socket] = []
        self._free: deque[str] = deque()

    def take(self) -> str:
        """An address that nobody has; one given back comes again as late as possible. Raises NoneLeft."""
        if not self._own:
            return "127.0.0.1"
        if not self._free:
            self._claim_block()
        return self._free.popleft()

    def give_back(self, address: str) -> None:
        """Nothing runs at this address any more."""
        if self._own:
            self._free.append(address)

    def close(self) -> None:
        """Give all back."""
        for claim in self._claims:
            claim.close()
        self._claims.clear()
        self._free.clear()

    def _claim_block(self) -> None:
        blocks = [(second, third) for second in range(_FIRST, _LAST + 1) for third in range(256)]
        random.shuffle(blocks)
        for second, third in blocks:
            if (claim := _claim(f"net/127.{second}.{third}")) is not None:
                self._claims.append(claim)
                self._free.extend(f"127.{second}.{third}.{last}" for last in range(1, 255))
                return
        raise NoneLeft("all loopback addresses of this machine are taken by local clusters")


class Port:
    """A port claimed among local clusters and free when it was drawn."""

    def __init__(self, number: int, claim: socket.socket | None) -> None:
        self.number = number
        self._claim = claim

    def close(self) -> None:
        """Give it back."""
        if self._claim is not None:
            self._claim.close()


def draw_port() -> Port:
    """A port that nothing listens on, at any address of this machine. Raises NoneLeft.

    It lies below the range from which the kernel takes the ports of outgoing connections.
    """
    for _ in range(1000):
        number = random.randrange(_LOWEST_PORT, _ephemeral_start())
        claim = _claim(f"port/{number}")
        if _LINUX and claim is None:
            continue
        # The wildcard address can only be bound where no single address has the port.
        if _bindable("0.0.0.0", number) and _bindable("::", number):
            return Port(number, claim)
        if claim is not None:
            claim.close()
    raise NoneLeft("no free port found in 1000 draws")


def _ephemeral_start() -> int:
    try:
        return max(
            int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]), _LOWEST_PORT + 1000
        )
    except (OSError, ValueError):
        return 32768


def _claim(what: str) -> socket.socket | None:
    if not _LINUX:
        return None
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0jobset-steps/{what}")
    except OSError:
        claim.close()
        return None
    return claim


def _bindable(address: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, port))
    except OSError as error:
        # No IPv6 here is no clash.
        return family == socket.AF_INET6 and error.errno != errno.EADDRINUSE
    return True
