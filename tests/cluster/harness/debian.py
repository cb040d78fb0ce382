"""Parts of Debian for pods: PyTorch, and Open MPI with ssh, with what they need and nothing else of Debian.

Debian's PyTorch runs on a CPU and speaks gloo; the package index of Python has builds for GPUs only, ten times as large.
Nothing is installed on this machine: packages are unpacked in the cache, and what an image holds is found by asking the linker.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.harness.machine import CACHE, Missing

__all__ = ["MPI", "TORCH", "Debian"]

_MACHINE = f"{os.uname().machine}-linux-gnu"
_FOLDERS = (
    "",
    *(f"/{_MACHINE}{folder}" for folder in ("", "/blas", "/lapack", "/openmpi/lib", "/pmix2/lib")),
)
_LIBRARIES = [f"{top}lib{folder}" for top in ("", "usr/") for folder in _FOLDERS]


@dataclass(frozen=True)
class Debian:
    """Python of Debian, and packages beside it: the programs (path in the image -> path in Debian) and whole folders."""

    name: str
    packages: tuple[str, ...]
    programs: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()

    def root(self) -> Path:
        """The packages, unpacked under this folder. Raises Missing where they cannot be had."""
        return _root(self.name, self.packages)

    def files(self) -> Iterator[tuple[Path, str]]:
        """(file or link here, its path in the image): interpreter, programs, folders, and the libraries they are linked with."""
        return _files(self.root(), self.programs, self.folders)


TORCH = Debian("torch", ("python3-torch", "python3-numpy"))
MPI = Debian(
    "mpi",
    ("python3-mpi4py", "openmpi-bin", "openssh-server", "openssh-client"),
    programs={
        "usr/bin/mpirun": "usr/bin/orterun",
        "usr/bin/orted": "usr/bin/orted",
        "usr/bin/ssh": "usr/bin/ssh",
        "usr/bin/ssh-keygen": "usr/bin/ssh-keygen",
        "usr/sbin/sshd": "usr/sbin/sshd",
        # Loaded by name, when a thread ends.
        f"usr/lib/{_MACHINE}/libgcc_s.so.1": f"lib/{_MACHINE}/libgcc_s.so.1",
    },
    folders=("etc/openmpi", "usr/share/openmpi", f"usr/lib/{_MACHINE}/openmpi", f"usr/lib/{_MACHINE}/pmix2"),
)


def _root(name: str, packages: tuple[str, ...]) -> Path:
    target = CACHE / name
    if target.exists():
        return target
    print(f"Fetching {' and '.join(packages)} from Debian ...", flush=True)
    fetched, beside = CACHE / f"{name}-packages", CACHE / f"{name}-new"
    for folder in (fetched, beside):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    (fetched / "partial").mkdir()
    nothing_installed = fetched / "status"
    nothing_installed.touch()
    options = {
        "Dir::State::status": nothing_installed,
        "Dir::Cache::archives": fetched,
        "Debug::NoLocking": 1,
    }
    fetch = ["apt-get", "install", "-y", "-q", "--download-only", "--no-install-recommends"]
    for option, value in options.items():
        fetch += ["-o", f"{option}={value}"]
    _run(["apt-get", "update", "-q"])
    _run([*fetch, *packages])
    for package in fetched.glob("*.deb"):
        _run(["dpkg-deb", "-x", str(package), str(beside)])
    shutil.rmtree(fetched)
    beside.rename(target)
    return target


def _files(top: Path, programs: Mapping[str, str], folders: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    interpreter = (top / "usr/bin/python3").resolve()
    linked = [interpreter]
    for name, source in programs.items():
        linked.append((top / source).resolve())
        yield (top / source).resolve(), name
    for folder in (f"usr/lib/{interpreter.name}", "usr/lib/python3/dist-packages", *folders):
        for place, _, names in os.walk(top / folder):
            for name in names:
                path = Path(place) / name
                if ".so" in path.suffixes and path.exists():
                    linked.append(path.resolve())
                    if path.is_symlink():  # Debian keeps PyTorch's libraries among the machine's
                        yield path.resolve(), f"usr/lib/{_MACHINE}/{Path(os.readlink(path)).name}"
                if path.suffix != ".pyc":
                    yield path, str(path.relative_to(top))
    yield interpreter, "usr/bin/python3"
    loader = next(path for folder in ("lib64", "lib") for path in (top / folder).glob("ld-linux-*"))
    yield loader.resolve(), str(loader.relative_to(top))
    for name in sorted(_needed(top, linked)):
        # Under their plain names, in a folder that the loader knows: no index of libraries is needed.
        yield Path(name).resolve(), f"usr/lib/{_MACHINE}/{Path(name).name}"


def _needed(top: Path, programs: list[Path]) -> set[str]:
    path = ":".join(str(top / folder) for folder in _LIBRARIES)
    done = subprocess.run(
        ["ldd", *map(str, programs)],
        env={**os.environ, "LD_LIBRARY_PATH": path},
        capture_output=True,
        text=True,
    )
    return {name for name in re.findall(r"=> (/\S+) \(0x", done.stdout) if name.startswith(f"{top}/")}


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
