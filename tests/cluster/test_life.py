"""Steps on a real cluster from their beginning to their end: verdicts, causes, rules and counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobset_steps.launch import plan_of
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.runner import Hooks, Runner
from jobset_steps.spec.jobset import FailurePolicy
from jobset_steps.spec.resilience import pod_failure_policy
from tests.cluster.conftest import Place
from tests.cluster.steps import jobset, replicated, request, run_all

RESILIENT = FailurePolicy.resilient(max_restarts=2).to_dict()
BY_POLICY = {"podFailurePolicy": pod_failure_policy()}
OOM = "x=$(head -c 200m /dev/zero | tr '\\0' x); echo ${#x}"


@pytest.fixture
def outcomes(place: Place) -> dict[str, Outcome]:
    """Six steps at once, in one process."""
    crash = '[ "$ATTEMPT.$JOB" != 0.1 ] || { echo boom; exit 17; }; sleep 6'
    return run_all(
        place,
        {
            "succeeds": jobset(replicated("workers", "echo well", pods=2)),
            "crashes": jobset(
                replicated("leader", "sleep 6"),
                replicated("workers", crash, replicas=2),
                failurePolicy={"maxRestarts": 1},
            ),
            "exhausts": jobset(replicated("workers", "exit 3"), failurePolicy={"maxRestarts": 1}),
            "fatal": jobset(
                replicated("workers", "echo bad data; exit 65", job=BY_POLICY), failurePolicy=RESILIENT
            ),
            "eats": jobset(replicated("workers", OOM, resources={"limits": {"memory": "64Mi"}})),
            "metrics": jobset(
                replicated("leader", 'echo \'{"metrics": {"loss": 0.5}}\' > /dev/termination-log')
            ),
        },
    )


def test_steps_of_one_process_end_as_the_real_controllers_decide(outcomes: dict[str, Outcome]) -> None:
    told = {
        name: (outcome.verdict, outcome.exit_code, outcome.restarts.counted)
        for name, outcome in outcomes.items()
    }
    assert told == {
        "succeeds": (Verdict.SUCCEEDED, 0, 0),
        "crashes": (Verdict.SUCCEEDED, 0, 1),
        "exhausts": (Verdict.FAILED, 1, 1),
        "fatal": (Verdict.FAILED, 1, 0),
        "eats": (Verdict.FAILED, 1, 0),
        "metrics": (Verdict.SUCCEEDED, 0, 0),
    }
    # c7: the pod that failed first, its exit code and its last lines, although the restart deleted it.
    cause = outcomes["crashes"].attempts[0].cause
    assert cause is not None
    assert (cause.replicated_job, cause.job_index, cause.exit_code) == ("workers", 1, 17)
    assert "boom" in cause.log_tail
    # a13: restarts that are used up are for good.
    assert (outcomes["exhausts"].reason, outcomes["exhausts"].retryable) == ("ReachedMaxRestarts", False)
    # c12: a fatal exit code fails at once, by its rule, with both rules present.
    assert (outcomes["fatal"].rule, outcomes["fatal"].action) == ("fatalExitCode", "FailJobSet")
    memory = outcomes["eats"].attempts[0].cause
    assert memory is not None
    assert (memory.oom, memory.exit_code) == (True, 137)
    assert outcomes["metrics"].metrics == {"loss": 0.5}


def test_c8_c12_an_eviction_restarts_for_free(place: Place, until: Callable[..., Any]) -> None:
    tree = jobset(
        replicated("workers", '[ "$ATTEMPT" = 0 ] && sleep 600; sleep 2', replicas=2, job=BY_POLICY),
        failurePolicy=RESILIENT,
    )
    cluster = place.cluster()
    runner = Runner(cluster)
    evicted: list[str] = []

    def evict(state: Any) -> None:
        pods = [pod for pod in state.view.pods if pod.ready] if state.view else []
        if pods and not evicted:
            evicted.append(pods[0].name)
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pods[0].name}}
            place.admin.call("POST", place.path(f"pods/{pods[0].name}/eviction"), body=body)

    handle = runner.add(plan_of(request(tree, place)), Hooks(deliver=lambda _: None, seen=evict))
    runner.run_all()
    runner.close()
    outcome = handle.outcome
    assert outcome is not None
    assert outcome.verdict is Verdict.SUCCEEDED
    assert (outcome.restarts.total, outcome.restarts.counted) == (1, 0)
    first = outcome.attempts[0]
    assert first.cause is not None
    assert (first.cause.pod, first.cause.disrupted) == (evicted[0], True)
    assert (first.rule, first.action, first.counted) == (
        "disruption",
        "RestartJobSetAndIgnoreMaxRestarts",
        False,
    )
