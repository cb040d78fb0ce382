"""Rules of a child Job. JobSet admits any template and then hangs on the Job that the API refuses, so they are held here.

Source: the Job API's validation (batch/v1, Kubernetes 1.34) with JobSet's defaults applied first: Indexed, OnFailure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.job import JobSpec, PodFailurePolicyRule, SuccessPolicyRule
from jobset_steps.spec.rules import forms
from jobset_steps.spec.rules.metadata import selector_faults
from jobset_steps.spec.rules.structure import settled, structure_faults

__all__ = ["job_faults"]

_MOST_INDEXED = 100_000
_MOST_WITH_MANY_COMPLETIONS = 10_000
_MOST_RULES = 20
_MOST_INDEXES_TEXT = 64 * 1024


def job_faults(path: str, job: JobSpec, *, made: bool = True) -> Iterator[Fault]:
    """Faults of one child Job's spec at `path`; if no Job of it is made, only what the CRD itself refuses."""
    for name, policy in (("podFailurePolicy", job.pod_failure_policy), ("successPolicy", job.success_policy)):
        if policy is not None and not policy.rules:
            yield Fault(f"{path}.{name}.rules", "required", "at least one rule")
    for index, rule in enumerate(job.pod_failure_policy.rules if job.pod_failure_policy else ()):
        if rule.on_exit_codes is not None:
            here = f"{path}.podFailurePolicy.rules[{index}].onExitCodes.values"
            if not rule.on_exit_codes.values:
                yield Fault(here, "required", "at least one value")
            yield from forms.duplicates(here, "", (str(value) for value in rule.on_exit_codes.values))
    if made:
        yield from _refused_by_jobs(path, job)


def _refused_by_jobs(path: str, job: JobSpec) -> Iterator[Fault]:
    for name in (
        "parallelism",
        "completions",
        "active_deadline_seconds",
        "backoff_limit",
        "backoff_limit_per_index",
    ):
        yield from forms.nonnegative(f"{path}.{_camel(name)}", getattr(job, name))
    yield from forms.nonnegative(f"{path}.maxFailedIndexes", job.max_failed_indexes)
    yield from forms.one_of(f"{path}.completionMode", job.completion_mode, ("NonIndexed", "Indexed"))
    yield from _replacement(path, job)
    yield from _indexes(path, job)
    yield from _pod_failure_policy(f"{path}.podFailurePolicy", job)
    yield from _success_policy(f"{path}.successPolicy", job)
    yield from _restart_policy(path, job)
    yield from _not_for_children(path, job)


def _pod(job: JobSpec) -> dict[str, Any]:
    """The pod's spec, whatever stands there: its structure is judged elsewhere."""
    pod = job.template.get("spec")
    return pod if isinstance(pod, dict) else {}


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _replacement(path: str, job: JobSpec) -> Iterator[Fault]:
    path = f"{path}.podReplacementPolicy"
    if job.pod_failure_policy is None:
        yield from forms.one_of(path, job.pod_replacement_policy, ("Failed", "TerminatingOrFailed"))
    elif job.pod_replacement_policy not in (None, "Failed"):
        yield Fault(
            path,
            "replacement",
            "only Failed together with a podFailurePolicy",
            job.pod_replacement_policy,
            "Failed",
        )


def _indexes(path: str, job: JobSpec) -> Iterator[Fault]:
    if job.completion_mode == "NonIndexed":
        for name in ("backoff_limit_per_index", "max_failed_indexes"):
            if (value := getattr(job, name)) is not None:
                yield Fault(
                    f"{path}.{_camel(name)}", "not-indexed", "needs completionMode Indexed", value, "Indexed"
                )
        return
    if job.completions is None:
        message = "is required with completionMode Indexed"
        yield Fault(
            f"{path}.completions", "completions", message, passes=f"{job.parallelism or 1}, as parallelism"
        )
    if job.parallelism is not None and job.parallelism > _MOST_INDEXED:
        yield Fault(
            f"{path}.parallelism", "too-many", f"at most {_MOST_INDEXED} with Indexed", job.parallelism
        )
    limit, completions = job.max_failed_indexes, job.completions
    if (
        limit is None
        and completions is not None
        and completions > _MOST_INDEXED
        and job.backoff_limit_per_index is not None
    ):
        yield Fault(f"{path}.maxFailedIndexes", "required", f"is required above {_MOST_INDEXED} completions")
    if limit is not None:
        if job.backoff_limit_per_index is None:
            yield Fault(f"{path}.backoffLimitPerIndex", "required", "is required with maxFailedIndexes")
        if completions is not None and limit > completions:
            yield Fault(
                f"{path}.maxFailedIndexes", "too-many", "at most completions", limit, f"at most {completions}"
            )
        if limit > _MOST_INDEXED:
            yield Fault(f"{path}.maxFailedIndexes", "too-many", f"at most {_MOST_INDEXED}", limit)
    if completions is not None and completions > _MOST_INDEXED and job.backoff_limit_per_index is not None:
        for name, value in (("parallelism", job.parallelism), ("maxFailedIndexes", limit)):
            if value is not None and value > _MOST_WITH_MANY_COMPLETIONS:
                message = (
                    f"at most {_MOST_WITH_MANY_COMPLETIONS} with this many completions and a limit per index"
                )
                yield Fault(f"{path}.{name}", "too-many", message, value)


def _pod_failure_policy(path: str, job: JobSpec) -> Iterator[Fault]:
    policy = job.pod_failure_policy
    if policy is None:
        return
    if len(policy.rules) > _MOST_RULES:
        yield Fault(f"{path}.rules", "too-many", f"at most {_MOST_RULES}", len(policy.rules))
    pod = _pod(job)
    listed = [pod.get(kind) for kind in ("containers", "initContainers")]
    names = {
        str(c.get("name")) for each in listed if isinstance(each, list) for c in each if isinstance(c, dict)
    }
    for index, rule in enumerate(policy.rules):
        yield from _failure_rule(f"{path}.rules[{index}]", rule, job, names)


def _failure_rule(path: str, rule: PodFailurePolicyRule, job: JobSpec, names: set[str]) -> Iterator[Fault]:
    yield from forms.one_of(f"{path}.action", rule.action, ("Count", "FailIndex", "FailJob", "Ignore"))
    if rule.action == "FailIndex" and job.backoff_limit_per_index is None:
        yield Fault(
            f"{path}.action",
            "fail-index",
            "needs backoffLimitPerIndex",
            rule.action,
            "set backoffLimitPerIndex",
        )
    if (rule.on_exit_codes is None) == (not rule.on_pod_conditions):
        yield Fault(path, "one-of", "exactly one of onExitCodes and onPodConditions")
    codes = rule.on_exit_codes
    if codes is not None:
        here = f"{path}.onExitCodes"
        yield from forms.one_of(f"{here}.operator", codes.operator, ("In", "NotIn"))
        if codes.container_name is not None and codes.container_name not in names:
            known = ", ".join(sorted(str(name) for name in names))
            yield Fault(
                f"{here}.containerName", "unknown-container", "no such container", codes.container_name, known
            )
        if len(codes.values) > 255:
            yield Fault(f"{here}.values", "exit-codes", "at most 255 values", len(codes.values))
        if codes.operator == "In" and 0 in codes.values:
            yield Fault(
                f"{here}.values[{codes.values.index(0)}]", "exit-codes", "0 is not a failure", 0, "1 to 255"
            )
        if list(codes.values) != sorted(codes.values):
            yield Fault(
                f"{here}.values",
                "exit-codes",
                "in ascending order",
                list(codes.values),
                f"{sorted(codes.values)}",
            )
    if len(rule.on_pod_conditions) > 20:
        yield Fault(f"{path}.onPodConditions", "too-many", "at most 20", len(rule.on_pod_conditions))
    for index, condition in enumerate(rule.on_pod_conditions):
        yield from forms.label_key(f"{path}.onPodConditions[{index}].type", condition.type)
        yield from forms.one_of(
            f"{path}.onPodConditions[{index}].status", condition.status or None, ("False", "True", "Unknown")
        )


def _success_policy(path: str, job: JobSpec) -> Iterator[Fault]:
    policy = job.success_policy
    if policy is None:
        return
    if job.completion_mode == "NonIndexed":
        yield Fault(path, "not-indexed", "needs completionMode Indexed", passes="Indexed")
        return
    if len(policy.rules) > _MOST_RULES:
        yield Fault(f"{path}.rules", "too-many", f"at most {_MOST_RULES}", len(policy.rules))
    for index, rule in enumerate(policy.rules):
        yield from _success_rule(f"{path}.rules[{index}]", rule, job.completions)


def _success_rule(path: str, rule: SuccessPolicyRule, completions: int | None) -> Iterator[Fault]:
    if rule.succeeded_count is None and rule.succeeded_indexes is None:
        yield Fault(path, "required", "at least one of succeededCount and succeededIndexes")
    if completions is None:
        return
    total = None
    if rule.succeeded_indexes is not None:
        total = _indexes_in(rule.succeeded_indexes, completions)
        if total is None or len(rule.succeeded_indexes) > _MOST_INDEXES_TEXT:
            message = f"ascending numbers and ranges below {completions}"
            yield Fault(
                f"{path}.succeededIndexes", "indexes", message, rule.succeeded_indexes, 'such as "0,2-4"'
            )
    count = rule.succeeded_count
    yield from forms.nonnegative(f"{path}.succeededCount", count)
    most = completions if total is None else min(completions, total)
    if count is not None and count > most:
        yield Fault(f"{path}.succeededCount", "too-many", f"at most {most}", count)


def _indexes_in(text: str, completions: int) -> int | None:
    """How many indexes "0,2-4" names; None where it is not ascending, not below completions, or not of that form."""
    if not text:
        return 0
    total, last = 0, -1
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            return None
        first = int(match[1])
        end = int(match[2]) if match[2] is not None else first
        if first <= last or (match[2] is not None and end <= first) or end >= completions:
            return None
        total, last = total + end - first + 1, end
    return total


def _restart_policy(path: str, job: JobSpec) -> Iterator[Fault]:
    given = _pod(job).get("restartPolicy")
    path = f"{path}.template.spec.restartPolicy"
    if not isinstance(given, str | None):
        return
    if given == "Always":
        yield Fault(path, "restart-policy", "OnFailure or Never for a Job", given, "Never")
    elif job.pod_failure_policy is not None and given != "Never":
        message = "only Never together with a podFailurePolicy"
        yield Fault(path, "restart-policy", message, given or "OnFailure (JobSet's default)", "Never")


def _not_for_children(path: str, job: JobSpec) -> Iterator[Fault]:
    """What a Job may have and a child Job must not."""
    if job.ttl_seconds_after_finished is not None:
        yield from forms.nonnegative(f"{path}.ttlSecondsAfterFinished", job.ttl_seconds_after_finished)
        message = "a child Job that is deleted before the JobSet ends is made again and runs again"
        passes = "spec.ttlSecondsAfterFinished of the JobSet"
        yield Fault(
            f"{path}.ttlSecondsAfterFinished",
            "child-ttl",
            message,
            job.ttl_seconds_after_finished,
            passes,
            True,
        )
    if job.managed_by is not None:
        yield from forms.prefixed_path(f"{path}.managedBy", job.managed_by, 63)
    yield from _selector(f"{path}.selector", job)


def _selector(path: str, job: JobSpec) -> Iterator[Fault]:
    """The selector is the Job controller's to set: every attempt needs its own."""
    selector = job.selector or {}
    shape = list(structure_faults(path, selector, "LabelSelector"))
    yield from shape
    if shape:
        return
    selector = settled(selector, "LabelSelector")
    if not job.manual_selector:
        if selector.get("matchLabels") or selector.get("matchExpressions"):
            yield Fault(path, "selector", "is the Job controller's to set", passes="remove it")
        return
    yield from selector_faults(path, selector)
    meta = job.template.get("metadata")
    labels = (meta.get("labels") if isinstance(meta, dict) else None) or {}
    if job.selector is None or not all(
        labels.get(k) == v for k, v in (selector.get("matchLabels") or {}).items()
    ):
        message = "a manual selector must match the labels of the pod template"
        yield Fault(path, "selector", message, passes="remove manualSelector")
    message = "with a manual selector an attempt takes the pods of the one before for its own"
    yield Fault(
        path.replace("selector", "manualSelector"), "manual-selector", message, True, "remove it", True
    )
