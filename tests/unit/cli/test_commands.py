"""The command line without a cluster: what is wrong ends with 64 and one line a fault, never with a traceback."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobset_steps.cli import main
from jobset_steps.outcome import Outcome, Verdict
from tests.unit.spec.examples import changed, container, job, jobset, pod, replicated


def written(path: Path, tree: Any) -> str:
    path.write_text(tree if isinstance(tree, str) else yaml.safe_dump(tree))
    return str(path)


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return code, out, err


BAD = changed(
    changed(jobset(), "spec.failurePolicy", {"maxRestarts": -1}), "spec.replicatedJobs.0.name", "Workers"
)


def test_validate_says_ok_or_every_fault_of_every_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = written(tmp_path / "good.yaml", jobset()), written(tmp_path / "bad.yaml", BAD)
    code, out, _ = ran(capsys, "validate", good, bad)
    assert code == 64
    lines = out.splitlines()
    assert lines[0] == f"{good}: ok"
    assert [line.rsplit("[", 1)[1].split("]")[0] for line in lines[1:]] == ["name-form", "negative-restarts"]
    assert ran(capsys, "validate", good)[0] == 0


def test_validate_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ran(capsys, "validate", written(tmp_path / "bad.yaml", BAD), "--json")
    assert code == 64
    assert [fault["rule"] for fault in json.loads(out)] == ["name-form", "negative-restarts"]


def test_validate_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(jobset())))
    assert ran(capsys, "validate", "-") == (0, "-: ok\n", "")


def test_validate_waives_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = written(tmp_path / "s.yaml", jobset(ttlSecondsAfterFinished=5))
    assert ran(capsys, "validate", spec)[0] == 64
    assert ran(capsys, "validate", spec, "--waive", "ttl-too-short")[0] == 0


def test_validate_can_judge_a_file_as_kubectl_would_send_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = jobset(replicated(spec={"parallelism": 2, "template": pod()}))
    spec = written(tmp_path / "s.yaml", bare)
    assert ran(capsys, "validate", spec)[0] == 0
    code, out, _ = ran(capsys, "validate", spec, "--as-is")
    assert (code, "[completions]" in out) == (64, True)


HOLES = changed(
    jobset(replicated(spec=job(pod(container(args=["--data=$hole{data}"]))))),
    "spec.replicatedJobs.0.replicas",
    {"$hole": "nodes", "type": "integer"},
)


def test_render_fills_holes_and_prints_a_manifest_that_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = written(tmp_path / "s.yaml", HOLES)
    code, out, _ = ran(capsys, "render", spec, "--set", "nodes=3", "--set", "data=a=b c")
    assert code == 0
    made = yaml.safe_load(out)
    assert made["spec"]["replicatedJobs"][0]["replicas"] == 3
    assert "--data=a=b c" in out
    again = written(tmp_path / "again.yaml", out)
    assert ran(capsys, "validate", again, "--as-is")[0] == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["--set", "nodes=three", "--set", "data=x"], "replicas: must be integer, 'three' given"),
        (["--set", "node=3", "--set", "data=x"], "did you mean nodes?"),
        (["--set", "nodes"], "must be name=value"),
        (["--set", "nodes=1", "--set", "nodes=2"], "given twice"),
        ([], "Give values with --set nodes=... --set data=..."),
    ],
)
def test_values_that_do_not_fit_are_named(
    settings: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(capsys, "render", written(tmp_path / "s.yaml", HOLES), *settings)
    assert code == 64
    assert message in err
    assert out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "SPEC"),
        (["run", "SPEC", "--on", "mars"], "local, kubernetes"),
        (["run", "SPEC", "--on-failure", "ignore"], "fail or branch"),
        (["run", "SPEC", "--run-timeout", "soon"], "1h30m"),
        (["run", "SPEC", "--run-timeout", "0"], "greater than zero"),
        (["run", "SPEC", "--report", "report.pdf"], ".html or .md"),
        (["run", "SPEC", "-o", "/proc/x/y.json"], "cannot be written"),
        (["run", "SPEC", "--no-such-option"], "No such option"),
        (["run", "SPEC", "--run", ""], "--run: is empty"),
        (["run", "SPEC", "--slot", ""], "--slot: is empty"),
        (["run", "SPEC", "--run", "\udcff"], "not UTF-8"),
        (["run", "SPEC", "--set", "a=\udcff"], "not UTF-8"),
        (["run", "SPEC", "--retry", "-1"], "0 or more"),
        (["run", "SPEC", "-n", "My Space"], "--namespace 'My Space'"),
        (["run", "SPEC", "--report", "a.md", "--report", "b.md"], "one report ending in .md"),
        (["explain", "²"], "cannot be read"),
        (["run", "none.yaml"], "cannot be read"),
        (["no-such-command"], "No such command"),
        (["explain", "3"], "not an exit code"),
        (["explain", "none.json"], "cannot be read"),
        (["validate", "SPEC", "--jobset", "9.9"], "0.11"),
    ],
)
def test_bad_options_end_with_64_and_one_message(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = written(tmp_path / "s.yaml", jobset())
    code, _, err = ran(capsys, *(spec if word == "SPEC" else word for word in arguments))
    assert code == 64
    assert message in err


def test_every_wrong_option_and_the_spec_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = written(tmp_path / "s.yaml", changed(jobset(), "spec.suspend", "yes"))
    code, _, err = ran(
        capsys, "run", spec, "--set", "a", "--on-failure", "x", "--run-timeout", "0", "--slot", ""
    )
    assert code == 64
    for word in ("spec.suspend", "--set a", "--on-failure x", "--run-timeout", "--slot"):
        assert word in err


def test_a_home_that_cannot_be_written_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = written(tmp_path / "s.yaml", jobset())
    monkeypatch.setenv("JOBSET_STEPS_HOME", spec)
    code, _, err = ran(capsys, "run", spec)
    assert (code, "JOBSET_STEPS_HOME" in err) == (64, True)


@pytest.mark.parametrize("command", ["render", "explain"])
@pytest.mark.parametrize("given", [b"\xff\xfe", None])
def test_standard_input_that_is_no_text_is_one_message(
    given: bytes | None,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stdin = None if given is None else io.TextIOWrapper(io.BytesIO(given), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", stdin)
    code, _, err = ran(capsys, command, "-")
    assert (code, "standard input" in err) == (64, True)


def test_standard_input_is_utf_8_whatever_the_terminal_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = changed(jobset(), "metadata.annotations", {"a": "ünï"})
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(tree, ensure_ascii=False).encode()), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", stdin)
    code, out, _ = ran(capsys, "render", "-")
    assert (code, yaml.safe_load(out)["metadata"]["annotations"]["a"]) == (0, "ünï")


def test_explain_tells_what_an_outcome_and_an_exit_code_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = Outcome(verdict=Verdict.FAILED, reason="ReachedMaxRestarts", exit_code=1)
    code, out, _ = ran(capsys, "explain", written(tmp_path / "o.json", outcome.model_dump_json()))
    assert code == 0
    assert "ReachedMaxRestarts" in out
    assert "worth a retry" in ran(capsys, "explain", "75")[1]


def test_explain_refuses_what_is_no_outcome(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ran(capsys, "explain", written(tmp_path / "o.json", '{"verdict": "Great"}'))
    assert code == 64
    assert "verdict" in err


def test_no_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ran(capsys)
    assert code in (0, 64)
    assert "validate" in out + err
