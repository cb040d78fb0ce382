"""Which pods a running Job makes and deletes now: parallelism, completions, indexes, backoff and replacement policy.

It is asked only while nothing has decided the Job's end; it never judges a failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jobset_steps.observed import JobView
from jobset_steps.semantics.backoff import ready_again_at
from jobset_steps.semantics.job_pods import JobPod, JobPods, finished_at
from jobset_steps.semantics.job_terms import JobTerms
from jobset_steps.semantics.pod_failure_policy import judge_pod

__all__ = ["JobState", "Managed", "NewPod", "manage"]

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


@dataclass(frozen=True, slots=True)
class JobState:
    """A Job as its controller remembers it: its View and what the View has no room for."""

    view: JobView
    succeeded_indexes: frozenset[int] = frozenset()
    failed_indexes: frozenset[int] = frozenset()
    failures: int = 0
    last_failure_at: float | None = None


@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod to make. `index` is None in a NonIndexed Job; `failures` and `ignored` are those of its index before."""

    index: int | None
    failures: int = 0
    ignored: int = 0


@dataclass(slots=True)
class Managed:
    """How many pods are `active` then, which are deleted (and taken in without being counted as failed), which made.

    `look_again_at`: when a pod that is waited for may be made, in POSIX seconds.
    """

    active: int = 0
    delete: list[str] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    create: list[NewPod] = field(default_factory=list)
    look_again_at: float | None = None


def manage(
    terms: JobTerms,
    state: JobState,
    pods: JobPods,
    done: int,
    delayed: Mapping[int, JobPod],
    now: float,
) -> Managed:
    """The pods of a Job of which `done` have succeeded (indexes, in an Indexed Job).

    `delayed` holds, by index, the failed pod that waits for the next pod of its index.
    """
    active = len(pods.active)
    if state.view.suspended:
        return Managed(0, delete=list(pods.active), counted=list(pods.active))
    if terms.completions is None:
        wanted = active if done else terms.parallelism
    else:
        wanted = max(0, min(terms.completions - done, terms.parallelism))
    if active > wanted:
        surplus = [pod.view.uid for pod in sorted(pods.active.values(), key=_removal_order)][
            : active - wanted
        ]
        return Managed(wanted, delete=surplus, counted=list(surplus))
    missing = wanted - active - (len(pods.terminating) if terms.replace_failed_only else 0)
    if missing <= 0:
        return Managed(active)
    if terms.backoff_limit_per_index is not None:
        return _by_index(terms, state, pods, missing, delayed, now)
    wait_until = ready_again_at(state.failures, state.last_failure_at)
    if wait_until is not None and wait_until > now:
        # The controller writes 0 active pods while it waits, whatever runs on.
        return Managed(0, look_again_at=wait_until)
    if not terms.indexed:
        return Managed(active + missing, create=[NewPod(None)] * missing)
    indexes = _pending(terms, state, pods, missing)
    return Managed(active + len(indexes), create=[NewPod(index) for index in indexes])


def _by_index(
    terms: JobTerms,
    state: JobState,
    pods: JobPods,
    missing: int,
    delayed: Mapping[int, JobPod],
    now: float,
) -> Managed:
    create, waits = [], []
    for index in _pending(terms, state, pods, missing):
        pod = delayed.get(index)
        if pod is None:
            create.append(NewPod(index))
            continue
        failures, ignored = pod.index_failures, pod.index_ignored
        wait_until = ready_again_at(failures + ignored + 1, finished_at(pod.view))
        if wait_until is not None and wait_until > now:
            waits.append(wait_until)
            continue
        counts = judge_pod(terms.pod_failure_policy, pod.view, terms.namespace).counts
        create.append(NewPod(index, failures + counts, ignored + (not counts)))
    active = len(pods.active) + len(create) if create or not waits else 0
    return Managed(active, create=create, look_again_at=min(waits, default=None))


def _pending(terms: JobTerms, state: JobState, pods: JobPods, count: int) -> list[int]:
    """The lowest indexes that have neither ended nor a pod."""
    taken = {pod.view.index for pod in pods.active.values()}
    if terms.replace_failed_only:
        taken |= {pod.view.index for pod in pods.terminating.values()}
    taken |= state.succeeded_indexes | state.failed_indexes
    pending: list[int] = []
    for index in range(terms.completions or 0):
        if len(pending) == count:
            break
        if index not in taken:
            pending.append(index)
    return pending


def _removal_order(pod: JobPod) -> tuple[bool, int, bool, float]:
    """Pods that are least far go first; of equal ones the newest."""
    view = pod.view
    return bool(view.node), _PHASES.get(view.phase, 2), view.ready, -(view.created_at or 0.0)
