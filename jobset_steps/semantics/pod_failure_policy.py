"""What a Job's podFailurePolicy says about one failed pod. Rules in order, exit codes before nothing else.

It says which action, whether the failure counts, and the message of a Job that it fails; it never looks at other pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobset_steps.observed import ContainerView, PodView

if TYPE_CHECKING:
    from jobset_steps.spec.job import OnExitCodes, OnPodCondition, PodFailurePolicy

__all__ = ["PodFailure", "judge_pod"]


@dataclass(frozen=True, slots=True)
class PodFailure:
    """`action` is "" where no rule matches. `message` is set only where the action is FailJob."""

    action: str = ""
    message: str = ""

    @property
    def counts(self) -> bool:
        """Whether it counts towards the backoff limits."""
        return self.action != "Ignore"


_UNJUDGED = PodFailure()


def judge_pod(policy: PodFailurePolicy | None, pod: PodView, namespace: str) -> PodFailure:
    """The first rule that matches a failed pod (Kubernetes 1.34). Messages are the Job's own."""
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        what = ""
        if rule.on_exit_codes is not None:
            if (container := _by_exit_code(pod, rule.on_exit_codes)) is not None:
                what = (
                    f"Container {container.name} for pod {namespace}/{pod.name} failed with exit code"
                    f" {container.exit_code} matching {rule.action} rule at index {number}"
                )
        elif (condition := _by_condition(pod, rule.on_pod_conditions)) is not None:
            what = (
                f"Pod {namespace}/{pod.name} has condition {condition}"
                f" matching {rule.action} rule at index {number}"
            )
        if what and rule.action in ("FailJob", "FailIndex", "Ignore", "Count"):
            return PodFailure(rule.action, what if rule.action == "FailJob" else "")
    return _UNJUDGED


def _by_exit_code(pod: PodView, wanted: OnExitCodes) -> ContainerView | None:
    # Init containers are looked at last.
    for container in sorted(pod.containers, key=lambda each: each.init):
        if container.state != "terminated" or not container.exit_code:
            continue
        if wanted.container_name is not None and wanted.container_name != container.name:
            continue
        listed = container.exit_code in wanted.values
        if listed == (wanted.operator == "In"):
            return container
    return None


def _by_condition(pod: PodView, wanted: tuple[OnPodCondition, ...]) -> str | None:
    for condition in pod.conditions:
        for each in wanted:
            if condition.type == each.type and condition.status == (each.status or "True"):
                return condition.type
    return None
