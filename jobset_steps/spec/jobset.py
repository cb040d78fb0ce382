"""JobSet v1alpha2 (jobset.x-k8s.io), every field, under the API's own names. Models hold; `check` judges.

Field by field as in JobSet 0.11.1. YAML and JSON round trip without loss. What was read along from a cluster is dropped: a
status is the controller's and a uid the server's, not the author's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.job import JobTemplate, plain
from jobset_steps.spec.model import Bool, Int, Int32, Labels, Model, Str, Texts
from jobset_steps.spec.parse import shape_faults
from jobset_steps.spec.resilience import TERMINATED

__all__ = [
    "Coordinator",
    "DependsOn",
    "FailurePolicy",
    "FailurePolicyRule",
    "JobSet",
    "JobSetSpec",
    "Metadata",
    "Network",
    "ReplicatedJob",
    "RetentionPolicy",
    "StartupPolicy",
    "SuccessPolicy",
    "VolumeClaimPolicy",
]

# How the Job controller words the end of a Job by its podFailurePolicy (Kubernetes 1.34).
DISRUPTED = "has condition DisruptionTarget matching FailJob rule"
FATAL = "failed with exit code [0-9]+ matching FailJob rule"
RECLAIMED = f"failed with exit code {TERMINATED} matching FailJob rule"


class Metadata(Model):
    """Metadata of a JobSet, as far as an author writes it."""

    name: Str | None = None
    generate_name: Str | None = None
    namespace: Str | None = None
    labels: Labels | None = None
    annotations: Labels | None = None
    finalizers: Texts = ()
    owner_references: tuple[dict[str, Any], ...] = ()


class DependsOn(Model):
    """Start only once an earlier replicated job is "Ready" or "Complete"."""

    name: Str = ""
    status: Literal["Ready", "Complete"]


class ReplicatedJob(Model):
    """`replicas` child Jobs of one template. None means the API's default, 1."""

    name: Str = ""
    group_name: Str | None = None
    replicas: Int32 | None = None
    template: JobTemplate
    depends_on: tuple[DependsOn, ...] = ()


class Network(Model):
    """The headless service that gives pods their names."""

    enable_dns_hostnames: Bool | None = Field(default=None, alias="enableDNSHostnames")
    subdomain: Str | None = None
    publish_not_ready_addresses: Bool | None = None


class SuccessPolicy(Model):
    """`All` or `Any` child Jobs of the targets (none named: of all replicated jobs) must succeed."""

    operator: Literal["All", "Any"]
    target_replicated_jobs: Texts = ()


class FailurePolicyRule(Model):
    """One rule: its action answers a failed child Job that reasons, message patterns (RE2) and targets match."""

    name: Str | None = None
    action: Literal[
        "FailJobSet",
        "RestartJobSet",
        "RestartJobSetAndIgnoreMaxRestarts",
        "RestartJob",
        "RestartJobAndIgnoreMaxRestarts",
    ]
    on_job_failure_reasons: Texts = ()
    on_job_failure_message_patterns: Texts = ()
    target_replicated_jobs: Texts = ()


class FailurePolicy(Model):
    """What a failed child Job does to the JobSet. Without a policy the first failure ends it."""

    max_restarts: Int32 | None = None
    restart_strategy: Literal["Recreate", "BlockingRecreate", "InPlaceRestart"] | None = None
    rules: tuple[FailurePolicyRule, ...] = ()

    @classmethod
    def resilient(cls, max_restarts: int = 3) -> FailurePolicy:
        """Disruptions restart for free, fatal exit codes of the training fail at once, whatever else fails counts.

        Needs the child Jobs to fail by the rules of `spec.resilience.pod_failure_policy`, which the recipes set: both
        ends of a Job have the reason PodFailurePolicy, so they are told apart by message.
        """
        return cls._of(
            max_restarts,
            _by_message("disruption", "RestartJobSetAndIgnoreMaxRestarts", DISRUPTED),
            _by_message("fatalExitCode", "FailJobSet", FATAL),
        )

    @classmethod
    def spot(cls, max_restarts: int = 10) -> FailurePolicy:
        """For machines that may be taken away: as `resilient`, but an end by SIGTERM restarts for free as well.

        A machine that shuts down may end its containers before anybody says that the pod is disrupted: exit code 143 is
        all there is to see. One that is gone without notice is seen first by the pods around it, which crash; that is why
        more counted restarts are allowed. Needs `spec.resilience.pod_failure_policy(reclaimed=True)` in the child Jobs,
        which the recipes set with this policy. Keep checkpoints close together: a notice is 15 to 120 seconds.
        """
        return cls._of(
            max_restarts,
            _by_message("disruption", "RestartJobSetAndIgnoreMaxRestarts", DISRUPTED),
            _by_message("reclaimed", "RestartJobSetAndIgnoreMaxRestarts", RECLAIMED),
            _by_message("fatalExitCode", "FailJobSet", FATAL),
        )

    @classmethod
    def fail_fast(cls) -> FailurePolicy:
        """The first failure ends the JobSet, whatever it was."""
        return cls._of(0, {"name": "failFast", "action": "FailJobSet"})

    @property
    def tells_reclaimed(self) -> bool:
        """Whether a rule of it answers an end by SIGTERM, told apart by the words of `RECLAIMED`."""
        return any(RECLAIMED in rule.on_job_failure_message_patterns for rule in self.rules)

    @classmethod
    def _of(cls, max_restarts: int, *rules: dict[str, Any]) -> FailurePolicy:
        return cls.model_validate({"maxRestarts": max_restarts, "rules": rules})


def _by_message(name: str, action: str, pattern: str) -> dict[str, Any]:
    """A rule for child Jobs that their podFailurePolicy ended, in the words of `pattern`."""
    return {
        "name": name,
        "action": action,
        "onJobFailureReasons": ("PodFailurePolicy",),
        "onJobFailureMessagePatterns": (pattern,),
    }


class StartupPolicy(Model):
    """The order in which replicated jobs start."""

    startup_policy_order: Literal["AnyOrder", "InOrder"]


class Coordinator(Model):
    """The pod whose address is written on every Job and pod."""

    replicated_job: Str = ""
    job_index: Int | None = None
    pod_index: Int | None = None


class RetentionPolicy(Model):
    """What becomes of claims when the JobSet is deleted."""

    when_deleted: Literal["Delete", "Retain"] | None = None


class VolumeClaimPolicy(Model):
    """PersistentVolumeClaims made for the JobSet, one a template, named `<template>-<jobset>`."""

    templates: Annotated[tuple[dict[str, Any], ...], BeforeValidator(plain)] = ()
    retention_policy: RetentionPolicy | None = None


class JobSetSpec(Model):
    """A JobSet's spec."""

    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    network: Network | None = None
    success_policy: SuccessPolicy | None = None
    failure_policy: FailurePolicy | None = None
    startup_policy: StartupPolicy | None = None
    suspend: Bool | None = None
    coordinator: Coordinator | None = None
    managed_by: Str | None = None
    ttl_seconds_after_finished: Int32 | None = None
    volume_claim_policies: tuple[VolumeClaimPolicy, ...] = ()


_OF_THE_SERVER = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)


def _written(data: Any) -> Any:
    """What an author writes of a JobSet, without what the server adds."""
    if not isinstance(data, Mapping):
        return data
    kept = {key: value for key, value in data.items() if key != "status"}
    if isinstance(meta := kept.get("metadata"), Mapping):
        kept["metadata"] = {key: value for key, value in meta.items() if key not in _OF_THE_SERVER}
    return kept


class JobSet(Model):
    """A JobSet."""

    api_version: Literal["jobset.x-k8s.io/v1alpha2"] = "jobset.x-k8s.io/v1alpha2"
    kind: Literal["JobSet"] = "JobSet"
    metadata: Metadata = Metadata()
    spec: JobSetSpec = JobSetSpec()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> JobSet:
        """A JobSet from camelCase data. Raises InvalidSpec with every fault of its shape."""
        try:
            return cls.model_validate(_written(data))
        except ValidationError as error:
            from jobset_steps.spec.rules.structure import template_faults

            # What is wrong within the pod templates is told along, not only once the rest is right.
            raise InvalidSpec((*shape_faults(error, cls), *template_faults(data))) from None

    @classmethod
    def from_yaml(cls, text: str) -> JobSet:
        """A JobSet from one YAML (or JSON) document. Raises InvalidSpec."""
        from jobset_steps.spec.load import read_document

        return cls.from_dict(read_document(text))

    def to_yaml(self) -> str:
        """The manifest as YAML, fields in the API's order, texts of several lines as blocks."""
        import yaml

        class Readable(yaml.SafeDumper):
            """As SafeDumper writes it, but scripts can be read."""

        def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
            return dumper.represent_scalar(
                "tag:yaml.org,2002:str", value, style="|" if "\n" in value else None
            )

        Readable.add_representer(str, text)
        return str(yaml.dump(self.to_dict(), Dumper=Readable, sort_keys=False))
