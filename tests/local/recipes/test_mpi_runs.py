"""The mpi recipe as real processes on the local cluster: ssh servers, an ssh client, mpirun, ranks of mpi4py."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobset_steps.observed import JobSetView
from jobset_steps.recipes import mpi
from jobset_steps.spec.jobset import FailurePolicy, JobSet

SCRIPT = Path(__file__).with_name("mpi_train.py")
SYSTEM = "/usr/bin/python3"
HOSTILE = "a 'b' \"c\" $HOME `d` \\ e;f"
"""What a shell would make something else of."""

Run = Callable[[JobSet], JobSetView]
Logs = Callable[[], dict[str, str]]


@pytest.fixture
def training() -> Callable[..., JobSet]:
    """Makes a JobSet of two workers of two ranks; skips where something of Open MPI is missing."""
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    has_mpi4py = Path(SYSTEM).exists() and subprocess.run(
        [SYSTEM, "-c", "import mpi4py.MPI"], capture_output=True
    )
    if not (sshd and shutil.which("mpirun") and has_mpi4py and has_mpi4py.returncode == 0):
        pytest.skip(
            "no Open MPI with ssh here (apt-get install openmpi-bin openssh-server openssh-client python3-mpi4py); "
            "on the test cluster these trainings always run"
        )

    def make(*args: Any) -> JobSet:
        made = mpi(
            "mpi",
            image="none",
            workers=2,
            slots_per_worker=2,
            script=SCRIPT,
            args=["--says", HOSTILE, *args],
            mpirun_args=["--oversubscribe"],
            env={
                "PATH": "/usr/bin:/bin:/usr/sbin",
                "PYTHONPATH": Path(__file__).resolve().parents[3],
                "TOLD": HOSTILE,
                # All pods are on this machine: Open MPI must not find that out, or it would use no ssh.
                "OMPI_MCA_if_base_do_not_resolve": 1,
                # Nor may they share memory, whose names would clash.
                "OMPI_MCA_btl": "tcp,self",
            },
            checkpoints="pvc://checkpoints/mpi",
            failure_policy=FailurePolicy.resilient(1),
        )
        assert isinstance(made, JobSet)
        return made

    return make


def of_attempt(logs: Logs, number: int) -> str:
    return "".join(text for name, text in logs().items() if f"attempt-{number}/" in name)


def test_a_rank_that_crashes_restarts_launcher_and_workers_and_they_resume(
    training: Callable[..., JobSet], run: Run, logs: Logs
) -> None:
    # Given two workers of two ranks, of which the last rank ends after step 3 of the first attempt
    seen = run(training("--ends", 3))

    # Then all were restarted once and completed
    assert (seen.terminal_state, seen.restarts, seen.restarts_counted) == ("Completed", 1, 1), logs()
    first, second = of_attempt(logs, 0), of_attempt(logs, 1)
    assert "ends now" in first
    for written in (first, second):
        # And ranks were where they belong, with the environment and the words of the spec, byte for byte
        places = sorted(re.findall(r"rank (\d) of (\d), place (\d)\.(\d), says (.*)", written))
        expected = [("0", "0", "0"), ("1", "0", "1"), ("2", "1", "0"), ("3", "1", "1")]
        assert places == [(rank, "4", pod, local, HOSTILE) for rank, pod, local in expected]
        assert written.count(f"told {HOSTILE}\n") == 4
    # And all of them went on where the checkpoint was
    assert re.findall(r"begins at step (\d), attempt 1", second) == ["3"] * 4
    assert second.count("ends with step 6") == 4


def test_a_fatal_exit_code_of_a_rank_is_the_launchers_and_ends_the_set(
    training: Callable[..., JobSet], run: Run, logs: Logs
) -> None:
    seen = run(training("--ends", 3, "--code", 65))

    failed = seen.condition("Failed")
    assert failed is not None, logs()
    assert (seen.restarts, failed.reason) == (0, "FailJobSetFailurePolicyAction"), logs()
