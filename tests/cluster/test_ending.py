"""Never leak, never wait for ever: cancel, the four budgets, and what a step is stuck on while it lasts."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobset_steps.launch import plan_of
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.runner import Handle, Hooks, Runner
from jobset_steps.spec.jobset import JobSet
from jobset_steps.supervisor.inputs import Progress, Say
from tests.cluster.conftest import Place
from tests.cluster.steps import Launcher, jobset, replicated, request

FOREVER = replicated("workers", "sleep 600", pods=2)


def test_a4_sigterm_deletes_in_the_foreground_and_exits_143(
    place: Place, tmp_path: Path, until: Callable[..., Any]
) -> None:
    launcher = Launcher(place, jobset(FOREVER), tmp_path, "--run", "r1")
    launcher.until_it_says("Running")
    launcher.process.send_signal(signal.SIGTERM)
    code, out, _ = launcher.ended(30)
    assert (code, out.startswith("Cancelled")) == (143, True)
    assert place.items("jobsets") == []
    assert place.items("pods") == []
    assert Launcher(place, jobset(FOREVER), tmp_path, "--run", "r1", "--retry", "1").ended()[0] == 143


def test_a_budget_that_is_spent_deletes_the_jobset_and_says_which(place: Place) -> None:
    """Six steps at once: each of the budgets, and causes that are told early and never end as hangs."""
    big = {"requests": {"cpu": "1000"}}
    trees: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "queue": (jobset(FOREVER, suspend=True), {"queue": 8}),
        "run": (jobset(FOREVER), {"run": 4}),
        "unschedulable": (jobset(replicated("workers", "true", resources=big)), {"startup": 45}),
        "image": (
            jobset(replicated("workers", "true", image="registry.invalid/none:1", imagePullPolicy="Always")),
            {"startup": 45},
        ),
        "nobody": (jobset(FOREVER, managedBy="example.com/nobody"), {"startup": 80}),
        "crash": (
            jobset(replicated("workers", "true", envFrom=[{"configMapRef": {"name": "missing"}}])),
            {"startup": 45},
        ),
    }
    cluster = place.cluster()
    runner = Runner(cluster)
    said: dict[str, list[Say]] = {name: [] for name in trees}
    handles: dict[str, Handle] = {}
    for name, (tree, budgets) in trees.items():
        plan = plan_of(request(tree, place, run=name, budgets=budgets))
        handles[name] = runner.add(plan, Hooks(deliver=lambda _: None, say=said[name].append))
    runner.run_all()
    runner.close()
    ended: dict[str, Outcome] = {name: handle.outcome for name, handle in handles.items() if handle.outcome}
    startup = (Verdict.STARTUP_TIMEOUT, 124)
    assert {name: (outcome.verdict, outcome.exit_code) for name, outcome in ended.items()} == {
        "queue": (Verdict.QUEUE_TIMEOUT, 124),
        "run": (Verdict.RUN_TIMEOUT, 124),
        **dict.fromkeys(("unschedulable", "image", "nobody", "crash"), startup),
    }
    causes = {
        name: {each.cause for each in told if each.progress is Progress.STUCK} for name, told in said.items()
    }
    assert "Unschedulable" in causes["unschedulable"]
    assert causes["image"] & {"ErrImagePull", "ImagePullBackOff"}
    assert "NoController" in causes["nobody"]
    assert "CreateContainerConfigError" in causes["crash"]
    assert any("Insufficient cpu" in each.message for each in said["unschedulable"])
    assert [item["metadata"]["name"] for item in place.items("jobsets")] == []


def test_c4_without_the_right_to_dry_run_a_job_that_can_never_be_created_is_stuck(place: Place) -> None:
    place.admin.call("DELETE", place.path("rolebindings/jobset-steps-dry-run"))
    # Past our own rules: JobSet admits an Indexed Job without completions, the Job API refuses it, nothing happens.
    tree = jobset(FOREVER)
    del tree["spec"]["replicatedJobs"][0]["template"]["spec"]["completions"]
    plan = replace(plan_of(request(jobset(FOREVER), place)), jobset=JobSet.from_dict(tree))
    cluster = place.cluster()
    runner = Runner(cluster)
    outcome = runner.run(plan, Hooks(deliver=lambda _: None))
    runner.close()
    assert (outcome.verdict, outcome.reason, outcome.exit_code) == (Verdict.STUCK, "JobCreationFailed", 65)
    assert "completions" in outcome.message
    assert place.items("jobsets") == []
