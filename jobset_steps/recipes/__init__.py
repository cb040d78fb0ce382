"""Recipes: functions that turn what an author knows (a script, a number of nodes) into a JobSet that trains.

Each returns a plain JobSet, or a SpecTemplate where it is given an output that only the pipeline will know. They build
specs and nothing else: whatever they set can be read in the result, and changed there.
"""

from jobset_steps.recipes import presets
from jobset_steps.recipes.ddp import ddp
from jobset_steps.recipes.jax import jax
from jobset_steps.recipes.leader_workers import Role, leader_workers
from jobset_steps.recipes.mpi import mpi
from jobset_steps.recipes.torchrun import torchrun
from jobset_steps.recipes.xgboost import xgboost

__all__ = ["Role", "ddp", "jax", "leader_workers", "mpi", "presets", "torchrun", "xgboost"]
