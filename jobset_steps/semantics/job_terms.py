"""The terms of one child Job: its spec with the API server's defaults, in the form that decisions read.

Defaults are those of batch/v1 in Kubernetes 1.34 after those of JobSet's webhook (Indexed, OnFailure).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobset_steps.spec.job import JobSpec, JobSuccessPolicy, PodFailurePolicy

__all__ = ["UNLIMITED", "JobTerms"]

UNLIMITED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class JobTerms:
    """What decides about a Job. `completions` None is a work queue: any success and nothing left running completes it.

    `replace_failed_only` is podReplacementPolicy Failed, which a podFailurePolicy implies: a pod being deleted is
    neither failed nor replaced before it has ended. `kubelet_restarts` is restartPolicy OnFailure.
    """

    name: str
    namespace: str = "default"
    parallelism: int = 1
    completions: int | None = 1
    indexed: bool = True
    backoff_limit: int = 6
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: JobSuccessPolicy | None = None
    active_deadline: float | None = None
    replace_failed_only: bool = False
    kubelet_restarts: bool = False
    ttl: float | None = None

    @classmethod
    def of(cls, spec: JobSpec, *, name: str, namespace: str = "default") -> JobTerms:
        """The terms of the Job `name` with this spec."""
        completions = spec.completions
        if completions is None and spec.parallelism is None:
            completions = 1
        backoff_limit = spec.backoff_limit
        if backoff_limit is None:
            backoff_limit = 6 if spec.backoff_limit_per_index is None else UNLIMITED
        restart_policy = (spec.template.get("spec") or {}).get("restartPolicy")
        return cls(
            name=name,
            namespace=namespace,
            parallelism=1 if spec.parallelism is None else spec.parallelism,
            completions=completions,
            indexed=spec.completion_mode != "NonIndexed",
            backoff_limit=backoff_limit,
            backoff_limit_per_index=spec.backoff_limit_per_index,
            max_failed_indexes=spec.max_failed_indexes,
            pod_failure_policy=spec.pod_failure_policy,
            success_policy=spec.success_policy,
            active_deadline=spec.active_deadline_seconds,
            replace_failed_only=spec.pod_failure_policy is not None
            or spec.pod_replacement_policy == "Failed",
            kubelet_restarts=restart_policy in (None, "", "OnFailure"),
            ttl=spec.ttl_seconds_after_finished,
        )

    @property
    def pods_at_once(self) -> int:
        """Pods that must be ready or have succeeded for JobSet to call the Job ready."""
        return self.parallelism if self.completions is None else min(self.parallelism, self.completions)
