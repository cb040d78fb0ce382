"""A launcher that is a pod of a cluster takes from it what nobody told it: run, step, retry, owner, and why it ends."""

from __future__ import annotations

import os
from dataclasses import replace

from jobset_steps.clusters import Cluster
from jobset_steps.errors import ApiError
from jobset_steps.launch.host import Host
from jobset_steps.launch.launch import LaunchRequest
from jobset_steps.supervisor.plan import EngineAttempt

__all__ = ["in_a_pod", "placed"]


def in_a_pod() -> bool:
    """Whether this process runs in a pod of a Kubernetes cluster and was not sent to another by a kubeconfig."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and not os.environ.get("KUBECONFIG")


def placed(
    request: LaunchRequest, cluster: Cluster, *, told: bool = False
) -> tuple[LaunchRequest, Host | None]:
    """The request with what the pod says, and the host that can tell a cancel from an eviction.

    `told`: run and step were given by whoever started this process and stay. Where the pod cannot be read (no right to)
    nothing is taken from it and the host is None: a signal then counts as a person's.
    """
    from jobset_steps.clusters.kubernetes import KubernetesCluster

    if not isinstance(cluster, KubernetesCluster) or not in_a_pod():
        return request, None
    host = cluster.launcher_pod()
    try:
        place = host.place()
    except ApiError:
        return request, None
    if place.run and not told:
        request = replace(request, run=place.run, step=place.step)
    # An owner in another namespace would have the JobSet collected at once; a slot outlives the run that came first.
    owned = place.owner is not None and request.namespace in ("", host.namespace) and not request.slot
    engine = EngineAttempt(place.engine.launcher, place.engine.retry or request.engine.retry)
    return replace(request, engine=engine, owner=place.owner if owned else None), host
