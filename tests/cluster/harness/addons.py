"""The controllers that the tests are about: JobSet, Kueue and Argo Workflows, run beside the cluster as plain processes.

CRDs and webhook manifests are read from the Go modules that the controllers were built from; webhooks are called by URL.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.cluster.harness import build, images, versions

if TYPE_CHECKING:
    from tests.cluster.harness.cluster import TestCluster

__all__ = ["CLUSTER_QUEUE", "argo", "jobset", "kueue"]

CLUSTER_QUEUE = "small"
"""A Kueue ClusterQueue with one CPU; a LocalQueue in a namespace makes it usable there."""

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"
_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
_KUEUE_WEBHOOKS = (
    "jobset.kb.io",
    "clusterqueue.kb.io",
    "resourceflavor.kb.io",
    "workload.kb.io",
    "cohort.kb.io",
)


def jobset(cluster: TestCluster) -> None:
    """The JobSet controller with its webhooks."""
    source = build.module_directory("jobset-controller", f"sigs.k8s.io/jobset@v{versions.JOBSET}")
    _crds(cluster, source / "config/components/crd/bases")
    _certificates(cluster, cluster.state / "jobset-certs")
    config = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"port": 29443, "host": "127.0.0.1", "certDir": str(cluster.state / "jobset-certs")},
        "metrics": {"bindAddress": "127.0.0.1:28443"},
        "health": {"healthProbeBindAddress": "127.0.0.1:28081"},
    }
    _start(cluster, "jobset-controller", config)
    cluster.wait("JobSet", lambda: cluster.answers("https://127.0.0.1:29443/"), log="jobset-controller")
    _webhooks(cluster, source / "config/components/webhook/manifests.yaml", "jobset", 29443)


def kueue(cluster: TestCluster) -> None:
    """Kueue for JobSets, with one small ClusterQueue."""
    source = build.module_directory("kueue", f"sigs.k8s.io/kueue@v{versions.KUEUE}")
    _crds(cluster, source / "config/components/crd/bases")
    cluster.create(
        "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}}
    )
    _certificates(cluster, cluster.state / "kueue-certs")
    # Where Kueue looks for the pair of its metrics once its own certificates are off.
    _certificates(cluster, Path("/etc/kueue/metrics/certs"))
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": "127.0.0.1:28082"},
        "metrics": {"bindAddress": "127.0.0.1:28444"},
        "webhook": {"port": 29444, "host": "127.0.0.1", "certDir": str(cluster.state / "kueue-certs")},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": ["jobset.x-k8s.io/jobset"]},
    }
    _start(cluster, "kueue", config, "--feature-gates=VisibilityOnDemand=false")
    cluster.wait("Kueue", lambda: cluster.answers("https://127.0.0.1:29444/"), log="kueue")
    _webhooks(
        cluster, source / "config/components/webhook/manifests.yaml", "kueue", 29444, only=_KUEUE_WEBHOOKS
    )
    flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "1"}]}
    queue = {
        "namespaceSelector": {},
        "queueingStrategy": "BestEffortFIFO",
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
    }
    for plural, kind, name, spec in (
        ("resourceflavors", "ResourceFlavor", "default", {}),
        ("clusterqueues", "ClusterQueue", CLUSTER_QUEUE, queue),
    ):
        item = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        }

        def made(path: str = f"{_KUEUE}/{plural}", item: dict[str, Any] = item, name: str = name) -> bool:
            # The webhook may not take calls yet although its port answers.
            try:
                cluster.create(path, item)
            except Exception:
                return False
            return cluster.get(f"{path}/{name}") != {}

        cluster.wait(f"Kueue's {kind}", made, log="kueue")


def argo(cluster: TestCluster) -> None:
    """The Argo Workflow controller, with executor plugins on; $DEFAULT_REQUEUE_TIME, Argo's own setting, is passed on."""
    given = {name: os.environ[name] for name in ("DEFAULT_REQUEUE_TIME",) if name in os.environ}
    module = "github.com/argoproj/argo-workflows/v4"
    source = build.module_directory("workflow-controller", f"{module}@v{versions.ARGO}")
    _crds(cluster, source / "manifests/base/crds/minimal")
    cluster.create(
        "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argo"}}
    )
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "workflow-controller-configmap", "namespace": "argo"},
        "data": {
            "executor": "imagePullPolicy: Never\n",
            "images": yaml.safe_dump({images.TOOLS: {"cmd": ["sh"]}, images.PYTHON: {"cmd": ["python"]}}),
        },
    }
    cluster.create("/api/v1/namespaces/argo/configmaps", config)
    cluster.start(
        "workflow-controller", "--configmap", "workflow-controller-configmap", "--executor-image", images.ARGOEXEC,
        "--executor-image-pull-policy", "Never", "--kubeconfig", str(cluster.kubeconfig), "--namespace", "argo",
        env={"ARGO_EXECUTOR_PLUGINS": "true", "LEADER_ELECTION_DISABLE": "true", **given},
    )  # fmt: skip


def _start(cluster: TestCluster, name: str, config: dict[str, Any], *arguments: str) -> None:
    path = cluster.state / f"{name}.yaml"
    path.write_text(yaml.safe_dump(config))
    cluster.start(name, "--config", str(path), *arguments, env={"KUBECONFIG": str(cluster.kubeconfig)})


def _crds(cluster: TestCluster, folder: Path) -> None:
    names = []
    for path in sorted(folder.glob("*.yaml")):
        for item in yaml.safe_load_all(path.read_text()):
            if item and item.get("kind") == "CustomResourceDefinition":
                cluster.create(_CRDS, item)
                names.append(item["metadata"]["name"])

    def established() -> bool:
        return all(
            any(c["type"] == "Established" and c["status"] == "True" for c in status.get("conditions") or ())
            for status in ((cluster.get(f"{_CRDS}/{name}").get("status") or {}) for name in names)
        )

    cluster.wait(f"the CRDs of {folder}", established)


def _certificates(cluster: TestCluster, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(cluster.pki("webhook.crt"), folder / "tls.crt")
    shutil.copy(cluster.pki("webhook.key"), folder / "tls.key")


def _webhooks(
    cluster: TestCluster, manifests: Path, name: str, port: int, *, only: tuple[str, ...] | None = None
) -> None:
    for item in yaml.safe_load_all(manifests.read_text()):
        item["metadata"]["name"] = (
            f"{name}-{'mutating' if item['kind'].startswith('Mutating') else 'validating'}"
        )
        item["webhooks"] = list(_called_by_url(item["webhooks"], port, cluster.ca_bundle(), only))
        plural = item["kind"].lower() + "s"
        cluster.create(f"{_WEBHOOKS}/{plural}", item)


def _called_by_url(
    webhooks: list[dict[str, Any]], port: int, ca_bundle: str, only: tuple[str, ...] | None
) -> Iterator[dict[str, Any]]:
    for webhook in webhooks:
        # Names begin with m or v: "mjobset.kb.io".
        if only is None or webhook["name"][1:] in only:
            path = webhook["clientConfig"]["service"]["path"]
            yield {
                **webhook,
                "clientConfig": {"url": f"https://127.0.0.1:{port}{path}", "caBundle": ca_bundle},
            }
