"""What stands in torchrun's place in the pod, with a stand-in for PyTorch that ends as it is told."""

import subprocess
import sys
from pathlib import Path

import pytest

import jobset_steps.worker

SOURCE = (Path(jobset_steps.worker.__file__).parent / "torchrun.py").read_text()
RUN = """
import sys
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

def main(arguments):
    print(arguments)
    if "--barrier" in arguments:
        from torch.distributed.elastic.agent.server.api import SimpleElasticAgent
        for state in ("SUCCEEDED", "FAILED"):
            SimpleElasticAgent(state)._exit_barrier()
    if arguments[-1] != "well":
        raise ChildFailedError(int(arguments[-1]))
"""
ERRORS = """
class Failure:
    def __init__(self, exitcode):
        self.exitcode = exitcode

class ChildFailedError(Exception):
    def get_first_failure(self):
        return 3, Failure(self.args[0])
"""
STD = """
from enum import IntFlag

class Std(IntFlag):
    NONE = 0
    OUT = 1

    @classmethod
    def from_str(cls, text):
        return next((one for one in cls if one == int(text)), None)
"""
AGENT = """
from enum import Enum
from types import SimpleNamespace

WorkerState = Enum("WorkerState", ["SUCCEEDED", "FAILED"])

class SimpleElasticAgent:
    def __init__(self, state):
        self._worker_group = SimpleNamespace(state=WorkerState[state])
        self._exit_barrier_timeout = 300

    def _exit_barrier(self):
        print(self._worker_group.state.name, self._exit_barrier_timeout)
"""


@pytest.fixture
def torch(tmp_path):
    """A directory that holds the stand-in."""
    files = {
        "run.py": RUN,
        "elastic/multiprocessing/__init__.py": STD,
        "elastic/multiprocessing/errors.py": ERRORS,
        "elastic/agent/server/api.py": AGENT,
    }
    for name, text in files.items():
        path = tmp_path / "torch" / "distributed" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(torch, *arguments, **env):
    return subprocess.run(
        [sys.executable, "-c", SOURCE, *arguments],
        env={"PYTHONPATH": str(torch), **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("end", "code"), [("well", 0), ("1", 1), ("66", 66), ("-9", 137), ("-11", 139)])
def test_the_exit_code_is_that_of_the_process_that_failed_first(torch, end, code):
    done = run(torch, "--nnodes=2", "train.py", end)

    assert done.stdout.strip() == str(["--nnodes=2", "train.py", end])
    assert done.returncode == code


def test_a_node_whose_processes_failed_waits_5_seconds_for_the_others_instead_of_300(torch):
    done = run(torch, "--barrier", "well")

    assert done.stdout.splitlines()[1:] == ["SUCCEEDED 300", "FAILED 5.0"]


@pytest.mark.parametrize(("index", "hosts"), [("0", 1), ("1", 0), ("10", 0)])
def test_b12_with_c10d_the_first_pod_hosts_the_rendezvous_whatever_names_it_has(torch, index, hosts):
    done = run(torch, "--rdzv_backend=c10d", "well", JOB_COMPLETION_INDEX=index)

    given = f"--rdzv_conf=is_host={hosts},read_timeout=900,join_timeout=900"
    assert done.stdout.strip() == str([given, "--rdzv_backend=c10d", "well"])
