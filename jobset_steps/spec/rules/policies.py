"""Rules of success and failure policy: targets, names, reasons, patterns, actions.

Source: JobSet's webhook and CRD (0.11.1). A pattern is RE2, as in the controller, which skips a bad one without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.jobset import FailurePolicyRule, JobSet, JobSetSpec
from jobset_steps.spec.rules import forms
from jobset_steps.spec.versions import has_single_restarts, many_replicas, single_restarts

__all__ = ["policy_faults"]

_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASONS = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)


def policy_faults(jobset: JobSet, version: str) -> Iterator[Fault]:
    """Faults of both policies, for a version of JobSet."""
    yield from _success(jobset.spec)
    yield from _failure(jobset.spec)
    yield from _single_restarts(jobset, version)


def _targets(path: str, spec: JobSetSpec, targets: tuple[str, ...]) -> Iterator[Fault]:
    known = [job.name for job in spec.replicated_jobs]
    for index, target in enumerate(targets):
        if target not in known:
            names = ", ".join(known) or "none"
            yield Fault(
                f"{path}[{index}]", "unknown-job", "no such replicated job", target, f"one of {names}"
            )


def _success(spec: JobSetSpec) -> Iterator[Fault]:
    policy = spec.success_policy
    if policy is None:
        return
    path = "spec.successPolicy.targetReplicatedJobs"
    yield from _targets(path, spec, policy.target_replicated_jobs)
    replicas = {job.name: 1 if job.replicas is None else job.replicas for job in spec.replicated_jobs}
    targets = policy.target_replicated_jobs
    if policy.operator == "All" and targets and all(replicas.get(name, 1) == 0 for name in targets):
        message = "no target has a replica: the JobSet would complete at the first success of anything"
        yield Fault(path, "success-of-nothing", message, list(targets), "a target with replicas", True)


def _failure(spec: JobSetSpec) -> Iterator[Fault]:
    policy = spec.failure_policy
    if policy is None:
        return
    path = "spec.failurePolicy"
    if policy.max_restarts is not None and policy.max_restarts < 0:
        message = "a negative number acts as 0"
        yield Fault(
            f"{path}.maxRestarts", "negative-restarts", message, policy.max_restarts, "0 or more", True
        )
    if policy.restart_strategy == "InPlaceRestart":
        message = "needs a feature gate that is off by default, and an agent in every pod"
        yield Fault(
            f"{path}.restartStrategy", "in-place-restart", message, "InPlaceRestart", "BlockingRecreate"
        )
    names = [rule.name or f"failurePolicyRule{index}" for index, rule in enumerate(policy.rules)]
    yield from forms.duplicates(f"{path}.rules", "name", names)
    for index, rule in enumerate(policy.rules):
        yield from _rule(f"{path}.rules[{index}]", spec, rule)


def _rule(path: str, spec: JobSetSpec, rule: FailurePolicyRule) -> Iterator[Fault]:
    if rule.name and (len(rule.name) > 128 or not _NAME.fullmatch(rule.name)):
        message = "letters, digits, '_', ',' and ':', first a letter, at most 128"
        yield Fault(f"{path}.name", "rule-name", message, rule.name, _camel(rule.name))
    yield from _targets(f"{path}.targetReplicatedJobs", spec, rule.target_replicated_jobs)
    for place, reason in enumerate(rule.on_job_failure_reasons):
        yield from forms.one_of(f"{path}.onJobFailureReasons[{place}]", reason, _REASONS)
    for place, pattern in enumerate(rule.on_job_failure_message_patterns):
        if (problem := _re2_problem(pattern)) is not None:
            where = f"{path}.onJobFailureMessagePatterns[{place}]"
            message = f"not an RE2 pattern, so the rule would never match: {problem}"
            yield Fault(
                where, "pattern", message, pattern, "RE2 has no look-ahead and no back-references", True
            )


def _single_restarts(jobset: JobSet, version: str) -> Iterator[Fault]:
    if has_single_restarts(version):
        message = "needs a feature gate of JobSet that is off by default"
        for path, action in single_restarts(jobset):
            yield Fault(path, "action-gate", message, action, "RestartJobSet", True)
        for path, replicas in many_replicas(jobset):
            message = "at most 1024 beside a rule that restarts one Job alone"
            yield Fault(path, "too-many", message, replicas)


def _re2_problem(pattern: str) -> str | None:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0] if error.args else error
        return text.decode() if isinstance(text, bytes) else str(text)
    return None


def _camel(name: str) -> str | None:
    words = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]
    joined = "".join([words[0], *(word[:1].upper() + word[1:] for word in words[1:])]) if words else ""
    return joined if _NAME.fullmatch(joined) else None
