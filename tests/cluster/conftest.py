"""A real cluster for the tests: the one in JOBSET_STEPS_KUBECONFIG, or the test cluster, started if it does not run yet.

Every test has a namespace of its own and works as the launcher's service account, with the rights in components/ and no more.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobset_steps.clusters.kubernetes import KubernetesCluster
from jobset_steps.clusters.kubernetes.client import Client
from jobset_steps.errors import ApiError

ROOT = Path(__file__).resolve().parents[2]
TOOLS, PYTHON = "testbed.local/tools:1", "testbed.local/python:1"
ACCOUNT = "launcher"


@pytest.fixture(scope="session")
def kubeconfig() -> Iterator[str]:
    """The path of an administrator's kubeconfig."""
    if given := os.environ.get("JOBSET_STEPS_KUBECONFIG"):
        yield given
        return
    from tests.cluster.harness import machine
    from tests.cluster.harness.session import test_cluster

    if os.environ.get("CI"):
        machine.install()
    try:
        machine.require()
        cluster = test_cluster(build_first=True)
        ran = cluster.running()
        cluster.up()
    except machine.Missing as error:
        pytest.fail(f"no test cluster: {error}", pytrace=False)
    yield str(cluster.kubeconfig)
    if not ran:
        cluster.down()


@pytest.fixture(scope="session")
def admin(kubeconfig: str) -> Client:
    """A client that may do everything; the rights of launchers are installed."""
    client = Client(kubeconfig)
    for item in yaml.safe_load_all((ROOT / "components" / "kubernetes" / "rbac.yaml").read_text()):
        create(client, "/apis/rbac.authorization.k8s.io/v1/clusterroles", item)
    return client


def create(client: Client, path: str, item: dict[str, Any]) -> dict[str, Any]:
    """Create an object; one of that name may be there already."""
    try:
        return client.call("POST", path, body=item)
    except ApiError as error:
        if error.kind != "exists":
            raise
        return client.call("GET", f"{path}/{item['metadata']['name']}")


@dataclass(frozen=True)
class Place:
    """A namespace with a service account that has a launcher's rights."""

    name: str
    admin: Client
    kubeconfig: str
    """Of the launcher's service account."""

    def cluster(self, **more: Any) -> KubernetesCluster:
        """The product's cluster, as the launcher's account."""
        return KubernetesCluster(kubeconfig=self.kubeconfig, namespace=self.name, **more)

    def get(self, path: str) -> dict[str, Any]:
        """An object or list in this namespace, as administrator: "jobsets", "pods/NAME", ..."""
        return self.admin.call("GET", self.path(path))

    def items(self, plural: str) -> list[dict[str, Any]]:
        """All objects of a kind in this namespace."""
        found: list[dict[str, Any]] = self.get(plural)["items"]
        return found

    def path(self, path: str) -> str:
        """The API path of something in this namespace."""
        group = {
            "jobsets": "/apis/jobset.x-k8s.io/v1alpha2",
            "jobs": "/apis/batch/v1",
            "workflows": "/apis/argoproj.io/v1alpha1",
            "localqueues": "/apis/kueue.x-k8s.io/v1beta2",
            "workloads": "/apis/kueue.x-k8s.io/v1beta2",
            "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
        }.get(re.split(r"[/?]", path)[0], "/api/v1")
        return f"{group}/namespaces/{self.name}/{path}"

    def create(self, plural: str, item: dict[str, Any]) -> dict[str, Any]:
        """Create an object here, as administrator."""
        return self.admin.call("POST", self.path(plural), body=item)


@pytest.fixture
def place(admin: Client, kubeconfig: str, tmp_path: Path) -> Iterator[Place]:
    """A namespace of the test's own; it is deleted after it, without waiting."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    admin.call("POST", "/api/v1/namespaces", body={"metadata": {"name": name}})
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    admin.call("POST", accounts, body={"metadata": {"name": ACCOUNT}})
    for role in ("jobset-steps-launcher", "jobset-steps-dry-run"):
        admin.call(
            "POST",
            f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings",
            body=binding(role, name),
        )
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    }
    token = admin.call("POST", f"{accounts}/{ACCOUNT}/token", body=request)["status"]["token"]
    config = yaml.safe_load(Path(kubeconfig).read_text())
    context = next(c for c in config["contexts"] if c["name"] == config["current-context"])["context"]
    context.update(user="launcher", namespace=name)
    config["users"] = [{"name": "launcher", "user": {"token": token}}]
    target = tmp_path / "launcher.kubeconfig"
    target.write_text(yaml.safe_dump(config))
    yield Place(name, admin, str(target))
    admin.call("DELETE", f"/api/v1/namespaces/{name}")


def binding(role: str, namespace: str) -> dict[str, Any]:
    """A role for the launcher's account in its namespace."""
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }


@pytest.fixture
def until() -> Callable[..., Any]:
    """Look again and again until something is true; the last answer is returned. Fails after `seconds`."""
    import time

    def look(what: Callable[[], Any], *, seconds: float = 60.0) -> Any:
        end = time.monotonic() + seconds
        while not (answer := what()):
            if time.monotonic() > end:
                pytest.fail(f"it did not become true within {seconds:.0f} s")
            time.sleep(0.2)
        return answer

    return look
