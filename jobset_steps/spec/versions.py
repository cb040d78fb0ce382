"""What differs between the versions of JobSet, in one table, and what of it a spec uses.

Source: api/jobset/v1alpha2/jobset_types.go, pkg/webhooks/jobset_webhook.go, pkg/features/features.go and the CRD of the tags
v0.10.1, v0.11.1 and v0.12.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from jobset_steps.errors import BadInput
from jobset_steps.spec.fault import Fault
from jobset_steps.spec.jobset import JobSet

__all__ = [
    "DEFAULT_VERSION",
    "DIFFERENCES",
    "VERSIONS",
    "Difference",
    "has_single_restarts",
    "known_version",
    "many_replicas",
    "single_restarts",
    "version_faults",
]

VERSIONS = ("0.10", "0.11", "0.12")
"""Versions of JobSet whose differences are known. Older ones remake the Jobs of a JobSet that is being deleted."""
DEFAULT_VERSION = "0.11"
_SINGLE_RESTARTS = ("RestartJob", "RestartJobAndIgnoreMaxRestarts")
_MOST_REPLICAS = 1024

Used = Iterator[tuple[str, Any]]


@dataclass(frozen=True)
class Difference:
    """A field, an enum's value or a rule that came with a version.

    `uses` finds what of it a JobSet uses, as (path, value); None where there is nothing in a spec to find. `instead` is what
    to write for an older version.
    """

    what: str
    since: str
    meaning: str
    source: str
    uses: Callable[[JobSet], Used] | None = None
    instead: str | None = None

    def is_in(self, version: str) -> bool:
        """Whether a version has it."""
        return VERSIONS.index(version) >= VERSIONS.index(self.since)


def known_version(version: str) -> str:
    """The version itself, also of "v0.11.1". Raises BadInput for one that is not known."""
    short = ".".join(version.removeprefix("v").split(".")[:2])
    if short not in VERSIONS:
        raise BadInput(f"JobSet {version} is not known; known: {', '.join(VERSIONS)}")
    return short


def version_faults(jobset: JobSet, version: str) -> Iterator[Fault]:
    """What a JobSet uses that a version does not have."""
    for row in DIFFERENCES:
        if row.uses is not None and not row.is_in(version):
            for path, given in row.uses(jobset):
                message = f"JobSet {version} has no {row.what}, which came with {row.since}"
                yield Fault(path, "jobset-version", message, given, row.instead)


def has_single_restarts(version: str) -> bool:
    """Whether a version can restart one Job alone."""
    return VERSIONS.index(version) >= VERSIONS.index("0.12")


def single_restarts(jobset: JobSet) -> Used:
    """The rules that restart one Job alone."""
    policy = jobset.spec.failure_policy
    for index, rule in enumerate(policy.rules if policy else ()):
        if rule.action in _SINGLE_RESTARTS:
            yield f"spec.failurePolicy.rules[{index}].action", rule.action


def many_replicas(jobset: JobSet) -> Used:
    """Replicated jobs of more Jobs than can be counted one by one, beside a rule that restarts one alone."""
    if any(single_restarts(jobset)):
        for index, job in enumerate(jobset.spec.replicated_jobs):
            if (job.replicas or 0) > _MOST_REPLICAS:
                yield f"spec.replicatedJobs[{index}].replicas", job.replicas


def _claim_policies(jobset: JobSet) -> Used:
    if jobset.spec.volume_claim_policies:
        yield "spec.volumeClaimPolicies", None


def _bare_conditions(jobset: JobSet) -> Used:
    for index, replicated in enumerate(jobset.spec.replicated_jobs):
        policy = replicated.template.spec.pod_failure_policy
        for number, rule in enumerate(policy.rules if policy else ()):
            for at, condition in enumerate(rule.on_pod_conditions):
                if "status" not in condition.model_fields_set:
                    path = f"spec.replicatedJobs[{index}].template.spec.podFailurePolicy.rules[{number}]"
                    yield f"{path}.onPodConditions[{at}].status", None


_TYPES, _WEBHOOK = "api/jobset/v1alpha2/jobset_types.go", "pkg/webhooks/jobset_webhook.go"
_CRD = "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"

DIFFERENCES = (
    Difference(
        "spec.volumeClaimPolicies",
        "0.11",
        "Claims that JobSet makes, named after the JobSet and mounted into its pods; deleted with it, or retained.",
        _TYPES,
        _claim_policies,
        "a claim of your own, named in spec.volumes of the pods",
    ),
    Difference(
        "spec.failurePolicy.restartStrategy: InPlaceRestart",
        "0.11",
        "Containers restart inside their pods. Behind the feature gate InPlaceRestart, off by default; needs an agent in "
        "every pod. Refused here in every version.",
        _TYPES,
    ),
    Difference(
        "status.previousInPlaceRestartAttempt, status.currentInPlaceRestartAttempt",
        "0.11",
        "How far an in-place restart has come, for the agents.",
        _TYPES,
    ),
    Difference(
        "podFailurePolicy.rules[].onPodConditions[] without a status",
        "0.11",
        'The status may be left out; it is "True". Specs that `render` or a step writes always say it.',
        _CRD,
        _bare_conditions,
        'status: "True"',
    ),
    Difference(
        "rule: the coordinator's address is a label's value",
        "0.11",
        "The webhook refuses a coordinator whose address has over 63 characters. 0.10 admits it and can then make no Job, "
        "without a word; so it is refused here in every version.",
        _WEBHOOK,
    ),
    Difference(
        "event JobCreationFailed",
        "0.11",
        "Says why a child Job cannot be made. With 0.10 such a JobSet only ends by the start-up budget.",
        "pkg/controllers/jobset_controller.go",
    ),
    Difference(
        "pod fields workloadRef and podCertificate.userAnnotations",
        "0.11",
        "Known to the CRD (workloadRef in 0.11 alone). Refused here: Kubernetes 1.34, whose pods are checked, has neither.",
        _CRD,
    ),
    Difference(
        "failure-policy actions RestartJob and RestartJobAndIgnoreMaxRestarts",
        "0.12",
        "Restart the Job that failed, alone. Behind the feature gate RestartJob, off by default: refused here unless "
        "`action-gate` is waived.",
        _TYPES,
        single_restarts,
        "RestartJobSet",
    ),
    Difference(
        f"rule: at most {_MOST_REPLICAS:,} replicas beside these actions",
        "0.12",
        "Their restarts are counted Job by Job.",
        _WEBHOOK,
    ),
    Difference(
        "status.replicatedJobsStatus[].jobRestarts and jobRestartsCountTowardsMax",
        "0.12",
        "Restarts of each Job alone, with the feature gate RestartJob.",
        _TYPES,
    ),
    Difference(
        "condition RestartingJobSet",
        "0.12",
        "True from a restart until all Jobs are ready again.",
        _TYPES,
    ),
    Difference(
        "parallelism and completions may change while it runs",
        "0.12",
        "Together, of Indexed Jobs. Behind the feature gate ElasticJobSet, off by default.",
        _WEBHOOK,
    ),
    Difference(
        "422 Invalid for what the webhook refuses",
        "0.12",
        "403 Forbidden before, which is told apart from missing rights by its words.",
        _WEBHOOK,
    ),
    Difference(
        "pod field schedulingGroup",
        "0.12",
        "Known to the CRD. Refused here: Kubernetes 1.34, whose pods are checked, has it not.",
        _CRD,
    ),
)
"""In the order of versions; a version has every row of its own and of those before."""
