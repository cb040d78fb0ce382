"""Plain data to test with: pods in the states that decide, and a Job that is driven pass by pass."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from jobset_steps.observed import Condition, ContainerView, JobView, PodView
from jobset_steps.semantics.job import JobDecision, JobState, sync
from jobset_steps.semantics.job_pods import JobPod
from jobset_steps.semantics.job_terms import JobTerms
from jobset_steps.spec.job import JobSpec

DISRUPTION = Condition("DisruptionTarget", "True", "EvictionByEvictionAPI")


def terms(restart_policy: str = "Never", **fields: Any) -> JobTerms:
    spec = JobSpec.model_validate({"template": {"spec": {"restartPolicy": restart_policy}}, **fields})
    return JobTerms.of(spec, name="t-w-0")


@dataclass
class Driven:
    """A Job and its pods; `look` is one pass, and carries out what the pass asks for."""

    terms: JobTerms
    suspended: bool = False
    pods: dict[str, JobPod] = field(default_factory=dict)
    made: int = 0
    state: JobState = field(init=False)

    def __post_init__(self) -> None:
        self.state = JobState(JobView("t-w-0", "j", "w", 0, 0, suspended=self.suspended))

    def look(self, now: float) -> JobDecision:
        decision = sync(self.terms, self.state, list(self.pods.values()), now)
        self.state = decision.state
        for uid in decision.counted:
            self.pods[uid] = replace(self.pods[uid], counted=True)
        for uid in decision.delete:
            self.put(uid, deleting_since=now)
        for new in decision.create:
            uid = f"p{self.made}"
            self.made += 1
            view = PodView(uid, uid, "t-w-0", "w", 0, new.index or 0, 0, created_at=now)
            self.pods[uid] = JobPod(view, index_failures=new.failures, index_ignored=new.ignored)
        return decision

    def put(self, uid: str, **changes: Any) -> None:
        self.pods[uid] = replace(self.pods[uid], view=replace(self.pods[uid].view, **changes))

    def end(self, uid: str, code: int, at: float, *conditions: Condition, container: str = "main") -> None:
        ended = ContainerView(container, "terminated", exit_code=code, finished_at=at)
        phase = "Failed" if code else "Succeeded"
        self.put(uid, phase=phase, ready=False, containers=(ended,), conditions=conditions)

    def delete(self, uid: str, at: float) -> None:
        self.put(uid, deleting_since=at)

    @property
    def view(self) -> JobView:
        return self.state.view

    @property
    def words(self) -> tuple[str, str]:
        """Reason and message of the end, or of what is decided and waits for the last pods."""
        for type_ in ("Failed", "Complete", "FailureTarget", "SuccessCriteriaMet"):
            if (condition := self.view.condition(type_)) is not None:
                return condition.reason, condition.message
        return "", ""
