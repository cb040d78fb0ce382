"""Deletes JobSets whose Workflow is over and that no launcher is left to delete.

For what no process can do: a launcher that was killed with SIGKILL, Argo's `terminate`, which runs no exit handler. It
touches only JobSets that a step made (they carry our label), that have not ended, and whose Workflow owner is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobset_steps.clusters.kubernetes.client import Client
from jobset_steps.clusters.kubernetes.kinds import JOBSETS
from jobset_steps.clusters.kubernetes.launcher_pod import workflow_view
from jobset_steps.clusters.kubernetes.views import jobset_view
from jobset_steps.errors import ApiError
from jobset_steps.supervisor.workflow import WorkflowView, over

__all__ = ["Swept", "sweep"]

_LABEL = "jobset-steps/identity"


@dataclass(frozen=True, slots=True)
class Swept:
    """One JobSet that was left behind, why, and the server's words where it could not be deleted."""

    namespace: str
    jobset: str
    why: str
    error: str = ""


def sweep(
    client: Client, namespace: str | None, now: float, *, workflow: str = "", dry_run: bool = False
) -> Iterator[Swept]:
    """Delete what is left behind in one namespace, or in all (None). Raises ApiError where it cannot even list.

    `workflow`: only of the Workflow of that name, and without asking whether it is over: its exit handler knows.
    """
    path = JOBSETS.path(namespace) if namespace else f"{JOBSETS.group}/{JOBSETS.name}"
    workflows: dict[tuple[str, str, str], WorkflowView | None] = {}
    for item in client.call("GET", path, query={"labelSelector": _LABEL}).get("items") or ():
        view = jobset_view(item)
        owner = next(
            (o for o in item["metadata"].get("ownerReferences") or () if o["kind"] == "Workflow"), None
        )
        if owner is None or view.terminal_state or view.deleting_since is not None:
            continue
        if workflow:
            if owner["name"] == workflow:
                error = "" if dry_run else _delete(client, view.namespace, view.name, view.uid)
                yield Swept(view.namespace, view.name, "its Workflow is at its end", error)
            continue
        key = (view.namespace, owner["apiVersion"], owner["name"])
        if key not in workflows:
            try:
                workflows[key] = workflow_view(
                    client.call("GET", f"/apis/{key[1]}/namespaces/{key[0]}/workflows/{key[2]}")
                )
            except ApiError as error:
                if error.kind != "not_found":
                    yield Swept(view.namespace, view.name, "", f"its Workflow could not be read: {error}")
                    continue
                workflows[key] = None
        if why := over(workflows[key], owner["uid"], now):
            yield Swept(
                view.namespace,
                view.name,
                why,
                "" if dry_run else _delete(client, view.namespace, view.name, view.uid),
            )


def _delete(client: Client, namespace: str, name: str, uid: str) -> str:
    body = {"preconditions": {"uid": uid}, "propagationPolicy": "Foreground"}
    try:
        client.call("DELETE", JOBSETS.path(namespace, name), body=body)
    except ApiError as error:
        return "" if error.kind in ("not_found", "conflict") else error.message
    return ""
