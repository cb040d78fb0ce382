"""What holds in every View of every JobSet, whatever its policies and however its pods end."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_sets import ended, manifest, replicated

from jobset_steps.clusters.simulated import SimulatedCluster
from jobset_steps.clusters.simulated.scripts import PodRun, PodScript
from jobset_steps.errors import ApiError
from jobset_steps.observed import View
from jobset_steps.semantics.children import child_job_name

SUSPEND = "suspend"
RESUME = "resume"
KILL = "kill a pod"


@st.composite
def jobsets(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]))
    order = draw(st.sampled_from(["any", "in order", "depends"]))
    jobs = []
    for number, name in enumerate(names):
        job: dict[str, Any] = {"backoffLimit": draw(st.integers(0, 1))}
        kind = draw(st.sampled_from(["plain", "by index", "policy", "success", "queue"]))
        if kind == "by index":
            job = {"backoffLimitPerIndex": draw(st.integers(0, 1)), "backoffLimit": None}
        if kind == "policy":
            action = draw(st.sampled_from(["FailJob", "Ignore", "Count"]))
            on = {"operator": "In", "values": [17]}
            job["podFailurePolicy"] = {"rules": [{"action": action, "onExitCodes": on}]}
        if kind == "success":
            job["successPolicy"] = {"rules": [{"succeededIndexes": "0"}]}
        if kind == "queue":
            job |= {"completionMode": "NonIndexed", "completions": None}
        if draw(st.booleans()):
            job["podReplacementPolicy"] = "Failed"
        depends = [{"name": names[number - 1], "status": draw(st.sampled_from(["Ready", "Complete"]))}]
        made = replicated(
            name,
            draw(st.integers(1, 2)),
            draw(st.integers(1, 3)),
            restart_policy=draw(st.sampled_from(["Never", "OnFailure"])) if kind == "plain" else "Never",
            depends_on=depends if order == "depends" and number and draw(st.booleans()) else None,
            **job,
        )
        made["template"]["spec"] = {k: v for k, v in made["template"]["spec"].items() if v is not None}
        jobs.append(made)
    spec: dict[str, Any] = {}
    if order == "in order":
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    if draw(st.booleans()):
        spec["successPolicy"] = {"operator": draw(st.sampled_from(["All", "Any"]))}
    if draw(st.integers(0, 3)):
        rules = []
        for number in range(draw(st.integers(0, 2))):
            actions = ["FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"]
            rules.append({"name": f"r{number}", "action": draw(st.sampled_from(actions))})
            if draw(st.booleans()):
                rules[-1]["targetReplicatedJobs"] = [draw(st.sampled_from(names))]
        spec["failurePolicy"] = {
            "maxRestarts": draw(st.integers(-1, 3)),
            "restartStrategy": draw(st.sampled_from(["Recreate", "BlockingRecreate"])),
            "rules": rules,
        }
    return manifest(*jobs, **spec)


pod_scripts = st.builds(
    PodScript,
    starts_after=st.sampled_from([0.5, 3.0]),
    ready_after=st.sampled_from([0.0, 2.0, None]),
    runs=st.sampled_from([0.0, 2.0, 7.0, 7.0, 30.0]),
    exit_code=st.sampled_from([0, 0, 0, 1, 17]),
    disrupted=st.sampled_from([False, False, False, True]),
    stops_after=st.sampled_from([0.0, 4.0, 100.0]),
)


class Watcher:
    """Holds the invariants in every View it is told."""

    def __init__(self, jobset: dict[str, Any]) -> None:
        policy = jobset["spec"].get("failurePolicy")
        self.maximum = max(0, policy["maxRestarts"]) if policy is not None else 0
        self.blocking = policy is not None and policy["restartStrategy"] == "BlockingRecreate"
        self.terminal: tuple[str, object, int] | None = None
        self.before = (0, 0)
        self.attempts: set[int] = set()

    def __call__(self, seen: View | ApiError) -> None:
        assert isinstance(seen, View)
        jobset = seen.jobset
        if jobset is None:
            return
        assert 0 <= jobset.restarts_counted <= self.maximum
        assert jobset.restarts_counted <= jobset.restarts
        assert (jobset.restarts, jobset.restarts_counted) >= self.before
        self.before = (jobset.restarts, jobset.restarts_counted)
        names = Counter(job.name for job in seen.jobs)
        assert all(count == 1 for count in names.values())
        assert {job.name for job in seen.jobs} == {
            child_job_name(jobset.name, job.replicated_job, job.index) for job in seen.jobs
        }
        assert all(job.attempt <= jobset.restarts for job in seen.jobs)
        self.attempts |= {job.attempt for job in seen.jobs}
        if self.blocking:
            assert len({job.attempt for job in seen.jobs}) <= 1
        jobs = {job.name for job in seen.jobs}
        for pod in seen.pods:
            assert pod.gone or pod.job in jobs
        for job in seen.jobs:
            assert not (job.is_complete and job.is_failed)
            running = [pod for pod in seen.pods if pod.job == job.name and not pod.finished and not pod.gone]
            assert not ((job.is_complete or job.is_failed) and running)
        conditions = [each.type for each in jobset.conditions]
        assert len(conditions) == len(set(conditions))
        assert not (jobset.condition("Completed") and jobset.condition("Failed"))
        if self.terminal is not None:
            assert (
                jobset.terminal_state,
                jobset.condition(jobset.terminal_state),
                jobset.restarts,
            ) == self.terminal
        elif jobset.terminal_state:
            self.terminal = (jobset.terminal_state, jobset.condition(jobset.terminal_state), jobset.restarts)


@settings(max_examples=150, deadline=None)
@given(
    jobsets(),
    st.lists(pod_scripts, min_size=1, max_size=12),
    st.lists(st.tuples(st.floats(0.0, 40.0), st.sampled_from([SUSPEND, RESUME, KILL])), max_size=4),
)
def test_invariants(jobset: dict[str, Any], bad: list[PodScript], acts: list[tuple[float, str]]) -> None:
    good = PodScript(runs=3.0)

    def scripts(run: PodRun) -> PodScript:
        # Later attempts succeed, so that every history ends.
        number = run.attempt * 5 + run.retry * 3 + run.restart * 2 + run.job * 2 + run.pod
        return bad[number] if number < len(bad) else good

    cluster, watcher = SimulatedCluster(scripts), Watcher(jobset)
    cluster.watch("t", watcher)
    cluster.create(jobset)
    for after, act in acts:
        cluster.advance(after)
        pods = cluster.read("t").pods
        if act == KILL and pods:
            cluster.delete_pod(pods[0].uid)
        if act in (SUSPEND, RESUME):
            cluster.suspend("t", suspended=act == SUSPEND)
    cluster.suspend("t", suspended=False)
    view = cluster.advance_until("t", ended, limit=1e7)
    cluster.advance(1000)

    assert view.jobset is not None
    assert view.jobset.restarts == max(watcher.attempts)
    after_all = cluster.read("t")
    assert not [pod for pod in after_all.pods if not pod.finished]
    assert cluster.next_due() is None
    cluster.delete("t", view.jobset.uid)
    cluster.advance()
    assert cluster.read("t") == View(None, read_at=cluster.now)


@given(st.integers(0, 4), st.integers(1, 3), st.integers(1, 2))
@settings(max_examples=25, deadline=None)
def test_a_job_that_always_fails_runs_once_more_than_max_restarts(
    max_restarts: int, replicas: int, pods: int
) -> None:
    jobset = manifest(replicated(replicas=replicas, pods=pods), failurePolicy={"maxRestarts": max_restarts})
    cluster, attempts = SimulatedCluster(lambda run: PodScript(exit_code=1)), set[int]()

    def look(seen: View | ApiError) -> None:
        attempts.update(pod.attempt for pod in seen.pods)  # type: ignore[union-attr]

    cluster.watch("t", look)
    cluster.create(jobset)
    view = cluster.advance_until("t", ended)

    assert attempts == set(range(max_restarts + 1))
    assert view.jobset is not None
    assert view.jobset.restarts_counted == max_restarts
