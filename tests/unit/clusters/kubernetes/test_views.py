"""What is read of the API server's JSON."""

from __future__ import annotations

import pytest

from jobset_steps.clusters.kubernetes.follow import leader
from jobset_steps.clusters.kubernetes.views import jobset_view
from jobset_steps.observed import ContainerView, PodView, View


@pytest.mark.parametrize("status", [("workers", "leader"), ("leader", "workers")])
def test_the_leader_is_of_the_first_replicated_job_of_the_spec_whatever_the_order_of_the_status(
    status: tuple[str, ...],
) -> None:
    item = {
        "metadata": {"name": "t"},
        "spec": {"replicatedJobs": [{"name": "leader"}, {"name": "workers"}]},
        "status": {"replicatedJobsStatus": [{"name": name, "ready": 1} for name in status]},
    }
    running = (ContainerView("main", "running"),)
    pods = tuple(
        PodView(
            f"t-{name}-0-0", f"u-{name}", f"t-{name}-0", name, 0, 0, 0, phase="Running", containers=running
        )
        for name in ("workers", "leader")
    )
    view = jobset_view(item)

    assert [each.name for each in view.replicated_jobs] == ["leader", "workers"]
    found = leader(View(view, pods=pods))
    assert found is not None
    assert found.replicated_job == "leader"
