"""What the test cluster is made of, in one place. A change here builds anew and nothing else does."""

from __future__ import annotations

import hashlib
import json

__all__ = ["ARGO", "COREDNS", "ETCD", "GO", "JOBSET", "KUBERNETES", "KUEUE", "digest"]

GO = (1, 26)
"""The oldest Go that builds all of it."""
# The newest Kubernetes whose kubelet still runs under cgroup v1.
KUBERNETES = "1.34.4"
JOBSET = "0.11.1"
KUEUE = "0.17.0"
ARGO = "4.0.5"
ETCD = "3.7.3"
COREDNS = "1.15.0"


def digest() -> str:
    """Names the cache of these versions."""
    pinned = {name: value for name, value in globals().items() if name.isupper()}
    return hashlib.sha256(json.dumps(pinned, sort_keys=True).encode()).hexdigest()[:12]
