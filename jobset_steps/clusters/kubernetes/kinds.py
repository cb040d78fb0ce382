"""The three kinds that are read and watched: where the server keeps them and how they become Views. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jobset_steps.clusters.kubernetes.views import job_view, jobset_view, pod_view
from jobset_steps.observed import JobSetView, JobView, PodView

__all__ = ["JOBS", "JOBSETS", "JOBSET_NAME", "KINDS", "PODS", "Kind", "newer", "owner_of"]

JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object: its plural, the API group's path, and its View."""

    name: str
    group: str
    view: Callable[[Mapping[str, Any]], JobSetView | JobView | PodView]

    def path(self, namespace: str, name: str = "") -> str:
        """The path of one object, or of the collection."""
        return f"{self.group}/namespaces/{namespace}/{self.name}" + (f"/{name}" if name else "")


JOBSETS = Kind("jobsets", "/apis/jobset.x-k8s.io/v1alpha2", jobset_view)
JOBS = Kind("jobs", "/apis/batch/v1", job_view)
PODS = Kind("pods", "/api/v1", pod_view)
KINDS = (JOBSETS, JOBS, PODS)


def owner_of(kind: Kind, item: Mapping[str, Any]) -> str:
    """The name of the JobSet that an object belongs to."""
    meta = item["metadata"]
    return str(meta["name"] if kind is JOBSETS else (meta.get("labels") or {}).get(JOBSET_NAME, ""))


def newer(one: str, other: str) -> bool:
    """Whether resourceVersion `one` is newer than `other` (of one object; both are the server's counters)."""
    return one.isdigit() and other.isdigit() and int(one) > int(other)
