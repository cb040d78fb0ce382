"""Distributed training as one step of a pipeline: the public names, and nothing else.

Names are imported on first use, so that `from jobset_steps import JobSet` stays as cheap as pydantic itself.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from jobset_steps.argo.hera import JobSetStep as JobSetStep
    from jobset_steps.errors import ApiError as ApiError
    from jobset_steps.errors import BadInput as BadInput
    from jobset_steps.errors import StepError as StepError
    from jobset_steps.kfp import jobset_step as jobset_step
    from jobset_steps.outcome import Outcome as Outcome
    from jobset_steps.outcome import Verdict as Verdict
    from jobset_steps.recipes import Role as Role
    from jobset_steps.recipes import ddp as ddp
    from jobset_steps.recipes import jax as jax
    from jobset_steps.recipes import leader_workers as leader_workers
    from jobset_steps.recipes import mpi as mpi
    from jobset_steps.recipes import presets as presets
    from jobset_steps.recipes import torchrun as torchrun
    from jobset_steps.recipes import xgboost as xgboost
    from jobset_steps.spec.budgets import Budgets as Budgets
    from jobset_steps.spec.fault import Fault as Fault
    from jobset_steps.spec.fault import InvalidSpec as InvalidSpec
    from jobset_steps.spec.jobset import FailurePolicy as FailurePolicy
    from jobset_steps.spec.jobset import FailurePolicyRule as FailurePolicyRule
    from jobset_steps.spec.jobset import JobSet as JobSet
    from jobset_steps.spec.jobset import ReplicatedJob as ReplicatedJob
    from jobset_steps.spec.jobset import SuccessPolicy as SuccessPolicy
    from jobset_steps.spec.template import SpecTemplate as SpecTemplate

_HOME = {
    "ApiError": "errors",
    "BadInput": "errors",
    "Budgets": "spec.budgets",
    "FailurePolicy": "spec.jobset",
    "FailurePolicyRule": "spec.jobset",
    "Fault": "spec.fault",
    "InvalidSpec": "spec.fault",
    "JobSet": "spec.jobset",
    "JobSetStep": "argo.hera",
    "Outcome": "outcome",
    "ReplicatedJob": "spec.jobset",
    "Role": "recipes",
    "SpecTemplate": "spec.template",
    "StepError": "errors",
    "SuccessPolicy": "spec.jobset",
    "Verdict": "outcome",
    "ddp": "recipes",
    "jobset_step": "kfp",
    "jax": "recipes",
    "leader_workers": "recipes",
    "mpi": "recipes",
    "presets": "recipes",
    "torchrun": "recipes",
    "xgboost": "recipes",
}

__all__ = [*sorted(_HOME), "__version__"]  # noqa: PLE0604  (the names are strings)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
