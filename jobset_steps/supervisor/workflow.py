"""What the Argo Workflow around a step says about its end (Kubeflow's runs are Workflows too). Pure.

Two questions: a launcher was told to end, is the run over or only its pod; and is there a JobSet whose run is over and
that nobody will come back for. What SIGTERM looks like in each case was measured on Argo 4.0.5.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobset_steps.supervisor.inputs import EndCause, EndRequest

__all__ = ["LauncherPod", "WorkflowView", "over", "why_ending"]

# The controller tells pods some seconds after a deadline has passed; a launcher's clock may differ by as much.
_CLOCK_SLACK = 5.0


@dataclass(frozen=True, slots=True)
class WorkflowView:
    """What of a Workflow decides. `deadline` is activeDeadlineSeconds, `started_at` POSIX seconds."""

    name: str
    uid: str
    phase: str = ""
    shutdown: str = ""
    deadline: float | None = None
    started_at: float | None = None
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class LauncherPod:
    """What of a launcher's own pod decides. `deadline` is the pod's activeDeadlineSeconds (a step's deadline)."""

    deleting: bool = False
    deadline: float | None = None
    started_at: float | None = None
    disrupted: bool = False


def over(workflow: WorkflowView | None, uid: str, now: float) -> str:
    """Why a run is over, in words; "" while it is not. None: the server says that the Workflow does not exist."""
    if workflow is None:
        return "the Workflow was deleted"
    if workflow.uid != uid:
        return "the Workflow was deleted and another took its name"
    if workflow.deleting:
        return "the Workflow is being deleted"
    if workflow.shutdown:
        return f"the Workflow is shut down ({workflow.shutdown})"
    if _spent(workflow.deadline, workflow.started_at, now):
        return "the Workflow's activeDeadlineSeconds are spent"
    if workflow.phase in ("Succeeded", "Failed", "Error"):
        return f"the Workflow has ended ({workflow.phase})"
    return ""


def why_ending(
    pod: LauncherPod | None, workflow: WorkflowView | None, uid: str, now: float, *, read: bool = True
) -> EndRequest:
    """Why a launcher was sent SIGTERM.

    `uid` is the Workflow's this launcher runs in, "" where it runs in none; `read` is false where the Workflow could not
    be read: then only what the pod shows counts, and a JobSet is left rather than lost.
    """
    if uid and read and (why := over(workflow, uid, now)):
        return EndRequest(EndCause.CANCEL, why)
    if pod is not None and _spent(pod.deadline, pod.started_at, now):
        return EndRequest(EndCause.CANCEL, "the step's activeDeadlineSeconds are spent")
    if uid and not read:
        return EndRequest(EndCause.UNKNOWN, "the Workflow could not be read")
    if pod is not None and (pod.deleting or pod.disrupted):
        return EndRequest(EndCause.EVICTION, "only the launcher's own pod is going")
    return EndRequest(EndCause.UNKNOWN, "neither the Workflow nor the launcher's pod says why")


def _spent(deadline: float | None, started_at: float | None, now: float) -> bool:
    if deadline is None:
        return False
    return deadline <= 0 or (started_at is not None and now >= started_at + deadline - _CLOCK_SLACK)
