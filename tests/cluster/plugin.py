"""The executor plugin on the test cluster, as components/argo has it."""

from __future__ import annotations

import json

import yaml

from tests.cluster.conftest import ACCOUNT, PYTHON, ROOT, Place

__all__ = ["install_plugin"]


def install_plugin(place: Place) -> None:
    """components/argo/plugin.yaml in a namespace, with the image that the test cluster has, and Argo's own needs."""
    for item in yaml.safe_load_all((ROOT / "components" / "argo" / "plugin.yaml").read_text()):
        if item["kind"] == "ConfigMap":
            container = yaml.safe_load(item["data"]["sidecar.container"])
            container |= {"image": PYTHON, "imagePullPolicy": "Never"}
            container["env"] = [{"name": "PYTHONPATH", "value": str(ROOT)}]
            item["data"]["sidecar.container"] = json.dumps(container)
        for subject in item.get("subjects") or ():
            subject["namespace"] = place.name
        plural = {"ConfigMap": "configmaps", "ServiceAccount": "serviceaccounts", "Secret": "secrets"}
        place.create(plural.get(item["kind"], f"{item['kind'].lower()}s"), item)
    # What Argo mounts into an agent for the workflow's own account.
    place.create(
        "secrets",
        {
            "metadata": {
                "name": f"{ACCOUNT}.service-account-token",
                "annotations": {"kubernetes.io/service-account.name": ACCOUNT},
            },
            "type": "kubernetes.io/service-account-token",
        },
    )
    agent = [{"apiGroups": ["argoproj.io"], "resources": ["workflowtasksets"], "verbs": ["list", "watch"]}]
    agent += [{"apiGroups": ["argoproj.io"], "resources": ["workflowtasksets/status"], "verbs": ["patch"]}]
    place.create("roles", {"metadata": {"name": "agent"}, "rules": agent})
    place.create(
        "rolebindings",
        {
            "metadata": {"name": "agent"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "agent"},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": place.name}],
        },
    )
