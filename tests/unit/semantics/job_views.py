"""Plain data to test with: child Jobs in the states that decide, and JobSets as an author writes them."""

from __future__ import annotations

from typing import Any

from jobset_steps.observed import Condition, JobSetView, JobView
from jobset_steps.semantics.admission import with_api_defaults
from jobset_steps.spec.jobset import FailurePolicy, JobSet, JobSetSpec

BACKOFF = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
DISRUPTED = (
    "PodFailurePolicy",
    "Pod default/t-w-0-0-abcde has condition DisruptionTarget matching FailJob rule at index 0",
)
FATAL = (
    "PodFailurePolicy",
    "Container main for pod default/t-w-0-0-abcde failed with exit code 64 matching FailJob rule at index 1",
)


def policy(**fields: Any) -> FailurePolicy:
    return FailurePolicy.model_validate(fields)


def spec(*replicated: dict[str, Any], **fields: Any) -> JobSetSpec:
    jobset = JobSet.from_dict({"metadata": {"name": "t"}, "spec": {"replicatedJobs": replicated, **fields}})
    return with_api_defaults(jobset).spec


def replicated(name: str, replicas: int = 1, pods: int = 1, **fields: Any) -> dict[str, Any]:
    job = {
        "parallelism": pods,
        "completions": pods,
        "template": {"spec": {"containers": [{"name": "main", "image": "i"}]}},
    }
    return {"name": name, "replicas": replicas, "template": {"spec": job}, **fields}


def jobset(**fields: Any) -> JobSetView:
    return JobSetView("t", "default", "u", **fields)


def job(
    replicated_job: str = "w",
    index: int = 0,
    *,
    attempt: int = 0,
    failed: tuple[str, str] | None = None,
    complete: bool = False,
    at: float = 1.0,
    **fields: Any,
) -> JobView:
    name = f"t-{replicated_job}-{index}"
    conditions: tuple[Condition, ...] = ()
    if failed is not None:
        conditions = (Condition("Failed", "True", *failed, since=at),)
    if complete:
        conditions = (Condition("Complete", "True", "CompletionsReached", since=at),)
    uid = f"{name}/{attempt}"
    return JobView(name, uid, replicated_job, index, attempt, conditions=conditions, **fields)
