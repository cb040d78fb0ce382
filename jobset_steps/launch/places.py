"""Where a step can run, by the name people type: each place is opened by one function, imported when it is asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

from jobset_steps.clusters import Cluster
from jobset_steps.errors import BadInput

__all__ = ["PLACES", "open_cluster"]


def open_cluster(
    place: str,
    *,
    namespace: str | None = None,
    kubeconfig: str | None = None,
    notice: Callable[[str], None] | None = None,
) -> Cluster:
    """The cluster of that name. `notice` hears what the place cannot give a JobSet. Raises BadInput."""
    if place not in PLACES:
        raise BadInput(f"--on {place}: no such place; known: {', '.join(PLACES)}")
    return PLACES[place](namespace, kubeconfig, notice)


def _local(namespace: str | None, kubeconfig: str | None, notice: Callable[[str], None] | None) -> Cluster:
    from jobset_steps.clusters.local import LocalCluster, default_root

    if kubeconfig is not None:
        raise BadInput("--kubeconfig has no meaning on the local cluster; use --on kubernetes")
    root = default_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            pass
    except OSError as error:
        # Later it would look like an API server that is away, and be waited for.
        raise BadInput(
            f"{root}: the local cluster cannot keep its files there: {error.strerror}; set JOBSET_STEPS_HOME"
        ) from None
    return LocalCluster(namespace=namespace or "default", notice=notice)


def _kubernetes(
    namespace: str | None, kubeconfig: str | None, notice: Callable[[str], None] | None
) -> Cluster:
    from jobset_steps.clusters.kubernetes import KubernetesCluster

    return KubernetesCluster(namespace=namespace, kubeconfig=kubeconfig)


PLACES = {"local": _local, "kubernetes": _kubernetes}
