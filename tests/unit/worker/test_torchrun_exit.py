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


@pytest.fixture
def torch(tmp_path):
    """A directory that holds the stand-in."""
    errors = tmp_path / "torch" / "distributed" / "elastic" / "multiprocessing"
    errors.mkdir(parents=True)
    for package in (
        "torch",
        "torch/distributed",
        "torch/distributed/elastic",
        "torch/distributed/elastic/multiprocessing",
    ):
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "torch" / "distributed" / "run.py").write_text(RUN)
    (errors / "errors.py").write_text(ERRORS)
    return tmp_path


@pytest.mark.parametrize(("end", "code"), [("well", 0), ("1", 1), ("66", 66), ("-9", 137), ("-11", 139)])
def test_the_exit_code_is_that_of_the_process_that_failed_first(torch, end, code):
    done = subprocess.run(
        [sys.executable, "-c", SOURCE, "--nnodes=2", "train.py", end],
        env={"PYTHONPATH": str(torch)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.strip() == str(["--nnodes=2", "train.py", end])
    assert done.returncode == code
