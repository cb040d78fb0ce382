"""Builds every binary of the test cluster from Go modules, once per set of versions. Cold on two cores: 15 to 20 minutes.

Each program is its own small module that requires the one it builds; a finished binary is moved into place, so that a build
that was broken off goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster.harness import versions
from tests.cluster.harness.machine import CACHE, Missing

__all__ = ["binaries", "build", "module_directory"]

_KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
_ARGO = "github.com/argoproj/argo-workflows/v4"
PROGRAMS = ("etcd", *_KUBERNETES, "kueue", "jobset-controller", "coredns", "workflow-controller", "argoexec")


def binaries() -> Path:
    """Where the binaries of these versions are."""
    return CACHE / versions.digest() / "bin"


def build() -> Path:
    """Build what is not built yet, and say so. Raises Missing with the compiler's words."""
    target = binaries()
    target.mkdir(parents=True, exist_ok=True)
    steps: tuple[tuple[tuple[str, ...], Callable[[Path], None]], ...] = (
        (("etcd",), lambda at: _simple(at, "etcd", f"go.etcd.io/etcd/server/v3@v{versions.ETCD}")),
        (_KUBERNETES, _kubernetes),
        # Kueue requires the JobSet wanted here; asked for through it, every module proxy has it.
        (("kueue",), lambda at: _simple(at, "kueue", f"sigs.k8s.io/kueue/cmd/kueue@v{versions.KUEUE}")),
        (
            ("jobset-controller",),
            lambda at: _simple(at, "jobset-controller", f"sigs.k8s.io/jobset@v{versions.JOBSET}"),
        ),
        (("coredns",), lambda at: _simple(at, "coredns", f"github.com/coredns/coredns@v{versions.COREDNS}")),
        (("workflow-controller", "argoexec"), _argo),
    )
    for programs, make in steps:
        if all((target / program).exists() for program in programs):
            continue
        print(f"Building {', '.join(programs)} (once; minutes) ...", flush=True)
        began = time.monotonic()
        at = CACHE / versions.digest() / "modules" / programs[0]
        at.mkdir(parents=True, exist_ok=True)
        make(at)
        print(f"  {time.monotonic() - began:.0f} s", flush=True)
    return target


def module_directory(program: str, module: str) -> Path:
    """Where the source of a module is that a program was built from: for its CRDs and webhook manifests."""
    at = CACHE / versions.digest() / "modules" / program
    if not (at / "go.mod").exists():
        at.mkdir(parents=True, exist_ok=True)
    text = _go(at, "mod", "download", "-json", module)
    return Path(json.loads(text)["Dir"])


def _simple(at: Path, program: str, package: str) -> None:
    _module(at)
    _go(at, "get", package)
    _compile(at, program, package.split("@")[0])


def _kubernetes(at: Path) -> None:
    """k8s.io/kubernetes names its libraries as v0.0.0: each is replaced by its matching release."""
    version = versions.KUBERNETES
    download = json.loads(_go(at, "mod", "download", "-json", f"k8s.io/kubernetes@v{version}"))
    required = re.findall(
        r"^\s*(k8s\.io/[a-z-]+) v0\.0\.0(?:\s|$)", Path(download["GoMod"]).read_text(), re.MULTILINE
    )
    replaced = [f"replace {name} => {name} v0.{version[2:]}" for name in sorted(set(required))]
    _module(at, "godebug default=go1.24", f"require k8s.io/kubernetes v{version}", *replaced)
    _tools(at, *(f"k8s.io/kubernetes/cmd/{program}" for program in _KUBERNETES))
    _go(at, "mod", "tidy")
    stamp = "k8s.io/component-base/version"
    minor = version.split(".")[1]
    flags = f"-X {stamp}.gitVersion=v{version} -X {stamp}.gitMajor=1 -X {stamp}.gitMinor={minor}"
    for program in _KUBERNETES:
        _compile(at, program, f"k8s.io/kubernetes/cmd/{program}", flags)


def _argo(at: Path) -> None:
    """argoexec has a source file that is a link, and module archives hold no links: it is put back in a vendored copy."""
    _module(at)
    packages = [f"{_ARGO}/cmd/{program}" for program in ("workflow-controller", "argoexec")]
    _go(at, "get", *(f"{package}@v{versions.ARGO}" for package in packages))
    _compile(at, "workflow-controller", packages[0])
    _tools(at, packages[1])
    _go(at, "mod", "vendor")
    linked = at / "vendor" / _ARGO / "workflow" / "executor" / "osspecific"
    shutil.copy(linked / "signal_darwin.go", linked / "signal_linux.go")
    _compile(at, "argoexec", packages[1], vendored=True)


def _module(at: Path, *lines: str) -> None:
    shutil.rmtree(at / "vendor", ignore_errors=True)
    for name in ("go.sum", "tools.go"):
        (at / name).unlink(missing_ok=True)
    go = ".".join(map(str, versions.GO))
    (at / "go.mod").write_text("\n".join((f"module testbed/{at.name}", "", f"go {go}", *lines)) + "\n")


def _tools(at: Path, *packages: str) -> None:
    imports = "".join(f'\t_ "{package}"\n' for package in packages)
    (at / "tools.go").write_text(f"//go:build tools\n\npackage tools\n\nimport (\n{imports})\n")


def _compile(at: Path, program: str, package: str, flags: str = "", *, vendored: bool = False) -> None:
    target = binaries() / program
    if target.exists():
        return
    beside = target.with_suffix(".part")
    mode = ["-mod=vendor"] if vendored else []
    _go(at, "build", *mode, "-ldflags", f"-s -w {flags}", "-o", str(beside), package)
    beside.rename(target)


def _go(at: Path, *arguments: str) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0"}
    environment.pop("GOFLAGS", None)
    done = subprocess.run(["go", *arguments], cwd=at, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"go {' '.join(arguments[:3])} failed in {at}:\n{done.stderr[-3000:]}")
    return done.stdout
