"""Images without a registry: OCI archives written here and imported into the cluster's containerd.

`tools` is busybox; `python` is the interpreter, the libraries and the package that the tests run with, at the same paths, so
that a pod runs exactly what was just tested; `argoexec` is Argo's executor.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

__all__ = ["ARGOEXEC", "PAUSE", "PYTHON", "TOOLS", "wanted"]

PAUSE, TOOLS, ARGOEXEC, PYTHON = (
    f"testbed.local/{name}:1" for name in ("pause", "tools", "argoexec", "python")
)

_BUSYBOX = Path("/bin/busybox")
_SKIPPED = re.compile(
    r"/(__pycache__|tests?|idlelib|ensurepip|turtledemo|lib2to3|config-[^/]*|nvidia|ruff|mypy|mypyc|pip|setuptools)(/|$)|\.(a|pyc)$"
)


class _Layer:
    """A tar in the making; what is added twice is written once."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._tar = tarfile.TarFile(fileobj=self._buffer, mode="w")
        self._seen: set[str] = set()

    def directory(self, path: str, mode: int = 0o755) -> None:
        self._entry(path, tarfile.DIRTYPE, mode)

    def link(self, path: str, target: str) -> None:
        self._entry(path, tarfile.SYMTYPE, 0o777, target)

    def file(self, path: str, data: bytes, mode: int = 0o755) -> None:
        name = path.lstrip("/")
        if name not in self._seen:
            self._seen.add(name)
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            self._tar.addfile(info, io.BytesIO(data))

    def copy(self, path: Path) -> None:
        """A file or link of this machine, at its own path; a link's target comes along."""
        if path.is_symlink():
            self.link(str(path), os.readlink(path))
            self.copy(path.parent / os.readlink(path))
        elif path.is_file():
            self.file(str(path), path.read_bytes(), path.stat().st_mode & 0o777)

    def data(self) -> bytes:
        self._tar.close()
        return self._buffer.getvalue()

    def _entry(self, path: str, kind: bytes, mode: int, target: str = "") -> None:
        name = path.lstrip("/")
        if name not in self._seen:
            self._seen.add(name)
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.linkname = kind, mode, target
            self._tar.addfile(info)


def wanted(bin_: Path, project: Path) -> dict[str, tuple[str, Callable[[Path], None]]]:
    """Every image by name: a key that changes with its content, and what writes its archive."""
    argoexec = bin_ / "argoexec"
    small = _key([_BUSYBOX])

    def simple(name: str, entrypoint: list[str], command: list[str]) -> Callable[[Path], None]:
        return lambda target: _archive(
            target, name, [_busybox_layer()], command=command, entrypoint=entrypoint
        )

    return {
        PAUSE: (small, simple(PAUSE, ["/bin/sleep", "2147483647"], [])),
        TOOLS: (small, simple(TOOLS, [], ["sh"])),
        ARGOEXEC: (
            _key([_BUSYBOX, argoexec]),
            lambda target: _archive(
                target,
                ARGOEXEC,
                [_busybox_layer(), _executor_layer(argoexec)],
                command=[],
                entrypoint=["argoexec"],
            ),
        ),
        PYTHON: (
            _key([Path(__file__), *(path for top in _tops(project) for path in _files(top))]),
            lambda target: _archive(
                target, PYTHON, [_busybox_layer(), _python_layer(project)], command=["python"], entrypoint=[]
            ),
        ),
    }


def _key(paths: Iterable[Path]) -> str:
    """Changes when a file is added, removed or written."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        found = path.lstat()
        digest.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _files(top: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(top, followlinks=False):
        yield from (path for name in names if not _SKIPPED.search(str(path := Path(folder) / name)))


def _tops(project: Path) -> list[Path]:
    """The folders of the Python image: libraries, installed packages, the project."""
    packages = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    base = {
        Path(sysconfig.get_path(kind, vars={"base": sys.base_prefix})) for kind in ("stdlib", "platstdlib")
    }
    libraries = sorted(packages | {path for path in base if path.name != "site-packages"})
    return [*libraries, project / "jobset_steps", project / "pipelines"]


def _busybox_layer() -> bytes:
    """A root file system of busybox and its applets."""
    layer = _Layer()
    for folder in ("bin", "etc", "var", "var/run", "root", "home"):
        layer.directory(folder)
    layer.directory("tmp", 0o1777)
    layer.file("bin/busybox", _BUSYBOX.read_bytes())
    applets = subprocess.run([_BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for applet in applets:
        if applet != "busybox":
            layer.link(f"bin/{applet}", "busybox")
    layer.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65532:65532::/home:/bin/sh\n", 0o644)
    return layer.data()


def _executor_layer(argoexec: Path) -> bytes:
    """Argo's executor."""
    layer = _Layer()
    layer.file("bin/argoexec", argoexec.read_bytes())
    return layer.data()


def _python_layer(project: Path) -> bytes:
    """This interpreter with its standard library and installed packages, and the project, at their own paths."""
    layer = _Layer()
    interpreter = Path(sys.executable)
    for path in (interpreter, Path(sys.prefix) / "pyvenv.cfg", Path(os.path.realpath(interpreter))):
        layer.copy(path)
    tops = _tops(project)
    for top in tops:
        for path in _files(top):
            layer.copy(path)
    for script in Path(sys.prefix, "bin").glob("jobset-steps*"):
        layer.copy(script)
    for name in sorted({*_needs([interpreter]), *_libraries(tops)}):
        layer.copy(Path(name))
    # What a command line expects to find. A link would not do: Python finds its packages by the path it is called with.
    for name in ("python", "python3"):
        layer.file(f"usr/local/bin/{name}", f'#!/bin/sh\nexec {interpreter} "$@"\n'.encode())
    for script in Path(sys.prefix, "bin").glob("jobset-steps*"):
        layer.link(f"usr/local/bin/{script.name}", str(script))
    return layer.data()


def _libraries(tops: list[Path]) -> Iterator[str]:
    shared = [path for top in tops for path in _files(top) if ".so" in path.suffixes]
    for start in range(0, len(shared), 100):
        yield from _needs(shared[start : start + 100])


def _needs(programs: Iterable[Path]) -> list[str]:
    """Shared libraries that programs are linked with, the loader among them."""
    done = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True)
    return re.findall(r"(?:=> |^\s+)(/\S+) \(0x", done.stdout, re.MULTILINE)


def _archive(
    target: Path, name: str, layers: list[bytes], *, command: list[str], entrypoint: list[str]
) -> None:
    """An OCI image of these layers as one archive, which `ctr images import` takes."""

    def digest(data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    with tarfile.open(target, mode="w") as tar:

        def add(path: str, data: bytes) -> None:
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

        def blob(data: bytes, media: str) -> dict[str, object]:
            add(f"blobs/sha256/{digest(data)}", data)
            return {"mediaType": media, "digest": f"sha256:{digest(data)}", "size": len(data)}

        add("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        written = [blob(layer, "application/vnd.oci.image.layer.v1.tar") for layer in layers]
        config = {
            "architecture": "amd64" if os.uname().machine == "x86_64" else "arm64",
            "os": "linux",
            "config": {
                "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "PYTHONUNBUFFERED=1", "HOME=/tmp"],
                "Cmd": command,
                "Entrypoint": entrypoint,
            },
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in written]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": blob(json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json"),
            "layers": written,
        }
        entry = blob(json.dumps(manifest).encode(), "application/vnd.oci.image.manifest.v1+json")
        entry["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
        add("index.json", json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode())
