"""Where a step can run, by the name people type: each place is opened by one function, imported when it is asked for."""

from __future__ import annotations

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
    from jobset_steps.clusters.local import LocalCluster

    if kubeconfig is not None:
        raise BadInput("--kubeconfig has no meaning on the local cluster; use --on kubernetes")
    return LocalCluster(namespace=namespace or "default", notice=notice)


def _kubernetes(
    namespace: str | None, kubeconfig: str | None, notice: Callable[[str], None] | None
) -> Cluster:
    from jobset_steps.clusters.kubernetes import KubernetesCluster

    return KubernetesCluster(namespace=namespace, kubeconfig=kubeconfig)


PLACES = {"local": _local, "kubernetes": _kubernetes}
