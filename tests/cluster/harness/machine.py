"""What the test cluster needs of a machine: root, Linux, Go, and some Debian packages. Says what is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cluster.harness import versions

__all__ = ["CACHE", "Missing", "install", "missing", "require"]

CACHE = Path(os.environ.get("JOBSET_STEPS_TESTBED") or Path.home() / ".cache" / "jobset-steps-testbed")
"""Built binaries and the state of the running cluster."""

_PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "/bin/busybox": "busybox-static",
    "ip": "iproute2",
    "mount": "mount",
}


class Missing(Exception):
    """This machine lacks something; the message says what and how to get it."""


def missing() -> list[str]:
    """What is missing, one sentence each."""
    lacking = []
    if sys.platform != "linux" or os.geteuid() != 0:
        lacking.append(
            "The test cluster runs as root on Linux: run it in a virtual machine, or give a kubeconfig instead."
        )
    if (found := _go()) is None:
        wanted = ".".join(map(str, versions.GO))
        lacking.append(
            f"Go {wanted} or newer is needed to build the cluster: install it from your package manager or go.dev."
        )
    elif found < versions.GO:
        lacking.append(
            f"Go {'.'.join(map(str, found))} is too old: {'.'.join(map(str, versions.GO))} or newer is needed."
        )
    if packages := _packages():
        lacking.append(f"Debian packages are missing: apt-get install {' '.join(packages)}")
    return lacking


def install() -> None:
    """Install the missing Debian packages. Needs root."""
    if packages := _packages():
        print(f"Installing {' '.join(packages)} ...", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (
            ["apt-get", "update", "-q"],
            ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages],
        ):
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise Missing(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")


def require() -> None:
    """Raise Missing with all that is missing."""
    if lacking := missing():
        raise Missing("\n".join(lacking))


def _packages() -> list[str]:
    return [
        package
        for program, package in _PACKAGES.items()
        if not (Path(program).exists() or shutil.which(program))
    ]


def _go() -> tuple[int, int] | None:
    if shutil.which("go") is None:
        return None
    text = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True).stdout
    match = re.match(r"go(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None
