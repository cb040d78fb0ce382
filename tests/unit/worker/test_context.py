import subprocess
import sys

import pytest

from jobset_steps.worker import MissingEnvironment, context

POD = {
    "JOBSET_NAME": "train-1a2b3c4d",
    "JOBSET_STEPS_REPLICATED_JOB": "workers",
    "JOBSET_STEPS_JOB_INDEX": "1",
    "JOB_COMPLETION_INDEX": "2",
    "JOBSET_RESTART_ATTEMPT": "3",
    "JOBSET_STEPS_RANK_OFFSET": "1",
    "JOBSET_STEPS_PODS_PER_JOB": "4",
    "JOBSET_STEPS_WORLD_SIZE": "9",
    "JOBSET_STEPS_COORDINATOR": "train-1a2b3c4d-leader-0-0.train-1a2b3c4d",
    "JOBSET_STEPS_PORT": "29500",
    "JOBSET_STEPS_CHECKPOINT_DIR": "/checkpoints/run-1/train",
}


def test_a_pod_knows_its_place():
    here = context(POD)

    assert here.rank == 1 + 1 * 4 + 2
    assert (here.world_size, here.replicated_job, here.job_index, here.index) == (9, "workers", 1, 2)
    assert (here.coordinator, here.port) == ("train-1a2b3c4d-leader-0-0.train-1a2b3c4d", 29500)
    assert (here.attempt, here.checkpoint_dir) == (3, "/checkpoints/run-1/train")
    assert not here.is_leader


def test_all_that_is_missing_is_named_at_once_and_how_it_is_set():
    with pytest.raises(MissingEnvironment) as error:
        context({"JOB_COMPLETION_INDEX": "0"})

    said = str(error.value)
    assert "JOBSET_STEPS_RANK_OFFSET is not set" in said
    assert "JOBSET_STEPS_WORLD_SIZE is not set" in said
    assert "recipe" in said
    assert error.value.exit_code == 64


def test_what_is_no_number_is_named_with_its_value():
    with pytest.raises(
        MissingEnvironment, match=r"JOB_COMPLETION_INDEX: a whole number from 0 on, 'two' given"
    ):
        context(POD | {"JOB_COMPLETION_INDEX": "two"})


def test_a_rank_that_does_not_fit_in_the_world_is_an_error():
    with pytest.raises(MissingEnvironment, match=r"rank 7 .* does not fit in JOBSET_STEPS_WORLD_SIZE 7"):
        context(POD | {"JOBSET_STEPS_WORLD_SIZE": "7"})


def test_of_several_processes_in_the_first_pod_one_is_the_leader():
    first = POD | {
        "JOBSET_STEPS_RANK_OFFSET": "0",
        "JOBSET_STEPS_JOB_INDEX": "0",
        "JOB_COMPLETION_INDEX": "0",
    }

    assert context(first).is_leader
    assert context(first | {"LOCAL_RANK": "0"}).is_leader
    assert not context(first | {"LOCAL_RANK": "1"}).is_leader
    assert context(first | {"OMPI_COMM_WORLD_LOCAL_RANK": "1"}).local_rank == 1


def test_a_launcher_that_counts_pods_in_its_own_order_is_believed():
    # torchrun with c10d: the pod that came first has group rank 0, whatever its place
    third = POD | {"JOBSET_STEPS_RANK_OFFSET": "0", "JOBSET_STEPS_JOB_INDEX": "0"}

    assert context(third | {"GROUP_RANK": "0", "LOCAL_RANK": "0"}).is_leader
    assert context(third | {"GROUP_RANK": "5"}).rank == 5


def test_importing_it_costs_neither_pydantic_nor_yaml_nor_kubernetes():
    heavy = "pydantic yaml kubernetes re2 typer rich xgboost numpy"

    found = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys, jobset_steps.worker; print([m for m in {heavy!r}.split() if m in sys.modules])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )

    assert found.stdout.strip() == "[]"
