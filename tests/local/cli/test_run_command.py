"""`jobset-steps run` as people use it: a real process, real pods of processes, files and exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.unit.spec.examples import container, job, jobset, pod, replicated

ROOT = Path(__file__).resolve().parents[3]


def sh(script: str, **more: Any) -> dict[str, Any]:
    fields = {"ATTEMPT": "restart-attempt", "JOB": "job-index"}
    env = [
        {
            "name": name,
            "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['jobset.sigs.k8s.io/{key}']"}},
        }
        for name, key in fields.items()
    ]
    return job(pod(container(command=["sh", "-c", script], env=env), terminationGracePeriodSeconds=1), **more)


def started(tmp_path: Path, tree: Any, *arguments: str) -> subprocess.Popen[str]:
    spec = tmp_path / "spec.yaml"
    spec.write_text(tree if isinstance(tree, str) else yaml.safe_dump(tree))
    return subprocess.Popen(
        [sys.executable, "-m", "jobset_steps.cli", "run", str(spec), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "JOBSET_STEPS_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)},
    )


def ended(process: subprocess.Popen[str], seconds: float = 60) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=seconds)
    assert "Traceback" not in out + err
    return process.returncode, out, err


def processes_with(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if mark in line and "jobset_steps.cli" not in line:
            found.append(line)
    return found


CRASHES_ONCE = jobset(
    replicated("leader", sh("echo leads; sleep 0.5")),
    replicated(
        "workers",
        sh('echo works; [ "$ATTEMPT.$JOB" != 0.1 ] || { echo boom; exit 17; }; sleep 0.3'),
        replicas=2,
    ),
    failurePolicy={"maxRestarts": 1},
)


def test_a_crash_is_restarted_and_told_with_its_cause(tmp_path: Path) -> None:
    report = tmp_path / "deep" / "report.html"
    code, out, err = ended(
        started(
            tmp_path,
            CRASHES_ONCE,
            "-o",
            str(tmp_path / "outcome.json"),
            "--report",
            str(report),
            "--report",
            "r.md",
        )
    )
    assert code == 0
    assert out.startswith("Succeeded")
    assert "| leads" in err
    outcome = json.loads((tmp_path / "outcome.json").read_text())
    cause = outcome["attempts"][0]["cause"]
    assert (cause["replicated_job"], cause["job_index"], cause["exit_code"]) == ("workers", 1, 17)
    assert "boom" in cause["log_tail"]
    assert "<svg" in report.read_text()
    assert (tmp_path / "r.md").exists()


def test_c7_a_failure_for_good_exits_1_and_a_branch_exits_0(tmp_path: Path) -> None:
    fails = jobset(replicated("workers", sh("echo no luck; exit 3")))
    code, out, _ = ended(started(tmp_path, fails))
    assert (code, "no luck" in out) == (1, True)
    code, out, _ = ended(started(tmp_path, fails, "--on-failure", "branch", "-o", "o.json"))
    assert code == 0
    assert json.loads((tmp_path / "o.json").read_text())["verdict"] == "Failed"


def test_every_fault_at_once_and_nothing_is_started(tmp_path: Path) -> None:
    bad = jobset(replicated("Workers", sh("true", backoffLimit=-1)), ttlSecondsAfterFinished=1)
    code, out, err = ended(started(tmp_path, bad))
    assert code == 64
    assert len(err.strip().splitlines()) == 3
    assert out == ""
    assert not (tmp_path / "home").exists()


def test_a4_sigterm_ends_the_training_and_leaves_no_process(tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    tree = jobset(
        replicated(
            "workers", sh(f": {mark}; trap '' TERM; echo up; while true; do sleep 0.2; done"), replicas=2
        )
    )
    process = started(tmp_path, tree, "-o", "o.json")
    assert process.stderr is not None
    for line in process.stderr:
        if "| up" in line:
            break
    assert processes_with(mark)
    process.send_signal(signal.SIGTERM)
    code, out, _ = ended(process)
    assert (code, out.startswith("Cancelled")) == (143, True)
    assert json.loads((tmp_path / "o.json").read_text())["verdict"] == "Cancelled"
    assert processes_with(mark) == []


def test_a_run_time_out_ends_it_with_124(tmp_path: Path) -> None:
    tree = jobset(replicated("workers", sh("sleep 100")))
    code, out, _ = ended(started(tmp_path, tree, "--run-timeout", "1s"))
    assert (code, out.startswith("RunTimeout")) == (124, True)


def test_a1_the_same_run_replays_its_outcome_and_trains_once(tmp_path: Path) -> None:
    tree = jobset(replicated("workers", sh("echo once >> $OLDPWD/count; true")))
    tree["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["command"] = [
        "sh",
        "-c",
        f"echo once >> {tmp_path}/count",
    ]
    first = ended(started(tmp_path, tree, "--run", "r1"))
    second = ended(started(tmp_path, tree, "--run", "r1"))
    assert (first[0], second[0]) == (0, 0)
    assert first[1] == second[1]
    assert (tmp_path / "count").read_text() == "once\n"


def test_another_spec_under_the_same_run_is_refused(tmp_path: Path) -> None:
    assert ended(started(tmp_path, jobset(replicated("workers", sh("true"))), "--run", "r1"))[0] == 0
    code, out, _ = ended(started(tmp_path, jobset(replicated("workers", sh("false"))), "--run", "r1"))
    assert (code, out.startswith("Rejected")) == (64, True)


def test_holes_are_filled_from_the_command_line(tmp_path: Path) -> None:
    tree = jobset(replicated("workers", sh("echo data is $hole{data}")))
    code, _, err = ended(started(tmp_path, tree, "--set", 'data="a b"'))
    assert code == 0
    assert "| data is a b" in err


def test_a_second_process_of_the_same_run_waits_for_the_first_and_ends_alike(tmp_path: Path) -> None:
    tree = jobset(replicated("leader", sh("echo leads; sleep 3")))
    first = started(tmp_path, tree, "--run", "r1")
    assert first.stderr is not None
    while "Running" not in first.stderr.readline():
        assert first.poll() is None

    second = ended(started(tmp_path, tree, "--run", "r1"))

    assert (ended(first)[0], second[0]) == (0, 0)
    assert "Succeeded" in second[1]
    assert "leads" not in second[2], "trained once"


def test_who_stops_reading_ends_no_training(tmp_path: Path) -> None:
    tree = jobset(replicated("leader", sh("echo leads; sleep 1; echo ünï; exit 3")))
    process = started(tmp_path, tree, "-o", str(tmp_path / "o.json"))
    assert process.stdout is not None
    assert process.stderr is not None

    process.stdout.close()
    process.stderr.close()

    assert process.wait(60) == 1
    assert json.loads((tmp_path / "o.json").read_text())["verdict"] == "Failed"


def test_an_output_of_another_encoding_shows_escapes(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(yaml.safe_dump(jobset(replicated("leader", sh("echo ünï; exit 3")))))

    ran = subprocess.run(
        [sys.executable, "-m", "jobset_steps.cli", "run", str(spec)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={
            **os.environ,
            "JOBSET_STEPS_HOME": str(tmp_path / "home"),
            "PYTHONPATH": str(ROOT),
            "PYTHONIOENCODING": "ascii",
        },
    )

    assert (ran.returncode, r"\xfcn\xef" in ran.stdout) == (1, True)
