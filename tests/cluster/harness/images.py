"""Images without a registry: OCI archives written here and imported into the cluster's containerd.

`tools` is busybox; `python` is the interpreter, the libraries and the package that the tests run with, at the same paths, so
that a pod runs exactly what was just tested; `torch` and `mpi` are parts of Debian with the project; `argoexec` is Argo's
executor. Layers are kept as files: where only the project has changed, its small layer is all that is written and imported.
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
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.cluster.harness import debian

__all__ = ["ARGOEXEC", "MPI", "PAUSE", "PYTHON", "TOOLS", "TORCH", "Image", "archive", "wanted"]

PAUSE, TOOLS, ARGOEXEC, PYTHON, TORCH, MPI = (
    f"testbed.local/{name}:1" for name in ("pause", "tools", "argoexec", "python", "torch", "mpi")
)

_BUSYBOX = Path("/bin/busybox")
_SKIPPED = re.compile(
    r"/(__pycache__|tests?|idlelib|ensurepip|turtledemo|lib2to3|config-[^/]*|nvidia|ruff|mypy|mypyc|pip|setuptools)(/|$)|\.(a|pyc)$"
)


@dataclass(frozen=True)
class Layer:
    """A part of a file system: a key that changes with its content, and what writes it."""

    key: str
    write: Callable[[_Tar], None]


@dataclass(frozen=True)
class Image:
    """An image: its layers from the bottom up, and what runs in it by default."""

    name: str
    layers: tuple[Layer, ...]
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


class _Tar:
    """A tar in the making; what is added twice is written once."""

    def __init__(self, path: Path) -> None:
        self._tar = tarfile.TarFile(path, mode="w")
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

    def close(self) -> None:
        self._tar.close()

    def _entry(self, path: str, kind: bytes, mode: int, target: str = "") -> None:
        name = path.lstrip("/")
        if name not in self._seen:
            self._seen.add(name)
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.linkname = kind, mode, target
            self._tar.addfile(info)


def wanted(bin_: Path, project: Path) -> tuple[Image, ...]:
    """Every image that the tests use."""
    argoexec = bin_ / "argoexec"
    packages, code = _packages(), [project / "jobset_steps", project / "pipelines"]
    tools = Layer(_key([_BUSYBOX]), _write_busybox)
    return (
        Image(PAUSE, (tools,), entrypoint=("/bin/sleep", "2147483647")),
        Image(TOOLS, (tools,), command=("sh",)),
        Image(
            ARGOEXEC,
            (tools, Layer(_key([argoexec]), lambda tar: tar.file("bin/argoexec", argoexec.read_bytes()))),
            entrypoint=("argoexec",),
        ),
        Image(
            PYTHON,
            (
                tools,
                Layer(_key(_all_files(packages)), lambda tar: _write_python(tar, packages, project)),
                Layer(_key(_all_files(code)), lambda tar: _copy_all(tar, code)),
            ),
            command=("python",),
        ),
        *(
            Image(
                name,
                (
                    tools,
                    Layer(_debian_key(part), partial(_write_debian, part=part, project=project)),
                    Layer(_key(_all_files(code)), lambda tar: _copy_all(tar, code)),
                ),
                command=("python",),
            )
            for name, part in ((TORCH, debian.TORCH), (MPI, debian.MPI))
        ),
    )


def _key(paths: Iterable[Path]) -> str:
    """Changes when a file is added, removed or written."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in sorted(paths):
        found = path.lstat()
        digest.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _debian_key(part: debian.Debian) -> str:
    return hashlib.sha256(f"{_key([Path(debian.__file__)])} {part}".encode()).hexdigest()


def _files(top: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(top, followlinks=False):
        yield from (path for name in names if not _SKIPPED.search(str(path := Path(folder) / name)))


def _all_files(tops: Iterable[Path]) -> Iterator[Path]:
    return (path for top in tops for path in _files(top))


def _packages() -> list[Path]:
    """The folders of the standard library and of what is installed."""
    packages = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    base = {
        Path(sysconfig.get_path(kind, vars={"base": sys.base_prefix})) for kind in ("stdlib", "platstdlib")
    }
    return sorted(packages | {path for path in base if path.name != "site-packages"})


def _write_busybox(layer: _Tar) -> None:
    """A root file system of busybox and its applets."""
    for folder in ("bin", "etc", "var", "var/run", "root", "home"):
        layer.directory(folder)
    layer.directory("tmp", 0o1777)
    layer.file("bin/busybox", _BUSYBOX.read_bytes())
    applets = subprocess.run([_BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for applet in applets:
        if applet != "busybox":
            layer.link(f"bin/{applet}", "busybox")
    layer.file(
        "etc/passwd",
        b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65532:65532::/home:/bin/sh\n"
        b"sshd:x:100:65534::/run/sshd:/bin/false\n",
        0o644,
    )


def _copy_all(layer: _Tar, tops: Iterable[Path]) -> None:
    for path in _all_files(tops):
        layer.copy(path)


def _write_python(layer: _Tar, packages: list[Path], project: Path) -> None:
    """This interpreter with its standard library and installed packages, at their own paths; it finds the project."""
    layer.file(f"{sysconfig.get_path('purelib')}/testbed.pth", f"{project}\n".encode(), 0o644)
    interpreter = Path(sys.executable)
    for path in (interpreter, Path(sys.prefix) / "pyvenv.cfg", Path(os.path.realpath(interpreter))):
        layer.copy(path)
    _copy_all(layer, packages)
    for script in Path(sys.prefix, "bin").glob("jobset-steps*"):
        layer.copy(script)
    for name in sorted({*_needs([interpreter]), *_libraries(packages)}):
        layer.copy(Path(name))
    # What a command line expects to find. A link would not do: Python finds its packages by the path it is called with.
    for name in ("python", "python3"):
        layer.file(f"usr/local/bin/{name}", f'#!/bin/sh\nexec {interpreter} "$@"\n'.encode())
    for script in Path(sys.prefix, "bin").glob("jobset-steps*"):
        layer.link(f"usr/local/bin/{script.name}", str(script))


def _write_debian(layer: _Tar, part: debian.Debian, project: Path) -> None:
    """Debian's interpreter with what is beside it, which finds the project, and the names that a command line expects."""
    for path, name in part.files():
        if path.is_symlink():
            layer.link(name, os.readlink(path))
        else:
            layer.file(name, path.read_bytes(), path.stat().st_mode & 0o777)
    layer.file("usr/lib/python3/dist-packages/testbed.pth", f"{project}\n".encode(), 0o644)
    for name in ("python", "python3", "torchrun"):
        module = "-m torch.distributed.run " if name == "torchrun" else ""
        layer.file(f"usr/local/bin/{name}", f'#!/bin/sh\nexec /usr/bin/python3 {module}"$@"\n'.encode())


def _libraries(tops: list[Path]) -> Iterator[str]:
    shared = [path for path in _all_files(tops) if ".so" in path.suffixes]
    for start in range(0, len(shared), 100):
        yield from _needs(shared[start : start + 100])


def _needs(programs: Iterable[Path]) -> list[str]:
    """Shared libraries that programs are linked with, the loader among them."""
    done = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True)
    return re.findall(r"(?:=> |^\s+)(/\S+) \(0x", done.stdout, re.MULTILINE)


def archive(image: Image, target: Path, layers: Path, present: Collection[str] = ()) -> None:
    """Write an image as an OCI archive for `ctr images import`; `layers` is where layers are kept by their key.

    Layers whose keys are `present` in the cluster's store already are named in it, but their content is left out.
    """
    with tarfile.open(target, mode="w") as tar:

        def add(path: str, data: bytes) -> None:
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

        def blob(data: bytes, media: str) -> dict[str, object]:
            digest = hashlib.sha256(data).hexdigest()
            add(f"blobs/sha256/{digest}", data)
            return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}

        def layer_blob(layer: Layer) -> dict[str, object]:
            path = _written(layer, layers)
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if layer.key not in present:
                tar.add(path, f"blobs/sha256/{digest}")
            media = "application/vnd.oci.image.layer.v1.tar"
            return {"mediaType": media, "digest": f"sha256:{digest}", "size": path.stat().st_size}

        add("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        written = [layer_blob(layer) for layer in image.layers]
        config = {
            "architecture": "amd64" if os.uname().machine == "x86_64" else "arm64",
            "os": "linux",
            "config": {
                "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "PYTHONUNBUFFERED=1", "HOME=/tmp"],
                "Cmd": image.command,
                "Entrypoint": image.entrypoint,
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
        entry["annotations"] = {
            "io.containerd.image.name": image.name,
            "org.opencontainers.image.ref.name": image.name,
        }
        add("index.json", json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode())


def _written(layer: Layer, folder: Path) -> Path:
    """The file of a layer, written where it is not there yet."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{layer.key}.tar"
    if not path.exists():
        beside = path.with_suffix(".new")
        tar = _Tar(beside)
        layer.write(tar)
        tar.close()
        beside.rename(path)
    return path
