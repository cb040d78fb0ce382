"""Joins the pods of one attempt under jax.distributed: this pod is one process, and its place says which.

It needs jax only where it is called, and asks no API server: JAX's own detection in Kubernetes wants the rights to read
pods and Jobs, and knows the processes of one Job only.
"""

from __future__ import annotations

from jobset_steps.worker.context import Context, context
from jobset_steps.worker.rendezvous import wait_for_coordinator

__all__ = ["jax_distributed"]


def jax_distributed(timeout: float = 300.0, *, where: Context | None = None) -> int:
    """Call jax.distributed.initialize with this pod's place, and return the process's number, which is the pod's rank.

    Before any other use of JAX, which is 0.4.38 or newer. `timeout`, in seconds, bounds the coordinator's name, and then
    the joining of all.
    Raises TimeoutError, and RuntimeError where not all joined in time.
    """
    import jax

    here = context() if where is None else where
    wait_for_coordinator(timeout, where=here)
    jax.distributed.initialize(
        coordinator_address=f"{here.coordinator}:{here.port}",
        num_processes=here.world_size,
        process_id=here.rank,
        cluster_detection_method="deactivate",
        initialization_timeout=int(timeout),
    )
    return here.rank
