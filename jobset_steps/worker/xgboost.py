"""XGBoost's own collective over the pods of one attempt: the leader hosts the tracker, every pod is a member.

It needs xgboost only where it is called. The tracker takes a port that the system picks and the leader announces: XGBoost
cannot bind a port that an earlier attempt has just left, and a restart would wait a minute for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from jobset_steps.worker.context import Context, context
from jobset_steps.worker.rendezvous import announce, ask, wait_for_coordinator

__all__ = ["xgboost_collective"]


@contextmanager
def xgboost_collective(timeout: float = 300.0, *, where: Context | None = None) -> Iterator[int]:
    """Join all pods in one collective and yield the rank, which is the pod's own; xgboost.train does the rest.

    `timeout`, in seconds, bounds each of: the coordinator's name, the leader's start, the joining of all, and any single
    collective call. Raises TimeoutError, and xgboost.core.XGBoostError where a member is lost.
    """
    from xgboost import collective
    from xgboost.core import XGBoostError
    from xgboost.tracker import RabitTracker

    here = context() if where is None else where
    address = wait_for_coordinator(timeout, where=here)
    with ExitStack() as open_:
        tracker = None
        if here.is_leader:
            # Sorted by task: XGBoost's ranks are then the pods' own, in every attempt.
            tracker = RabitTracker(
                n_workers=here.world_size, host_ip=address, port=0, sortby="task", timeout=int(timeout)
            )
            tracker.start()
            port = int(tracker.worker_args()["dmlc_tracker_port"])
            open_.enter_context(announce(here, address, {"tracker_port": port}))
        else:
            port = int(ask(here, address, timeout)["tracker_port"])
        collective.init(
            dmlc_communicator="rabit",
            dmlc_tracker_uri=address,
            dmlc_tracker_port=port,
            dmlc_task_id=f"{here.rank:08d}",
            dmlc_timeout=int(timeout),
            # The tracker is known to listen. More tries would only keep a pod whose leader is lost from ending, for 12 s.
            dmlc_retry=1,
        )
        try:
            yield collective.get_rank()
        except BaseException:
            # Not left without a word, or the process ends in a fault of its own instead of with its exit code.
            with suppress(XGBoostError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                collective.finalize()
            raise
        collective.finalize()
        if tracker is not None:
            tracker.wait_for(timeout=int(timeout))
