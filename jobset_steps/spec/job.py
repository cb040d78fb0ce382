"""The child Job as a JobSet's template holds it: every field of a Job's spec, typed; the pod template as plain data.

A pod template is given as a dict, a model of the `kubernetes` client or one of Hera, and kept as the API's own JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from jobset_steps.spec.model import Bool, Int, Int32, Labels, Model, Str, Texts

__all__ = [
    "JobSpec",
    "JobSuccessPolicy",
    "JobTemplate",
    "OnExitCodes",
    "OnPodCondition",
    "PodFailurePolicy",
    "PodFailurePolicyRule",
    "SuccessPolicyRule",
    "TemplateMeta",
    "plain",
]


def plain(value: Any) -> Any:
    """JSON-like data of a value that may hold models of the `kubernetes` client or of Hera. Unset fields are dropped."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "attribute_map") and hasattr(value, "openapi_types"):  # kubernetes client model
        names = value.attribute_map
        return {
            names[attr]: plain(getattr(value, attr))
            for attr in value.openapi_types
            if getattr(value, attr) is not None
        }
    if hasattr(value, "model_dump"):  # Hera model (pydantic 2)
        return plain(value.model_dump(mode="json", by_alias=True, exclude_none=True))
    return value


class TemplateMeta(Model):
    """Metadata of a template. Only labels and annotations reach the Jobs."""

    name: Str | None = None
    namespace: Str | None = None
    labels: Labels | None = None
    annotations: Labels | None = None
    finalizers: Texts = ()
    creation_timestamp: None = None


class OnExitCodes(Model):
    """Exit codes of a container that a rule answers. `container_name` None: any container."""

    container_name: Str | None = None
    operator: Str = ""
    values: tuple[Int32, ...] = ()


class OnPodCondition(Model):
    """A pod condition that a rule answers."""

    type: Str = ""
    status: Str = "True"


class PodFailurePolicyRule(Model):
    """One rule: exactly one of `on_exit_codes` and `on_pod_conditions`."""

    action: Str = ""
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: tuple[OnPodCondition, ...] = ()


class PodFailurePolicy(Model):
    """Rules in order; the first that matches a failed pod answers it."""

    rules: tuple[PodFailurePolicyRule, ...] = ()


class SuccessPolicyRule(Model):
    """At least one of `succeeded_indexes` ("0,2-4") and `succeeded_count`."""

    succeeded_indexes: Str | None = None
    succeeded_count: Int32 | None = None


class JobSuccessPolicy(Model):
    """When a Job succeeds before all its indexes have."""

    rules: tuple[SuccessPolicyRule, ...] = ()


class JobSpec(Model):
    """A Job's spec (batch/v1, Kubernetes 1.34)."""

    parallelism: Int32 | None = None
    completions: Int32 | None = None
    completion_mode: Str | None = None
    active_deadline_seconds: Int | None = None
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: JobSuccessPolicy | None = None
    pod_replacement_policy: Str | None = None
    ttl_seconds_after_finished: Int32 | None = None
    suspend: Bool | None = None
    managed_by: Str | None = None
    manual_selector: Bool | None = None
    selector: dict[str, Any] | None = None
    template: Annotated[dict[str, Any], BeforeValidator(plain)]


class JobTemplate(Model):
    """metadata and spec of the child Jobs of one replicated job."""

    metadata: TemplateMeta | None = None
    spec: JobSpec
