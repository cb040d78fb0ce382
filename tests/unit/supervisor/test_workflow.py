"""A launcher that is told to end asks its Workflow: cancel deletes, eviction keeps, and doubt keeps."""

from __future__ import annotations

import pytest

from jobset_steps.supervisor.inputs import EndCause
from jobset_steps.supervisor.workflow import LauncherPod, WorkflowView, over, why_ending

NOW = 1000.0
RUNNING = WorkflowView("wf", "u1", phase="Running", started_at=100.0)


@pytest.mark.parametrize(
    ("workflow", "cause"),
    [
        (None, EndCause.CANCEL),
        (WorkflowView("wf", "another", phase="Running"), EndCause.CANCEL),
        (WorkflowView("wf", "u1", phase="Running", shutdown="Stop"), EndCause.CANCEL),
        (WorkflowView("wf", "u1", phase="Running", shutdown="Terminate"), EndCause.CANCEL),
        (WorkflowView("wf", "u1", phase="Running", deadline=0, started_at=100.0), EndCause.CANCEL),
        (WorkflowView("wf", "u1", phase="Running", deadline=900, started_at=100.0), EndCause.CANCEL),
        (WorkflowView("wf", "u1", phase="Running", deleting=True), EndCause.CANCEL),
        (WorkflowView("wf", "u1", phase="Running", deadline=9000, started_at=100.0), EndCause.EVICTION),
        (RUNNING, EndCause.EVICTION),
    ],
)
def test_a4_b3_a_pod_that_is_deleted_is_a_cancel_only_if_the_run_is_over(
    workflow: WorkflowView | None, cause: EndCause
) -> None:
    assert why_ending(LauncherPod(deleting=True), workflow, "u1", NOW).cause is cause


def test_a_spent_deadline_of_the_step_cancels_though_the_run_goes_on() -> None:
    pod = LauncherPod(deadline=60, started_at=NOW - 61)
    assert why_ending(pod, RUNNING, "u1", NOW).cause is EndCause.CANCEL


def test_a_workflow_that_cannot_be_read_leaves_the_jobset() -> None:
    assert why_ending(LauncherPod(deleting=True), None, "u1", NOW, read=False).cause is EndCause.UNKNOWN


def test_a_launcher_without_a_workflow_is_evicted_or_cannot_tell() -> None:
    assert why_ending(LauncherPod(deleting=True), None, "", NOW).cause is EndCause.EVICTION
    assert why_ending(None, None, "", NOW).cause is EndCause.UNKNOWN


def test_a_run_that_goes_on_is_not_over() -> None:
    assert over(RUNNING, "u1", NOW) == ""
    assert "ended" in over(WorkflowView("wf", "u1", phase="Error"), "u1", NOW)
