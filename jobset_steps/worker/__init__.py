"""What training code calls inside a pod: who am I, where are the others, where do checkpoints go, how do I end.

Standard library only, and importable without pydantic, so that it costs a training image nothing. Everything it
says is in the environment too, which the recipes write: code that reads the environment itself needs none of this.
"""

from jobset_steps.worker.checkpoints import Checkpoint, Checkpoints, newest_complete_checkpoint
from jobset_steps.worker.context import Context, MissingEnvironment, context, is_leader
from jobset_steps.worker.entry import wait_for_name
from jobset_steps.worker.jax import jax_distributed
from jobset_steps.worker.metrics import report_metrics
from jobset_steps.worker.rendezvous import wait_for_coordinator
from jobset_steps.worker.termination import Terminated, Termination, terminating
from jobset_steps.worker.xgboost import xgboost_collective

__all__ = [
    "Checkpoint",
    "Checkpoints",
    "Context",
    "MissingEnvironment",
    "Terminated",
    "Termination",
    "context",
    "is_leader",
    "jax_distributed",
    "newest_complete_checkpoint",
    "report_metrics",
    "terminating",
    "wait_for_coordinator",
    "wait_for_name",
    "xgboost_collective",
]
