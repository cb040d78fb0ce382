"""The demo: a worker crashes, the set restarts and resumes, the pipeline promotes; or it fails for good and says why."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def ran(tmp_path: Path, *arguments: str) -> tuple[str, str]:
    """What the demo printed, and the log of the leader over all attempts."""
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            str(ROOT / "pipelines" / "retrain_xgboost.py"),
            "--out",
            str(tmp_path),
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    logs = sorted(tmp_path.glob("*/cluster/jobsets/*/logs/attempt-*/*leader*.log"))
    return done.stdout, "\n".join(path.read_text() for path in logs)


def test_d4_it_crashes_restarts_resumes_from_its_checkpoint_and_promotes(tmp_path: Path) -> None:
    out, log = ran(tmp_path)
    assert [int(number) for number in re.findall(r"resumed from round (\d+)", log)] == [6]
    accuracy = re.search(r"promoted a model with accuracy (0\.\d+), after 1 restart", out)
    assert accuracy is not None
    assert float(accuracy[1]) > 0.9
    (result,) = tmp_path.glob("*/result")
    assert (result / "model.json").stat().st_size > 1000
    assert "<svg" in (result / "report.html").read_text()


def test_it_fails_for_good_and_takes_the_other_branch_with_the_cause(tmp_path: Path) -> None:
    out, _ = ran(tmp_path, "--fail")
    assert "no new model: Failed (FailJobSetFailurePolicyAction)" in out
    assert "decided by rule fatalExitCode: FailJobSet" in out
    assert "exit code 65" in out
    assert "labels are missing" in out
    (result,) = tmp_path.glob("*/result")
    assert not (result / "model.json").exists()


@pytest.mark.parametrize("expected", ["jobset_steps.launch.kfp", "condition-branches"])
def test_it_compiles_for_a_cluster(tmp_path: Path, expected: str) -> None:
    target = tmp_path / "pipeline.yaml"
    subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            str(ROOT / "pipelines" / "retrain_xgboost.py"),
            "--compile",
            str(target),
        ],
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert expected in target.read_text()
