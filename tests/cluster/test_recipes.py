"""Recipes on a real cluster: the frameworks themselves, in pods of their own, with crashes, restarts and resumed training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from jobset_steps.clusters.kubernetes.dry_run import refuse_what_could_never_run
from jobset_steps.errors import ApiError
from jobset_steps.launch import plan_of
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.recipes import Role, ddp, jax, leader_workers, mpi, torchrun
from jobset_steps.recipes.presets import exclusive_placement, with_presets
from jobset_steps.runner import Hooks, Runner
from jobset_steps.spec.check import check
from jobset_steps.spec.jobset import FailurePolicy, JobSet
from jobset_steps.spec.template import SpecTemplate
from tests.cluster.conftest import MPI, PYTHON, ROOT, TORCH, Place
from tests.cluster.steps import request, run_all
from tests.cluster.test_demo import claimed

SCRIPTS = ROOT / "tests" / "local" / "recipes"
FINDS_THIS_PROJECT = {"PYTHONPATH": ROOT, "OMP_NUM_THREADS": 1}


@pytest.fixture
def checkpoints(place: Place, tmp_path: Path) -> Iterator[Path]:
    """A claim named `checkpoints`, and its folder."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    claimed(place, "checkpoints", folder)
    yield folder
    place.admin.call("DELETE", f"/api/v1/persistentvolumes/{place.name}-checkpoints")


def tree(made: JobSet | SpecTemplate) -> dict[str, Any]:
    """A recipe's JobSet as it is, but for images that no registry has."""
    assert isinstance(made, JobSet)
    assert check(made) == ()
    data = made.to_dict()
    for replicated in data["spec"]["replicatedJobs"]:
        for container in replicated["template"]["spec"]["template"]["spec"]["containers"]:
            container["imagePullPolicy"] = "Never"
    return data


def run(place: Place, made: JobSet | SpecTemplate) -> Outcome:
    """The outcome of one step."""
    return run_all(place, {"r1": tree(made)})["r1"]


WAYS: dict[str, dict[str, Any]] = {
    "static": {"recipe": torchrun},
    "c10d": {"recipe": torchrun, "rendezvous": "c10d"},
    "ddp": {"recipe": ddp},
}


def pytorch(way: str, *args: Any) -> JobSet | SpecTemplate:
    """Two pods of two processes each."""
    options = dict(WAYS[way])
    command = ["python3", "-c", (SCRIPTS / "ddp_train.py").read_text()]
    made: JobSet | SpecTemplate = options.pop("recipe")(
        "ddp",
        image=TORCH,
        command=command,
        args=args,
        nodes=2,
        nproc_per_node=2,
        checkpoints="pvc://checkpoints",
        failure_policy=FailurePolicy.resilient(1),
        **options,
        env=FINDS_THIS_PROJECT,
    )
    return made


def dry_run(place: Place, manifest: dict[str, Any]) -> None:
    """Ask the server for the JobSet and for what its controllers would make. Raises ApiError."""
    strict = {"dryRun": "All", "fieldValidation": "Strict"}
    place.admin.call("POST", place.path("jobsets"), query=strict, body=manifest)
    refuse_what_could_never_run(place.admin, place.name, manifest)


def test_the_server_would_take_every_recipe_as_it_compiles(place: Place) -> None:
    # Given what each recipe compiles to with about every argument that it has
    manifests = sorted((ROOT / "tests" / "golden" / "recipes").glob("*.yaml"))
    assert len(manifests) >= 4

    for manifest in manifests:
        dry_run(place, yaml.safe_load(manifest.read_text()))


@pytest.mark.parametrize("first", ["leader", "workers"])
def test_a_leaders_success_completes_the_set_whoever_was_first(
    first: Literal["leader", "workers"], place: Place
) -> None:
    driver, actor = ((SCRIPTS / f"rl_{name}.py").read_text() for name in ("driver", "actor"))
    made = leader_workers(
        "rl",
        leader=Role(image=PYTHON, command=["python3", "-c", driver], env={"CRASHES": 1}),
        workers=Role(
            image=PYTHON,
            command=["python3", "-c", actor],
            env={"FLAVOUR": "b"},
            pod={"terminationGracePeriodSeconds": 1},
        ),
        count=2,
        first=first,
        succeeds_with="leader",
        failure_policy=FailurePolicy.resilient(1),
    )
    outcome = run(place, made)

    assert (outcome.verdict, outcome.restarts.total) == (Verdict.SUCCEEDED, 1), outcome
    cause = outcome.attempts[0].cause
    assert cause is not None
    assert (cause.replicated_job, cause.exit_code) == ("leader", 3)
    assert "heard actor-0-b actor-1-b" in cause.log_tail


@pytest.mark.parametrize("way", WAYS)
def test_b12_pytorch_crashes_restarts_once_as_a_whole_and_resumes(
    way: str, place: Place, checkpoints: Path
) -> None:
    outcome = run(place, pytorch(way, "--ends", 3))

    assert outcome.verdict is Verdict.SUCCEEDED, outcome
    assert (outcome.restarts.total, outcome.restarts.counted) == (1, 1)
    assert outcome.metrics == {"steps": 6, "world": 4, "resumed_from": 3}
    cause = outcome.attempts[0].cause
    assert cause is not None
    assert cause.exit_code == 1


@pytest.mark.parametrize("way", WAYS)
def test_pytorchs_fatal_exit_code_ends_it_at_once(way: str, place: Place, checkpoints: Path) -> None:
    outcome = run(place, pytorch(way, "--ends", 3, "--code", 65))

    assert (outcome.verdict, outcome.restarts.total) == (Verdict.FAILED, 0), outcome
    cause = outcome.attempts[0].cause
    assert cause is not None
    assert (cause.exit_code, cause.index) == (65, 1)


def test_a_job_that_has_a_topology_domain_to_itself_trains_there(place: Place) -> None:
    # Given that each child Job wants a node of its own, and one child Job of two pods
    made = ddp(
        "train",
        image=PYTHON,
        command=["python3", "-c", "import os; print(os.environ['RANK'])"],
        nodes=2,
        failure_policy=FailurePolicy.fail_fast(),
    )
    outcome = run(place, with_presets(made, exclusive_placement("kubernetes.io/hostname")))

    assert outcome.verdict is Verdict.SUCCEEDED, outcome


def test_jax_crashes_restarts_once_as_a_whole_and_resumes(place: Place, checkpoints: Path) -> None:
    made = jax(
        "jax",
        image=PYTHON,
        command=["python3", "-c", (SCRIPTS / "jax_train.py").read_text()],
        args=["--ends", 1],
        nodes=2,
        checkpoints="pvc://checkpoints",
        failure_policy=FailurePolicy.resilient(1),
        env={**FINDS_THIS_PROJECT, "JAX_PLATFORMS": "cpu"},
    )
    outcome = run(place, made)

    assert outcome.verdict is Verdict.SUCCEEDED, outcome
    assert (outcome.restarts.total, outcome.restarts.counted) == (1, 1)
    assert outcome.metrics == {"steps": 6, "world": 2, "resumed_from": 3}


def simulation(*args: Any) -> JobSet | SpecTemplate:
    """Two workers of two ranks."""
    return mpi(
        "mpi",
        image=MPI,
        command=["python3", "-c", (SCRIPTS / "mpi_train.py").read_text()],
        args=["--says", "a 'b' \"c\" $HOME", *args],
        workers=2,
        slots_per_worker=2,
        mpirun_args=["--oversubscribe"],
        checkpoints="pvc://checkpoints",
        failure_policy=FailurePolicy.resilient(1),
        env=FINDS_THIS_PROJECT,
    )


def test_mpi_crashes_restarts_once_as_a_whole_and_resumes(place: Place, checkpoints: Path) -> None:
    outcome = run(place, simulation("--ends", 3))

    assert outcome.verdict is Verdict.SUCCEEDED, outcome
    assert (outcome.restarts.total, outcome.restarts.counted) == (1, 1)
    assert outcome.metrics == {"steps": 6, "world": 4, "resumed_from": 3}
    cause = outcome.attempts[0].cause
    assert cause is not None
    # The launcher's log has what all ranks said, each with its words as they are in the spec.
    assert (cause.replicated_job, cause.exit_code) == ("launcher", 1)
    assert "ends now" in cause.log_tail
    assert any("rank 3 of 4, place 1.1, says a 'b' \"c\" $HOME" in line for line in cause.log_tail)


def test_c8_an_mpi_worker_that_is_evicted_restarts_all_for_free(
    place: Place, until: Callable[..., Any]
) -> None:
    # Given a launcher whose ranks work for long, of which one loses its worker
    made = mpi(
        "mpi",
        image=MPI,
        command=["sh", "-c", 'if [ "$JOBSET_RESTART_ATTEMPT" = 0 ]; then echo works; sleep 600; fi'],
        workers=2,
        failure_policy=FailurePolicy.resilient(1),
        pod={"terminationGracePeriodSeconds": 5},
        env=FINDS_THIS_PROJECT,
    )
    with ThreadPoolExecutor() as beside:
        evicted = beside.submit(evict_once_it_works, place, until)
        outcome = run(place, made)
    evicted.result()

    assert (outcome.verdict, outcome.restarts.total, outcome.restarts.counted) == FREE, outcome
    cause = outcome.attempts[0].cause
    assert cause is not None
    assert (cause.replicated_job, cause.disrupted) == ("workers", True)


def evict_once_it_works(place: Place, until: Callable[..., Any]) -> None:
    """Evict the second worker once the launcher has heard from the ranks."""

    def name_of(start: str) -> str:
        return next((name for pod in place.items("pods") if start in (name := pod["metadata"]["name"])), "")

    def log() -> str:
        try:
            return place.admin.text(
                place.path(f"pods/{name_of('-launcher-0-0-')}/log"), {"container": "trainer"}
            )
        except ApiError:
            return ""

    until(lambda: log().count("works") == 2, seconds=90)
    evict(place, name_of("-workers-0-1-"))


POLICIES = {
    "resilient": FailurePolicy.resilient(),
    "spot": FailurePolicy.spot(),
    "fail_fast": FailurePolicy.fail_fast(),
}
FREE, COUNTED, FAILED = (Verdict.SUCCEEDED, 1, 0), (Verdict.SUCCEEDED, 1, 1), (Verdict.FAILED, 0, 0)
# policy -> failure -> (verdict, restarts, restarts that count)
ANSWERS = {
    "resilient": {"1": COUNTED, "65": FAILED, "SIGKILL": COUNTED, "SIGTERM": COUNTED, "taken": FREE},
    "spot": {"1": COUNTED, "65": FAILED, "SIGKILL": COUNTED, "SIGTERM": FREE, "taken": FREE},
    "fail_fast": dict.fromkeys(("1", "65", "SIGKILL", "SIGTERM", "taken"), FAILED),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_c8_what_a_failure_policy_makes_of_each_failure(policy: str, place: Place) -> None:
    # Given a training for each failure, each with a pod that fails in the first attempt or is evicted
    script = (SCRIPTS / "fails_once.py").read_text()
    cluster = place.cluster()
    runner = Runner(cluster)
    handles = {}
    for failure in ANSWERS[policy]:
        made = ddp(
            "train",
            image=PYTHON,
            command=["python3", "-c", script],
            args=[failure],
            nodes=2,
            failure_policy=POLICIES[policy],
            pod={"terminationGracePeriodSeconds": 1},
        )
        seen = evicting_one(place) if failure == "taken" else lambda state: None
        hooks = Hooks(deliver=lambda _: None, seen=seen)
        handles[failure] = runner.add(plan_of(request(tree(made), place, run=failure)), hooks)

    runner.run_all()
    runner.close()
    cluster.close()

    outcomes = {failure: handle.outcome for failure, handle in handles.items()}
    answers = {
        failure: outcome and (outcome.verdict, outcome.restarts.total, outcome.restarts.counted)
        for failure, outcome in outcomes.items()
    }
    assert answers == ANSWERS[policy], outcomes


def evicting_one(place: Place) -> Callable[[Any], None]:
    """Evicts one pod of a step through the API, once both its pods run."""
    evicted: list[str] = []

    def look(state: Any) -> None:
        ready = [pod.name for pod in state.view.pods if pod.ready] if state.view else []
        if len(ready) == 2 and not evicted:
            evicted.append(ready[1])
            evict(place, ready[1])

    return look


def evict(place: Place, pod: str) -> None:
    """As `kubectl drain` does it."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    place.admin.call("POST", place.path(f"pods/{pod}/eviction"), body=body)
