"""A local cluster for each test, and what to run a recipe on it as a step would: its marks on, watched to its end."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from jobset_steps.clusters.local import LocalCluster
from jobset_steps.observed import JobSetView, View
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.naming import instantiate

LIMIT = 90.0
"""Seconds that a training of a few rounds may take on a busy machine."""

Run = Callable[[JobSet], JobSetView]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster", notice=lambda _: None) as local:
        yield local


@pytest.fixture
def run(cluster: LocalCluster) -> Run:
    """`run(jobset)`: create it under the name boost-1, wait for its end, return its last View."""

    def to_the_end(jobset: JobSet) -> JobSetView:
        ended = threading.Event()
        last: list[View] = []

        def hear(seen: object) -> None:
            assert isinstance(seen, View), seen
            last[:] = [seen]
            if seen.jobset is not None and seen.jobset.terminal_state:
                ended.set()

        marks = {
            "jobset-steps/run": "run-1",
            "jobset-steps/step": "train",
            "jobset-steps/checkpoint-key": "run-1/train",
        }
        subscription = cluster.watch("boost-1", hear)
        cluster.create(instantiate(jobset, name="boost-1", namespace="default", labels={}, annotations=marks))
        assert ended.wait(LIMIT), (last, logs_of(cluster))
        subscription.close()
        assert last[0].jobset is not None
        return last[0].jobset

    return to_the_end


def logs_of(cluster: LocalCluster) -> dict[str, str]:
    """attempt/file -> what was written."""
    base = cluster.root / "jobsets" / "boost-1" / "logs"
    return {str(path.relative_to(base)): path.read_text() for path in sorted(base.rglob("*.log"))}


@pytest.fixture
def logs(cluster: LocalCluster) -> Callable[[], dict[str, str]]:
    return lambda: logs_of(cluster)


@pytest.fixture
def later() -> Iterator[Callable[[Callable[[], None]], None]]:
    """`later(what)`: do it beside the test, which waits for its end; what it raises fails the test."""
    with ThreadPoolExecutor() as pool:
        begun: list[Future[None]] = []
        yield lambda what: begun.append(pool.submit(what))
        for one in begun:
            one.result()


TORCH = "import torch.distributed as d; raise SystemExit(not d.is_available() or not d.is_gloo_available())"


@functools.cache
def with_torch() -> str | None:
    """An interpreter that has PyTorch with gloo: this one, the one named in JOBSET_STEPS_TORCH_PYTHON, or the system's."""
    for python in (sys.executable, os.environ.get("JOBSET_STEPS_TORCH_PYTHON"), "/usr/bin/python3"):
        if python and Path(python).exists():
            done = subprocess.run([python, "-c", TORCH], capture_output=True)
            if done.returncode == 0:
                return python
    return None


@pytest.fixture
def torch_env() -> dict[str, str]:
    """What pods need in their environment so that their `python3` has PyTorch, and this project."""
    python = with_torch()
    if python is None:
        pytest.skip(
            "no interpreter with PyTorch here (apt-get install python3-torch, or JOBSET_STEPS_TORCH_PYTHON=...); "
            "on the test cluster these trainings always run"
        )
    path = os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", os.defpath)])
    return {"PATH": path, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
