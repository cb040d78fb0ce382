"""What the Job controller does next: from a Job's terms, its state and its pods to one JobDecision.

`sync` is one pass of the controller of Kubernetes 1.34, in its order: count, fail, succeed, make or delete pods. A Job
is first marked (FailureTarget, SuccessCriteriaMet) and ends (Failed, Complete) only once all its pods have ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from jobset_steps.observed import Condition, EventView, JobView
from jobset_steps.semantics.backoff import failures_in_a_row
from jobset_steps.semantics.conditions import job_condition
from jobset_steps.semantics.job_manage import JobState, NewPod, manage
from jobset_steps.semantics.job_pods import JobPod, JobPods, finished_at
from jobset_steps.semantics.job_success_policy import matching_rule
from jobset_steps.semantics.job_terms import JobTerms
from jobset_steps.semantics.pod_failure_policy import judge_pod

__all__ = ["JobDecision", "JobState", "NewPod", "sync", "sync_counted"]


@dataclass(frozen=True, slots=True)
class JobDecision:
    """What one pass asks for. `delete` and `counted` hold uids of pods; `expired`: the Job's TTL is over."""

    state: JobState
    delete: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    create: tuple[NewPod, ...] = ()
    events: tuple[EventView, ...] = ()
    expired: bool = False
    look_again_at: float | None = None


def sync(terms: JobTerms, state: JobState, pods: Iterable[JobPod], now: float) -> JobDecision:
    """One pass over the pods that exist. `now` is in POSIX seconds. A Job that has ended stays as it is."""
    return sync_counted(terms, state, JobPods(pods), now)


def sync_counted(terms: JobTerms, state: JobState, pods: JobPods, now: float) -> JobDecision:
    """As `sync`, from pods that are already sorted: for who keeps them sorted as they change."""
    view = state.view
    if view.is_complete or view.is_failed:
        return _ended(terms, state, now)
    if view.deleting_since is not None:
        return _going(state, pods)
    return _Sync(terms, state, pods, now).decide()


def _ended(terms: JobTerms, state: JobState, now: float) -> JobDecision:
    ended = state.view.condition("Complete") or state.view.condition("Failed")
    if terms.ttl is None or ended is None or state.view.deleting_since is not None:
        return JobDecision(state)
    end = (ended.since or 0.0) + terms.ttl
    return JobDecision(state, expired=end <= now, look_again_at=end if end > now else None)


def _going(state: JobState, pods: JobPods) -> JobDecision:
    """A Job that is being deleted makes no pods any more; its counts go on."""
    view = replace(state.view, active=len(pods.active), ready=pods.ready, terminating=len(pods.terminating))
    return JobDecision(replace(state, view=view), counted=tuple(pods.uncounted))


@dataclass(slots=True)
class _Sync:
    terms: JobTerms
    state: JobState
    pods: JobPods
    now: float
    delete: list[str] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    create: list[NewPod] = field(default_factory=list)
    events: list[EventView] = field(default_factory=list)
    look_again_at: float | None = None

    def decide(self) -> JobDecision:
        terms, state, pods = self.terms, self.state, self.pods
        fresh = list(pods.uncounted.values())
        succeeded = [pod for pod in fresh if pod.view.phase == "Succeeded"]
        failed = [pod for pod in fresh if self._is_failed(pod)]
        failures, last_failure_at = state.failures, state.last_failure_at
        # With a limit by index each pod carries its own failures.
        if terms.backoff_limit_per_index is None:
            failures, last_failure_at = failures_in_a_row(
                failures, last_failure_at, (pod.view for pod in succeeded), (pod.view for pod in failed)
            )
        view = state.view
        if view.started_at is None and not view.suspended:
            view = replace(view, started_at=self.now)
        state = replace(state, view=view, failures=failures, last_failure_at=last_failure_at)

        goal = self._decided_or_failure(view, failed)
        if terms.indexed:
            state = replace(
                state,
                succeeded_indexes=state.succeeded_indexes | {pod.view.index for pod in succeeded},
                failed_indexes=state.failed_indexes | {p.view.index for p in failed if self._fails_index(p)},
            )
            goal = goal or self._indexes(state)
        delayed = self._delayed(state, failed) if terms.backoff_limit_per_index is not None else {}
        active, ready = len(pods.active), pods.ready
        done = len(state.succeeded_indexes) if terms.indexed else view.succeeded + len(succeeded)
        if goal is not None:
            self.delete += pods.active
            active = ready = 0
        else:
            managed = manage(terms, state, pods, done, delayed, self.now)
            active = managed.active
            self.delete += managed.delete
            self.counted += managed.counted
            self.create += managed.create
            if managed.look_again_at is not None:
                self._look_again(managed.look_again_at)
            ready -= sum(pods.active[uid].view.ready for uid in self.delete)
            goal = self._completed(done, active)
            if goal is None:
                state = replace(state, view=self._suspension(state.view))
        state = self._count(state, done, goal, delayed)
        view = replace(
            state.view, active=active, ready=ready, terminating=len(pods.terminating) + len(self.delete)
        )
        if goal is not None:
            view = self._enact(view, goal)
        return JobDecision(
            replace(state, view=view),
            delete=tuple(self.delete),
            counted=tuple(self.counted),
            create=tuple(self.create),
            events=tuple(self.events),
            look_again_at=self.look_again_at,
        )

    def _is_failed(self, pod: JobPod) -> bool:
        if pod.view.phase == "Failed":
            return True
        # A pod being deleted counts as failed at once, unless only ended pods are replaced.
        deleting = pod.view.deleting_since is not None and pod.view.phase != "Succeeded"
        return deleting and not self.terms.replace_failed_only

    def _counts(self, pod: JobPod) -> bool:
        return judge_pod(self.terms.pod_failure_policy, pod.view, self.terms.namespace).counts

    def _fails_index(self, pod: JobPod) -> bool:
        limit = self.terms.backoff_limit_per_index
        if limit is None:
            return False
        judged = judge_pod(self.terms.pod_failure_policy, pod.view, self.terms.namespace)
        return judged.action == "FailIndex" or (judged.counts and pod.index_failures >= limit)

    def _decided_or_failure(self, view: JobView, failed: list[JobPod]) -> Condition | None:
        """What a pass before has decided, else why the Job fails now."""
        terms = self.terms
        for type_ in ("SuccessCriteriaMet", "FailureTarget"):
            if (decided := view.condition(type_)) is not None:
                return decided
        if terms.pod_failure_policy is not None:
            for pod in sorted(failed, key=lambda each: finished_at(each.view)):
                judged = judge_pod(terms.pod_failure_policy, pod.view, terms.namespace)
                if judged.message:
                    return self._target("PodFailurePolicy", judged.message)
        total = view.failed + sum(self._counts(pod) for pod in failed)
        if total > terms.backoff_limit or self._kubelet_restarts_spent():
            return self._target("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        if terms.active_deadline is not None and view.started_at is not None and not view.suspended:
            deadline = view.started_at + terms.active_deadline
            if deadline <= self.now:
                return self._target("DeadlineExceeded", "Job was active longer than specified deadline")
            self._look_again(deadline)
        return None

    def _kubelet_restarts_spent(self) -> bool:
        if not self.terms.kubelet_restarts:
            return False
        restarts, limit = self.pods.container_restarts, self.terms.backoff_limit
        return restarts >= limit if limit > 0 else restarts > 0

    def _indexes(self, state: JobState) -> Condition | None:
        terms, completions = self.terms, self.terms.completions or 0
        if terms.backoff_limit_per_index is not None:
            lost = len(state.failed_indexes)
            if terms.max_failed_indexes is not None and lost > terms.max_failed_indexes:
                message = "Job has exceeded the specified maximal number of failed indexes"
                return self._target("MaxFailedIndexesExceeded", message)
            if lost and lost + len(state.succeeded_indexes) >= completions:
                return self._target("FailedIndexes", "Job has failed indexes")
        rule = matching_rule(terms.success_policy, completions, state.succeeded_indexes)
        if rule is None:
            return None
        return Condition(
            "SuccessCriteriaMet", "True", "SuccessPolicy", f"Matched rules at index {rule}", self.now
        )

    def _delayed(self, state: JobState, failed: list[JobPod]) -> dict[int, JobPod]:
        """Failed pods that wait for the next pod of their index, which takes over their count of failures."""
        running = {pod.view.index for pod in self.pods.active.values()}
        settled = state.succeeded_indexes | state.failed_indexes | running
        delayed: dict[int, JobPod] = {}
        for pod in failed:
            if pod.view.index not in settled:
                other = delayed.get(pod.view.index)
                if other is None or _failure_order(other) <= _failure_order(pod):
                    delayed[pod.view.index] = pod
        return delayed

    def _completed(self, done: int, active: int) -> Condition | None:
        completions = self.terms.completions
        complete = done > 0 if completions is None else done >= completions
        if not complete or active:
            return None
        message = "Reached expected number of succeeded pods"
        return Condition("SuccessCriteriaMet", "True", "CompletionsReached", message, self.now)

    def _suspension(self, view: JobView) -> JobView:
        if view.suspended:
            new = Condition("Suspended", "True", "JobSuspended", "Job suspended", self.now)
        else:
            new = Condition("Suspended", "False", "JobResumed", "Job resumed", self.now)
        conditions = job_condition(view.conditions, new)
        if conditions is view.conditions:
            return view
        self._say("Normal", "Suspended" if view.suspended else "Resumed", new.message)
        # The deadline counts anew from a resume.
        started_at = view.started_at if view.suspended else self.now
        return replace(view, conditions=conditions, started_at=started_at)

    def _count(
        self, state: JobState, done: int, goal: Condition | None, delayed: dict[int, JobPod]
    ) -> JobState:
        """Take pods into the status: those that ended, and all of them once the Job has a goal."""
        fails = goal is not None and goal.type == "FailureTarget"
        failed = state.view.failed
        pods = list(self.pods.uncounted.values())
        if goal is not None:
            pods += [pod for pod in self.pods.active.values() if not pod.counted]
        for pod in pods:
            succeeded = pod.view.phase == "Succeeded"
            if not succeeded and goal is None:
                waits = delayed.get(pod.view.index)
                if not self._is_failed(pod) or (waits is not None and waits.view.uid == pod.view.uid):
                    continue
            self.counted.append(pod.view.uid)
            if not succeeded and (fails or self._is_failed(pod)) and self._counts(pod):
                failed += 1
        return replace(state, view=replace(state.view, succeeded=done, failed=failed))

    def _enact(self, view: JobView, goal: Condition) -> JobView:
        conditions = view.conditions
        if view.condition(goal.type) is None:
            conditions = (*conditions, goal)
        if view.terminating == 0:
            ends = "Failed" if goal.type == "FailureTarget" else "Complete"
            conditions = job_condition(
                conditions, Condition(ends, "True", goal.reason, goal.message, self.now)
            )
            if ends == "Failed":
                self._say("Warning", goal.reason, goal.message)
            else:
                self._say("Normal", "Completed", "Job completed")
        return replace(view, conditions=conditions)

    def _target(self, reason: str, message: str) -> Condition:
        return Condition("FailureTarget", "True", reason, message, self.now)

    def _look_again(self, at: float) -> None:
        self.look_again_at = at if self.look_again_at is None else min(self.look_again_at, at)

    def _say(self, type_: str, reason: str, message: str) -> None:
        self.events.append(EventView("Job", self.terms.name, type_, reason, message, 1, self.now))


def _failure_order(pod: JobPod) -> tuple[int, float]:
    return pod.index_failures + pod.index_ignored, finished_at(pod.view)
