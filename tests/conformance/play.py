"""Plays scenarios on a cluster through the product's own runner, and says what came of each in comparable terms."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from jobset_steps.clusters import Cluster
from jobset_steps.observed import View
from jobset_steps.outcome import Outcome
from jobset_steps.runner import Hooks, Runner
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.jobset import JobSet
from jobset_steps.supervisor.plan import EngineAttempt, Identity, StepPlan
from jobset_steps.supervisor.state import StepState
from tests.conformance.scenarios import SPACING, Scenario, Suspension, manifest

__all__ = ["Played", "differences", "play"]

IMAGE = "testbed.local/tools:1"
RACE = 2.0
"""Seconds."""


@dataclass
class Played:
    """What came of one scenario. `attempts` are those that each replicated job was seen to have child Jobs in, in order."""

    outcome: Outcome | None = None
    attempts: dict[str, list[int]] = field(default_factory=dict)
    ends: dict[tuple[int, str, int, int], float] = field(default_factory=dict)
    """When each pod ended by itself, by (attempt, replicated job, job, pod); -1 for the deadline of a Job. POSIX seconds."""
    suspended: float | None = None
    """When the JobSet was suspended midway; POSIX seconds."""

    def see(self, state: StepState) -> None:
        """Fold in what the supervisor knows now."""
        if state.view is None:
            return
        for job in state.view.jobs:
            seen = self.attempts.setdefault(job.replicated_job, [])
            if job.attempt not in seen:
                seen.append(job.attempt)
            late = job.condition("Failed")
            if late is not None and late.reason == "DeadlineExceeded" and late.since is not None:
                self.ends.setdefault((job.attempt, job.replicated_job, job.index, -1), late.since)
        for pod in state.view.pods:
            for container in pod.containers:
                if container.finished_at is not None and pod.deleting_since is None:
                    place = (pod.attempt, pod.replicated_job, pod.job_index, pod.index)
                    self.ends.setdefault(place, container.finished_at)

    def told(self) -> dict[str, Any]:
        """What must be the same everywhere."""
        assert self.outcome is not None
        outcome = self.outcome
        return {
            "verdict": outcome.verdict.value,
            "reason": outcome.reason,
            "rule": outcome.rule,
            "action": outcome.action,
            "first failed job": outcome.first_failed_job.removeprefix(outcome.jobset),
            "restarts": outcome.restarts.total,
            "restarts counted": outcome.restarts.counted,
            "attempts": {name: seen for name, seen in sorted(self.attempts.items()) if seen},
        }

    def raced(self, scenario: Scenario) -> bool:
        """Whether ends came closer than RACE seconds to each other or to a suspension, or pods started as far apart.

        A machine that is busy does that; the controllers then see another scenario than the one that was written.
        """
        gaps: list[float] = []
        for attempt in {place[0] for place in self.ends}:
            times = sorted(at for place, at in self.ends.items() if place[0] == attempt)
            gaps += [later - earlier for earlier, later in pairwise(times)]
        if self.suspended is not None:
            gaps += [abs(self.suspended - at) for at in self.ends.values()]
        return any(gap < RACE for gap in gaps) or any(spread >= RACE for spread in self._spreads(scenario))

    def _spreads(self, scenario: Scenario) -> Iterator[float]:
        """How far apart pods started that start together, told by when they ended."""
        if self.suspended is not None:
            return
        scripted = {(e.attempt, e.replicated_job, e.job, e.pod): e.seconds for e in scenario.ends}
        starts: dict[tuple[int, str], list[float]] = {}
        for place, at in self.ends.items():
            if place in scripted:
                together = (place[0], place[1] if scenario.ordered else "")
                starts.setdefault(together, []).append(at - scripted[place])
        for times in starts.values():
            yield max(times) - min(times)


Suspend = Callable[[str, bool], None]
"""Sets spec.suspend of a JobSet, as a person or a queue does; by the JobSet's uid."""


class _Person:
    """Suspends and resumes the JobSet of one scenario at the moments that the scenario names."""

    def __init__(self, scenario: Scenario, played: Played, suspend: Suspend) -> None:
        self._suspension, self._played, self._suspend = scenario.suspension, played, suspend
        self._begun = False

    def see(self, state: StepState) -> None:
        """Set the alarms once the moment has come."""
        view = state.view
        if self._begun or view is None or view.jobset is None:
            return
        uid = view.jobset.uid
        if self._suspension is Suspension.FROM_THE_START:
            self._begun = True
            _after(SPACING, lambda: self._suspend(uid, False))
        elif self._suspension is Suspension.BEFORE_AN_END or (
            # Not after a failure: whether a suspension comes before a Job has torn down its pods is a race.
            self._suspension is Suspension.AFTER_AN_END and _ended_well(view)
        ):
            self._begun = True
            _after(1.5, lambda: self._midway(uid))

    def _midway(self, uid: str) -> None:
        self._played.suspended = time.time()
        self._suspend(uid, True)
        _after(SPACING, lambda: self._suspend(uid, False))


def _ended_well(view: View) -> bool:
    return any(pod.phase == "Succeeded" for pod in view.pods) and not any(job.failed for job in view.jobs)


def _after(seconds: float, do: Callable[[], None]) -> None:
    alarm = threading.Timer(seconds, do)
    alarm.daemon = True
    alarm.start()


def play(
    cluster: Cluster,
    scenarios: Sequence[Scenario],
    *,
    run: str,
    parallel: int,
    suspend: Suspend,
    namespace: str = "default",
    told: Callable[[int], None] = lambda _: None,
) -> list[Played]:
    """Play all, at most `parallel` at once; `told` hears how many are over."""
    runner = Runner(cluster)
    results = [Played() for _ in scenarios]
    waiting = list(range(len(scenarios)))[::-1]
    over = 0

    def begin() -> None:
        number = waiting.pop()

        def done(outcome: Outcome) -> None:
            nonlocal over
            results[number].outcome = outcome
            over += 1
            told(over)
            if waiting:
                begin()

        person = _Person(scenarios[number], results[number], suspend)

        def seen(state: StepState) -> None:
            results[number].see(state)
            person.see(state)

        hooks = Hooks(deliver=lambda _: None, seen=seen, done=done)
        runner.add(_plan(scenarios[number], run, namespace), hooks)

    for _ in range(min(parallel, len(waiting))):
        begin()
    runner.run_all()
    runner.close()
    return results


def differences(one: Played, other: Played) -> dict[str, tuple[Any, Any]]:
    """What differs, {} where both tell the same."""
    left, right = one.told(), other.told()
    return {key: (left[key], right[key]) for key in left if left[key] != right[key]}


def _plan(scenario: Scenario, run: str, namespace: str) -> StepPlan:
    return StepPlan(
        identity=Identity(run, scenario.name),
        jobset=with_defaults(JobSet.from_dict(manifest(scenario, IMAGE))),
        spec_hash=scenario.name,
        engine=EngineAttempt("conformance"),
        namespace=namespace,
    )
