"""Kueue: a queued JobSet waits without being charged for it, and an evicted one is back in the queue."""

from __future__ import annotations

from typing import Any

from jobset_steps.launch import plan_of
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.runner import Handle, Hooks, Runner
from jobset_steps.supervisor.inputs import Progress, Say
from tests.cluster.conftest import Place
from tests.cluster.harness.addons import CLUSTER_QUEUE
from tests.cluster.steps import jobset, replicated, request

LABEL = "kueue.x-k8s.io/queue-name"


def queued(script: str, name: str, *, cpu: str = "800m", priority: str = "") -> dict[str, Any]:
    labels = {LABEL: "q"} | ({"kueue.x-k8s.io/priority-class": priority} if priority else {})
    tree = jobset(
        replicated("workers", script, resources={"requests": {"cpu": cpu}}), name=name, labels=labels
    )
    tree["spec"]["suspend"] = True
    return tree


def test_a18_b13_waiting_and_preemption_are_queue_time_and_charge_no_retry(place: Place) -> None:
    group = "kueue.x-k8s.io/v1beta2"
    place.create(
        "localqueues",
        {
            "apiVersion": group,
            "kind": "LocalQueue",
            "metadata": {"name": "q"},
            "spec": {"clusterQueue": CLUSTER_QUEUE},
        },
    )
    for name, value in (("low", 1), ("high", 100)):
        body = {
            "apiVersion": group,
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": f"{place.name}-{name}"},
            "value": value,
        }
        place.admin.call("POST", f"/apis/{group}/workloadpriorityclasses", body=body)
    cluster = place.cluster()
    runner = Runner(cluster)
    said: list[Say] = []
    second: list[Handle] = []

    def watch(state: Any) -> None:
        running = state.view is not None and any(pod.ready for pod in state.view.pods)
        if running and not second:
            tree = queued("sleep 3", "urgent", priority=f"{place.name}-high")
            second.append(
                runner.add(plan_of(request(tree, place, run="urgent")), Hooks(deliver=lambda _: None))
            )

    first = runner.add(
        plan_of(request(queued("sleep 8", "patient", priority=f"{place.name}-low"), place, run="patient")),
        Hooks(deliver=lambda _: None, say=said.append, seen=watch),
    )
    runner.run_all()
    runner.close()
    outcomes: list[Outcome | None] = [first.outcome, second[0].outcome]
    assert [outcome.verdict for outcome in outcomes if outcome] == [Verdict.SUCCEEDED, Verdict.SUCCEEDED]
    patient = outcomes[0]
    assert patient is not None
    assert (patient.restarts.total, patient.attempts[0].cause) == (0, None)
    assert patient.seconds.queued > 2
    stretches = [each.progress for each in said]
    back = stretches.index(Progress.RUNNING)
    assert Progress.QUEUED in stretches[back:]
    for name in ("low", "high"):
        place.admin.call("DELETE", f"/apis/{group}/workloadpriorityclasses/{place.name}-{name}")


def test_b13_a_queue_without_room_ends_in_a_queue_timeout(place: Place) -> None:
    group = "kueue.x-k8s.io/v1beta2"
    place.create(
        "localqueues",
        {
            "apiVersion": group,
            "kind": "LocalQueue",
            "metadata": {"name": "q"},
            "spec": {"clusterQueue": CLUSTER_QUEUE},
        },
    )
    cluster = place.cluster()
    runner = Runner(cluster)
    said: list[Say] = []
    plan = plan_of(request(queued("true", "huge", cpu="50"), place, budgets={"queue": 6}))
    outcome = runner.run(plan, Hooks(deliver=lambda _: None, say=said.append))
    runner.close()
    assert (outcome.verdict, outcome.exit_code) == (Verdict.QUEUE_TIMEOUT, 124)
    assert ("NotAdmitted", True) in {(each.cause, "q" in each.message) for each in said}
    assert place.items("jobsets") == []
