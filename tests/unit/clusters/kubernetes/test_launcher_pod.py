"""Run, step and retry of a launcher pod come from the name Argo gives its node."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_steps.clusters.kubernetes.launcher_pod import place_of


def pod(node: str, workflow: str = "wf-x7") -> dict[str, Any]:
    owner = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "name": workflow,
        "uid": "0123456789ab",
    }
    return {
        "metadata": {
            "uid": "pod-uid",
            "annotations": {"workflows.argoproj.io/node-name": node},
            "ownerReferences": [owner],
        }
    }


@pytest.mark.parametrize(
    ("node", "step", "retry"),
    [
        ("wf-x7", "main", 0),
        ("wf-x7(2)", "main", 2),
        ("wf-x7[0].train", "[0].train", 0),
        ("wf-x7[0].train(3)", "[0].train", 3),
        ("wf-x7.train(0:a)", "train(0:a)", 0),
        ("wf-x7.train(1:7)(12)", "train(1:7)", 12),
        ("wf-x7.train(0:lr:0.1,depth:(3))(1)", "train(0:lr:0.1,depth:(3))", 1),
    ],
)
def test_a1_a_retried_node_is_the_same_step_and_a_loop_item_another(node: str, step: str, retry: int) -> None:
    place = place_of(pod(node))
    assert (place.run, place.step, place.engine.retry) == ("wf-x7-01234567", step, retry)
    assert place.engine.launcher == "pod-uid"
    assert place.owner is not None
    assert place.owner.uid == "0123456789ab"


def test_a_pod_outside_a_workflow_has_no_place() -> None:
    place = place_of({"metadata": {"uid": "u"}})
    assert (place.run, place.step, place.owner) == ("", "", None)
