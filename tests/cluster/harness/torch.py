"""PyTorch for pods: Debian's own build, which runs on a CPU and speaks gloo, with what it needs and nothing else of Debian.

The package index of Python has builds for GPUs only, ten times as large. Nothing is installed on this machine: packages are
unpacked in the cache, and what the image holds is found by asking the linker.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.harness.machine import CACHE, Missing

__all__ = ["files", "root"]

_PACKAGES = ("python3-torch", "python3-numpy")
_MACHINE = f"{os.uname().machine}-linux-gnu"
_FOLDERS = ("", f"/{_MACHINE}", f"/{_MACHINE}/blas", f"/{_MACHINE}/lapack")
_LIBRARIES = [f"{top}lib{folder}" for top in ("", "usr/") for folder in _FOLDERS]


def root() -> Path:
    """Debian's packages, unpacked under this folder. Raises Missing where they cannot be had."""
    target = CACHE / "torch"
    if target.exists():
        return target
    print(f"Fetching {' and '.join(_PACKAGES)} from Debian ...", flush=True)
    fetched, beside = CACHE / "torch-packages", CACHE / "torch-new"
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
    for name, value in options.items():
        fetch += ["-o", f"{name}={value}"]
    _run(["apt-get", "update", "-q"])
    _run([*fetch, *_PACKAGES])
    for package in fetched.glob("*.deb"):
        _run(["dpkg-deb", "-x", str(package), str(beside)])
    shutil.rmtree(fetched)
    beside.rename(target)
    return target


def files(top: Path) -> Iterator[tuple[Path, str]]:
    """(file or link here, its path in the image): the interpreter, its packages, and the libraries they are linked with."""
    interpreter = (top / "usr/bin/python3").resolve()
    programs = [interpreter]
    for folder in (f"usr/lib/{interpreter.name}", "usr/lib/python3/dist-packages"):
        for place, _, names in os.walk(top / folder):
            for name in names:
                path = Path(place) / name
                if ".so" in path.suffixes and path.exists():
                    programs.append(path.resolve())
                    if path.is_symlink():  # Debian keeps PyTorch's libraries among the machine's
                        yield path.resolve(), f"usr/lib/{_MACHINE}/{Path(os.readlink(path)).name}"
                if path.suffix != ".pyc":
                    yield path, str(path.relative_to(top))
    yield interpreter, "usr/bin/python3"
    loader = next(path for folder in ("lib64", "lib") for path in (top / folder).glob("ld-linux-*"))
    yield loader.resolve(), str(loader.relative_to(top))
    for name in sorted(_needed(top, programs)):
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
