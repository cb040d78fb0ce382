"""What the README shows is run as it stands there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def ran(arguments: list[str], where: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JOBSET_STEPS_HOME": str(where / "home")}
    return subprocess.run(arguments, cwd=where, env=environment, capture_output=True, text=True, timeout=120)


def test_the_pipeline_compiles(tmp_path: Path) -> None:
    code, _ = blocks("python")
    (tmp_path / "example.py").write_text(
        code + "\nfrom kfp import compiler\ncompiler.Compiler().compile(retrain, 'p.yaml')\n"
    )
    done = ran([sys.executable, "-W", "ignore", "example.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "in_prepare_output" in (tmp_path / "p.yaml").read_text()


def test_the_workflow_compiles(tmp_path: Path) -> None:
    _, code = blocks("python")
    page = (ROOT / "docs" / "argo.md").read_text(encoding="utf-8")
    (more,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    for number, text in enumerate((code, more)):
        name = f"w{number}.yaml"
        (tmp_path / "example.py").write_text(f"{text}\nopen('{name}', 'w').write(workflow.to_yaml())\n")
        done = ran([sys.executable, "-W", "error", "example.py"], tmp_path)
        assert done.returncode == 0, done.stderr
        assert "onExit: jobset-steps-exit" in (tmp_path / name).read_text()


def test_the_commands_run_with_the_spec_beside_them(tmp_path: Path) -> None:
    (spec,) = blocks("yaml")
    (commands,) = blocks("sh")
    (tmp_path / "train.yaml").write_text(spec)
    for line in commands.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "jobset-steps"
        done = ran([sys.executable, "-m", "jobset_steps.cli", *arguments], tmp_path)
        assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "outcome.json").read_text())["verdict"] == "Succeeded"


def test_the_two_commands_are_targets_of_make() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^    make ([a-z-]+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_exit_codes_are_those_of_the_code() -> None:
    from jobset_steps.outcome import Verdict, exit_code

    table = {row[0]: row[1] for row in re.findall(r"^\| ([^|]+) \| ([^|]+) \|", README, re.MULTILINE)}
    codes = {int(code) for codes in list(table.values())[1:] for code in re.findall(r"\d+", codes)}
    made = {exit_code(verdict) for verdict in Verdict if verdict is not Verdict.UNKNOWN}
    made |= {exit_code(Verdict.FAILED, retryable=True)}
    reasons = ("LauncherEvicted", "ApiUnavailable", "InternalError", "LauncherOOMKilled")
    made |= {exit_code(Verdict.UNKNOWN, reason=reason) for reason in reasons}
    assert codes == made
