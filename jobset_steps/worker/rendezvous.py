"""How the pods of one attempt find each other: the coordinator's name, and XGBoost's own collective over it.

It opens nothing by itself. The coordinator listens on its own address and the rendezvous port of the JobSet, never on
every interface: on one machine each pod has an address of its own.
"""

from __future__ import annotations

import socket
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jobset_steps.worker.context import Context, MissingEnvironment, context
from jobset_steps.worker.entry import wait_for_name

__all__ = ["wait_for_coordinator", "xgboost_collective"]


def wait_for_coordinator(
    timeout: float = 300.0,
    *,
    where: Context | None = None,
    resolve: Callable[..., Any] = socket.getaddrinfo,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """The coordinator's IP address, once its name resolves; TimeoutError after `timeout` seconds.

    A name that is not known at first is no error. `resolve`, `clock` and `sleep` stand in for those of the system.
    """
    here = context() if where is None else where
    if not here.coordinator:
        raise MissingEnvironment("JOBSET_STEPS_COORDINATOR is not set: the DNS name of the pod with rank 0")
    address: str = wait_for_name(here.coordinator, timeout, resolve=resolve, clock=clock, sleep=sleep)
    return address


@contextmanager
def xgboost_collective(timeout: float = 300.0, *, where: Context | None = None) -> Iterator[int]:
    """Join all pods in one XGBoost collective and yield the rank, which is the pod's own; xgboost.train does the rest.

    The leader hosts the tracker. `timeout`, in seconds, bounds each of: the coordinator's name, the tracker's start,
    the joining of all, and any single collective call. Raises TimeoutError, and xgboost.core.XGBoostError where a
    member is lost.
    """
    from xgboost import collective
    from xgboost.tracker import RabitTracker

    here = context() if where is None else where
    if not here.port:
        raise MissingEnvironment("JOBSET_STEPS_PORT is not set: the rendezvous port on the coordinator")
    address = wait_for_coordinator(timeout, where=here)
    tracker = None
    if here.is_leader:
        # Sorted by task: XGBoost's ranks are then the pods' own, in every attempt.
        tracker = RabitTracker(
            n_workers=here.world_size, host_ip=address, port=here.port, sortby="task", timeout=int(timeout)
        )
        tracker.start()
    member = {
        "dmlc_communicator": "rabit",
        "dmlc_tracker_uri": address,
        "dmlc_tracker_port": here.port,
        "dmlc_task_id": f"{here.rank:08d}",
        "dmlc_timeout": int(timeout),
    }
    _join(collective, member, timeout)
    try:
        yield collective.get_rank()
    finally:
        collective.finalize()
    # Only where all went well: after a lost member the tracker would wait for it, and the process is to end.
    if tracker is not None:
        tracker.wait_for(timeout=int(timeout))


def _join(collective: Any, member: dict[str, Any], timeout: float) -> None:
    """Join the collective, waiting for a tracker that does not listen yet.

    XGBoost's own retry doubles its pauses (a tracker 25 s late is joined after 43 s) and gives up after three, so it
    gets one try a call and is asked again each half second.
    """
    end = time.monotonic() + timeout
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # one for each refused connection
                collective.init(**member, dmlc_retry=1)
            return
        except Exception as error:
            if "connect to the tracker" not in str(error):
                raise
            if time.monotonic() >= end:
                raise TimeoutError(
                    f"no XGBoost tracker on {member['dmlc_tracker_uri']}:{member['dmlc_tracker_port']} "
                    f"within {timeout:g} s"
                ) from error
        time.sleep(0.5)
