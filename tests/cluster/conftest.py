"""A real cluster for the tests: the one in JOBSET_STEPS_KUBECONFIG, or the test cluster, started if it does not run yet.

Every test has a namespace of its own and works as the launcher's service account, with the rights in components/ and no more.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobset_steps.clusters.kubernetes import KubernetesCluster
from jobset_steps.clusters.kubernetes.client import Client, lines, wake
from jobset_steps.errors import ApiError

ROOT = Path(__file__).resolve().parents[2]
TOOLS, PYTHON, TORCH, MPI = (f"testbed.local/{name}:1" for name in ("tools", "python", "torch", "mpi"))
ACCOUNT = "launcher"
ARGO = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}
KUEUE = "kueue.x-k8s.io/v1beta2"
_RBAC = "rbac.authorization.k8s.io"


@pytest.fixture(scope="session")
def kubeconfig() -> Iterator[str]:
    """The path of an administrator's kubeconfig."""
    if given := os.environ.get("JOBSET_STEPS_KUBECONFIG"):
        yield given
        return
    from tests.cluster.harness import machine
    from tests.cluster.harness.session import test_cluster

    cluster, ran = None, False
    try:
        machine.require()
        cluster = test_cluster(build_first=True)
        ran = cluster.running()
        cluster.up()
        yield str(cluster.kubeconfig)
    except machine.Missing as error:
        pytest.fail(f"no test cluster: {error}", pytrace=False)
    finally:
        if cluster is not None and not ran:
            cluster.down()


@pytest.fixture(scope="session")
def admin(kubeconfig: str) -> Client:
    """A client that may do everything; the rights of launchers are installed."""
    return administrator(kubeconfig)


def administrator(kubeconfig: str) -> Client:
    """A client with the rights of a kubeconfig; it installs the rights of launchers."""
    client = Client(kubeconfig)
    for item in yaml.safe_load_all((ROOT / "components" / "kubernetes" / "rbac.yaml").read_text()):
        put(client, f"/apis/{_RBAC}/v1/clusterroles", item)
    return client


def put(client: Client, path: str, item: dict[str, Any]) -> None:
    """Create an object, or replace the one of that name: a cluster that ran before may hold an older one."""
    try:
        client.call("POST", path, body=item)
    except ApiError as error:
        if error.kind != "exists":
            raise
        client.call("PUT", f"{path}/{item['metadata']['name']}", body=item)


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
            "cronworkflows": "/apis/argoproj.io/v1alpha1",
            "localqueues": f"/apis/{KUEUE}",
            "workloads": f"/apis/{KUEUE}",
            "roles": f"/apis/{_RBAC}/v1",
            "rolebindings": f"/apis/{_RBAC}/v1",
        }.get(re.split(r"[/?]", path)[0], "/api/v1")
        return f"{group}/namespaces/{self.name}/{path}"

    def create(self, plural: str, item: dict[str, Any]) -> dict[str, Any]:
        """Create an object here, as administrator."""
        return self.admin.call("POST", self.path(plural), body=item)

    def local_queue(self, name: str, cluster_queue: str) -> None:
        """A Kueue LocalQueue here."""
        spec = {"clusterQueue": cluster_queue}
        item = {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": {"name": name}, "spec": spec}
        self.create("localqueues", item)

    def token(self, **bound_to: Any) -> str:
        """A token of the launcher's account."""
        spec = {"expirationSeconds": 3600, **({"boundObjectRef": bound_to} if bound_to else {})}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = self.create(f"serviceaccounts/{ACCOUNT}/token", request)
        return str(answer["status"]["token"])


@pytest.fixture
def place(admin: Client, kubeconfig: str, tmp_path: Path) -> Iterator[Place]:
    """A namespace of the test's own; it is deleted after it, without waiting."""
    with new_place(admin, kubeconfig, tmp_path) as made:
        yield made


@contextmanager
def new_place(admin: Client, kubeconfig: str, folder: Path) -> Iterator[Place]:
    """A namespace with the launcher's account; its kubeconfig is kept in `folder`."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    admin.call("POST", "/api/v1/namespaces", body={"metadata": {"name": name}})
    target = folder / "launcher.kubeconfig"
    place = Place(name, admin, str(target))
    place.create("serviceaccounts", {"metadata": {"name": ACCOUNT}})
    for role in ("jobset-steps-launcher", "jobset-steps-dry-run"):
        place.create("rolebindings", binding("ClusterRole", role, name))
    config = yaml.safe_load(Path(kubeconfig).read_text())
    context = next(c for c in config["contexts"] if c["name"] == config["current-context"])["context"]
    context.update(user="launcher", namespace=name)
    config["users"] = [{"name": "launcher", "user": {"token": place.token()}}]
    target.write_text(yaml.safe_dump(config))
    try:
        yield place
    finally:
        admin.call("DELETE", f"/api/v1/namespaces/{name}")


def binding(kind: str, role: str, namespace: str) -> dict[str, Any]:
    """A role for the launcher's account in its namespace."""
    return {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }


def executor_rights(place: Place) -> None:
    """What Argo asks of any workflow pod's account: to write its results. No right over JobSets comes with it."""
    rule = {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]}
    place.create("roles", {"metadata": {"name": "executor"}, "rules": [rule]})
    place.create("rolebindings", binding("Role", "executor", place.name))
    # The account that a Workflow runs as where it names none.
    other = binding("Role", "executor", place.name)
    other["metadata"]["name"], other["subjects"][0]["name"] = "executor-default", "default"
    place.create("rolebindings", other)


class History:
    """Every JobSet that there ever was in a namespace since this began, by uid: a watch of its own sees them made."""

    def __init__(self, place: Place) -> None:
        self._made: dict[str, str] = {}
        self._place = place
        path = place.path("jobsets")
        begun = place.admin.call("GET", path)["metadata"]["resourceVersion"]
        query = {"watch": "true", "resourceVersion": begun, "allowWatchBookmarks": "true"}
        self._stream = place.admin.open(path, query, silence=600)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def uids(self) -> set[str]:
        """Uids of all JobSets made so far: what is there now has been heard of before this returns."""
        end = time.monotonic() + 20
        while not {item["metadata"]["uid"] for item in self._place.items("jobsets")} <= set(self._made):
            assert self._thread.is_alive(), "the watch of the test itself broke"
            assert time.monotonic() < end
            time.sleep(0.1)
        return set(self._made)

    def close(self) -> None:
        wake(self._stream)

    def _follow(self) -> None:
        try:
            for line in lines(self._stream):
                event = json.loads(line)
                if event["type"] == "ADDED":
                    self._made[event["object"]["metadata"]["uid"]] = event["object"]["metadata"]["name"]
        except ApiError:
            return


@pytest.fixture
def history(place: Place) -> Iterator[History]:
    """All JobSets ever made in the test's namespace."""
    history = History(place)
    yield history
    history.close()


@pytest.fixture
def until() -> Callable[..., Any]:
    """Look again and again until something is true; the last answer is returned. Fails after `seconds`."""

    def look(what: Callable[[], Any], *, seconds: float = 60.0) -> Any:
        end = time.monotonic() + seconds
        while not (answer := what()):
            if time.monotonic() > end:
                pytest.fail(f"it did not become true within {seconds:.0f} s")
            time.sleep(0.2)
        return answer

    return look
