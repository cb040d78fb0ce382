"""What the API server makes of a JobSet before it stores it: defaults filled in, or a refusal.

The defaults are those of the CRD and of JobSet's webhook (0.11.1). Faults of a Job template's values are kept apart:
the webhook does not look there, and such a JobSet is stored, but its Jobs can never be created.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobset_steps.spec.check import check
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.jobset import (
    FailurePolicy,
    JobSet,
    Network,
    ReplicatedJob,
    StartupPolicy,
    SuccessPolicy,
)

__all__ = ["Admission", "admit", "with_api_defaults"]


@dataclass(frozen=True, slots=True)
class Admission:
    """`refused` is what the API server itself says no to; `impossible` are the faults of child Jobs and pods.

    `jobset` has the defaults; it is to be stored only if nothing is refused.
    """

    jobset: JobSet
    refused: tuple[Fault, ...] = ()
    impossible: tuple[Fault, ...] = ()

    def impossible_jobs(self) -> Mapping[str, str]:
        """By replicated job: why none of its Jobs can be created."""
        words: dict[str, list[str]] = {}
        for fault in self.impossible:
            number = fault.path.partition("replicatedJobs[")[2].partition("]")[0]
            if number.isdecimal():
                name = self.jobset.spec.replicated_jobs[int(number)].name
                words.setdefault(name, []).append(f"{fault.path.partition('.template.')[2]}: {fault.message}")
        return {name: "; ".join(each) for name, each in words.items()}


def admit(manifest: Mapping[str, Any]) -> Admission:
    """Judge a full camelCase manifest. Raises InvalidSpec where it has not the shape of a JobSet."""
    jobset = JobSet.from_dict(manifest)
    if not jobset.metadata.name:
        raise InvalidSpec([Fault("metadata.name", "required", "is required")])
    # What is waivable the API server accepts.
    faults = [fault for fault in check(jobset) if not fault.waivable]
    return Admission(
        with_api_defaults(jobset),
        refused=tuple(fault for fault in faults if not _is_of_child_job(fault)),
        impossible=tuple(fault for fault in faults if _is_of_child_job(fault)),
    )


def with_api_defaults(jobset: JobSet) -> JobSet:
    """The JobSet as the API server stores it. What the author wrote is never changed."""
    spec = jobset.spec
    network = spec.network or Network()
    update: dict[str, Any] = {
        "replicated_jobs": tuple(_replicated(job) for job in spec.replicated_jobs),
        "success_policy": spec.success_policy or SuccessPolicy(operator="All"),
        "startup_policy": spec.startup_policy or StartupPolicy(startup_policy_order="AnyOrder"),
        "network": network.model_copy(
            update={
                "enable_dns_hostnames": network.enable_dns_hostnames is not False,
                "publish_not_ready_addresses": network.publish_not_ready_addresses is not False,
            }
        ),
    }
    if spec.failure_policy is not None:
        update["failure_policy"] = _failure_policy(spec.failure_policy)
    return jobset.model_copy(update={"spec": spec.model_copy(update=update)})


def _replicated(job: ReplicatedJob) -> ReplicatedJob:
    spec = job.template.spec
    pod = dict(spec.template)
    pod_spec = dict(pod.get("spec") or {})
    pod_spec["restartPolicy"] = pod_spec.get("restartPolicy") or "OnFailure"
    pod["spec"] = pod_spec
    spec = spec.model_copy(update={"template": pod, "completion_mode": spec.completion_mode or "Indexed"})
    return job.model_copy(
        update={
            "replicas": 1 if job.replicas is None else job.replicas,
            "group_name": job.group_name or "default",
            "template": job.template.model_copy(update={"spec": spec}),
        }
    )


def _failure_policy(policy: FailurePolicy) -> FailurePolicy:
    rules = tuple(
        rule if rule.name else rule.model_copy(update={"name": f"failurePolicyRule{number}"})
        for number, rule in enumerate(policy.rules)
    )
    return policy.model_copy(
        update={
            "max_restarts": policy.max_restarts or 0,
            "restart_strategy": policy.restart_strategy or "Recreate",
            "rules": rules,
        }
    )


def _is_of_child_job(fault: Fault) -> bool:
    # Shapes are in the CRD's own schema, and unknown fields are refused by strict field validation.
    if fault.rule in ("type", "unknown-field"):
        return False
    return fault.path.startswith("spec.replicatedJobs[") and "].template." in fault.path
