"""This machine as its pods see it: its name, its Python, its capacity, and the environment an image would set.

A pod gets no other variable of the shell that started it, as on a cluster: what it needs is stated in its spec.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

__all__ = ["Machine", "base_env", "this_machine"]

_PASSED_ON = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH",
     "VIRTUAL_ENV", "CUDA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY",
     "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Machine:
    """`capacity` is what resourceFieldRef limits default to; `external` gives variables that only a cluster has."""

    node: str
    python: str
    cwd: str
    base_env: Mapping[str, str]
    capacity: Mapping[str, Decimal]
    external: Callable[[str], str | None]


def base_env(environ: Mapping[str, str], python: str) -> dict[str, str]:
    """What a pod's environment starts from: the machine's own settings, and the running Python first in PATH."""
    env = {key: value for key, value in environ.items() if key in _PASSED_ON or key.startswith("LC_")}
    home = str(Path(python).parent)
    rest = [part for part in env.get("PATH", os.defpath).split(os.pathsep) if part != home]
    env["PATH"] = os.pathsep.join([home, *rest])
    if sys.platform.startswith("linux"):
        # The pods' addresses are the loopback device's; what asks for the host's own name finds another one.
        env |= dict.fromkeys(("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"), "lo")
    return env


def this_machine() -> Machine:
    """The machine, and the directory and environment of the calling process."""
    return Machine(
        node=platform.node() or "localhost",
        python=sys.executable,
        cwd=str(Path.cwd()),
        base_env=base_env(os.environ, sys.executable),
        capacity={
            "cpu": Decimal(_cpus()),
            "memory": Decimal(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        },
        external=os.environ.get,
    )


def _cpus() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
