"""Workflows on the real Argo controller: submitted as a launcher's account, looked at by the names of their nodes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import yaml
from hera.workflows import Workflow

from tests.cluster.conftest import ACCOUNT, ARGO, PYTHON, ROOT, Place, binding, put

__all__ = ["IMAGE", "Run", "pod_patch", "submitted", "workflow_rights"]

_RBAC = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_ENDED = ("Succeeded", "Failed", "Error")

IMAGE = {"image": PYTHON, "image_pull_policy": "Never"}
"""Options of a JobSetStep with which its pods start on the test cluster."""


def workflow_rights(place: Place) -> None:
    """The rights of components/argo for the launcher's account, and no more."""
    for item in yaml.safe_load_all((ROOT / "components" / "argo" / "rbac.yaml").read_text()):
        put(place.admin, _RBAC, item)
        place.create("rolebindings", binding("ClusterRole", item["metadata"]["name"], place.name))


class Run:
    """One Workflow on the cluster."""

    def __init__(self, place: Place, name: str, until: Callable[..., Any]) -> None:
        self.place, self.name, self.until = place, name, until

    def read(self) -> dict[str, Any]:
        return self.place.get(f"workflows/{self.name}")

    def phase(self) -> str:
        return str((self.read().get("status") or {}).get("phase") or "")

    def ended(self, seconds: float = 120) -> str:
        """Its phase, once it has ended."""
        self.until(lambda: self.phase() in _ENDED, seconds=seconds)
        return self.phase()

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Nodes by what follows the Workflow's name: "" is the Workflow's own, ".train(0)" a first try."""
        found = (self.read().get("status") or {}).get("nodes") or {}
        return {node["name"].removeprefix(self.name): node for node in found.values()}

    def outputs(self, node: str) -> dict[str, str]:
        given = (self.nodes()[node].get("outputs") or {}).get("parameters") or ()
        return {each["name"]: each["value"] for each in given}

    def pods(self, template: str = "") -> list[dict[str, Any]]:
        """Its pods, of one template alone where it is named."""
        pods = self.place.items(f"pods?labelSelector=workflows.argoproj.io/workflow={self.name}")
        return [pod for pod in pods if not template or f"-{template}-" in pod["metadata"]["name"]]

    def log(self, pod: str) -> str:
        try:
            return self.place.admin.text(self.place.path(f"pods/{pod}/log"), {"container": "main"})
        except Exception:
            return ""

    def change(self, **spec: Any) -> None:
        """Set fields of its spec, as `argo stop` and others do."""
        path = self.place.path(f"workflows/{self.name}")

        def done() -> bool:
            item = self.read()
            item["spec"].update(spec)
            try:
                self.place.admin.call("PUT", path, body=item)
            except Exception:  # the controller wrote in between
                return False
            return True

        self.until(done)

    def retry(self) -> None:
        """What `argo retry` does: forget what failed and came after it, with its pods, and run the Workflow on."""
        item = self.read()
        nodes: dict[str, dict[str, Any]] = item["status"]["nodes"]
        handler = f"{self.name}.onExit"
        failed = [
            name
            for name, node in nodes.items()
            if node["phase"] in ("Failed", "Error") and node["type"] in ("Pod", "Retry", "Plugin")
        ]
        gone = {name for name, node in nodes.items() if node["name"].startswith(handler)}
        while failed:
            gone.add(name := failed.pop())
            failed += [child for child in nodes[name].get("children") or () if child not in gone]
        for pod in self.pods():
            if pod["metadata"]["annotations"]["workflows.argoproj.io/node-id"] in gone:
                self.place.admin.call("DELETE", self.place.path(f"pods/{pod['metadata']['name']}"))
        self.until(
            lambda: (
                not {p["metadata"]["annotations"]["workflows.argoproj.io/node-id"] for p in self.pods()}
                & gone
            )
        )
        item["status"]["nodes"] = {
            name: self._reset(node, gone) for name, node in nodes.items() if name not in gone
        }
        item["metadata"]["labels"].pop("workflows.argoproj.io/completed", None)
        item["spec"].pop("shutdown", None)
        for key in ("phase", "finishedAt", "message", "storedWorkflowTemplateSpec"):
            item["status"].pop(key, None)
        self.place.admin.call("PUT", self.place.path(f"workflows/{self.name}"), body=item)

    @staticmethod
    def _reset(node: dict[str, Any], gone: set[str]) -> dict[str, Any]:
        made = dict(node)
        for key in ("children", "outboundNodes"):
            if key in made:
                made[key] = [each for each in made[key] if each not in gone]
        if node["phase"] in ("Failed", "Error"):
            made |= {"phase": "Running", "finishedAt": None, "message": ""}
        return made

    def delete(self) -> None:
        self.place.admin.call("DELETE", self.place.path(f"workflows/{self.name}"))


def submitted(
    place: Place, workflow: Workflow | dict[str, Any], until: Callable[..., Any], **spec: Any
) -> Run:
    """Submit a workflow made with Hera or by hand; `spec` is added to its spec."""
    body = json.loads(json.dumps(workflow.to_dict() if isinstance(workflow, Workflow) else workflow))
    body |= ARGO
    body["spec"] |= {"serviceAccountName": ACCOUNT, "podSpecPatch": json.dumps(pod_patch()), **spec}
    made = place.create("workflows", body)
    return Run(place, made["metadata"]["name"], until)


def pod_patch() -> dict[str, Any]:
    """Pods find the project where the image has it, or, with JOBSET_STEPS_TREE, the tree that is being worked on."""
    main: dict[str, Any] = {"name": "main", "env": [{"name": "PYTHONPATH", "value": str(ROOT)}]}
    if not os.environ.get("JOBSET_STEPS_TREE"):
        return {"containers": [main]}
    main["volumeMounts"] = [{"name": "tree", "mountPath": str(ROOT)}]
    volume = {"name": "tree", "hostPath": {"path": str(ROOT)}}
    return {"containers": [main], "volumes": [volume]}
