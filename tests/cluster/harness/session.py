"""The one test cluster of this machine, wherever it is asked for."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.harness import build
from tests.cluster.harness.cluster import TestCluster
from tests.cluster.harness.machine import CACHE

__all__ = ["test_cluster"]


def test_cluster(*, build_first: bool) -> TestCluster:
    """The cluster in the cache directory; its binaries are built if asked for."""
    bin_ = build.build() if build_first else build.binaries()
    return TestCluster(CACHE / "state", bin_, Path(__file__).resolve().parents[3])
