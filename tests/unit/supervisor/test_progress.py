"""What a View says a training is doing."""

from __future__ import annotations

from step_talk import finished, jobset_view, plan, pod

from jobset_steps.observed import ContainerView, ReplicatedJobStatus, View
from jobset_steps.supervisor.progress import stretch_of
from jobset_steps.supervisor.state import Stretch

PLAN = plan()
NOT_YET_COUNTED = jobset_view(
    PLAN, replicated_jobs=(ReplicatedJobStatus(PLAN.jobset.spec.replicated_jobs[0].name, active=1),)
)


def test_a_pod_that_ends_does_not_begin_to_start_again() -> None:
    ending = pod(
        PLAN, 0, phase="Running", ready=False, containers=(ContainerView("main", "terminated", exit_code=0),)
    )
    for pods in ((ending, pod(PLAN, 1, phase="Running", ready=True)), (ending, finished(PLAN, 1))):
        assert stretch_of(PLAN.jobset, View(NOT_YET_COUNTED, pods=pods)) is Stretch.RUNNING


def test_a_pod_that_is_missing_or_not_ready_is_starting() -> None:
    ready = pod(PLAN, 0, phase="Running", ready=True)
    unready = pod(PLAN, 1, phase="Running", ready=False, containers=(ContainerView("main", "running"),))
    for pods in ((), (ready,), (ready, unready)):
        assert stretch_of(PLAN.jobset, View(NOT_YET_COUNTED, pods=pods)) is Stretch.STARTING
