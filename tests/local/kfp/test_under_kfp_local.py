"""A step under kfp.local: real tasks, real pods of processes; values arrive byte for byte and outputs can be branched on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

PIPELINE = """
import json, pathlib, sys
from typing import NamedTuple
from kfp import components, dsl, local
from jobset_steps.kfp import jobset_step

AWKWARD = 'a "b" {{c}}\\n$d \\\\ python3 $hole{x} \\u00e9'
light = lambda f: dsl.component(f, base_image="x", packages_to_install=[], install_kfp_package=False)

@light
def prepare(kind: str) -> NamedTuple("Out", [("text", str), ("count", int)]):
    return ('a "b" {{c}}\\n$d \\\\ $hole{x} \\u00e9', 2)

@light
def write(verdict: str, restarts: int, outcome: str, target: str):
    import json, pathlib
    pathlib.Path(target).write_text(json.dumps([verdict, restarts, json.loads(outcome)["verdict"]]))

def spec(script, replicas, *args):
    pod = {"restartPolicy": "Never", "containers": [{"name": "m", "image": "x", "command": ["sh", "-c", script, "sh"], "args": list(args)}]}
    job = {"parallelism": 1, "completions": 1, "completionMode": "Indexed", "template": {"spec": pod}}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train"},
            "spec": {"replicatedJobs": [{"name": "w", "replicas": replicas, "template": {"spec": job}}]}}

@dsl.pipeline
def branches(target: str, code: int):
    before = prepare(kind="x")
    tree = spec('printf %s "$1" > ' + sys.argv[2] + '/args.$JOB_INDEX; exit $2', before.outputs["count"], before.outputs["text"], f"{code}")
    tree["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "JOB_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['jobset.sigs.k8s.io/job-index']"}}}]
    train = jobset_step(tree, on_failure="branch")
    with dsl.If(train.outputs["verdict"] == "Succeeded"):
        write(verdict=train.outputs["verdict"], restarts=train.outputs["restarts"], outcome=train.outputs["outcome"], target=target)
    with dsl.Else():
        write(verdict=train.outputs["verdict"], restarts=train.outputs["restarts"], outcome=train.outputs["outcome"], target=target)

@dsl.pipeline
def fails():
    jobset_step(spec("exit 3", 1))

@dsl.pipeline
def bad_value(count: str):
    jobset_step(spec("touch " + sys.argv[2] + "/started", count))

@dsl.pipeline
def by_file(target: str):
    step = components.load_component_from_file(sys.argv[3])
    train = step(spec=json.dumps(spec("true", 1)), options={"on_failure": "branch"})
    write(verdict=train.outputs["verdict"], restarts=train.outputs["restarts"], outcome=train.outputs["outcome"], target=target)

local.init(local.SubprocessRunner(use_venv=False), pipeline_root=sys.argv[2] + "/root")
eval(sys.argv[1])
"""


def ran(call: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "pipeline.py"
    script.write_text(PIPELINE)
    component = ROOT / "components" / "kfp" / "jobset_step.yaml"
    return subprocess.run(
        [sys.executable, "-W", "ignore", str(script), call, str(tmp_path), str(component)],
        capture_output=True,
        text=True,
        timeout=120,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "JOBSET_STEPS_HOME": str(tmp_path / "home"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
    )


def test_a10_values_arrive_as_they_are_and_the_pipeline_branches(tmp_path: Path) -> None:
    done = ran(f"branches(target={str(tmp_path / 'said')!r}, code=0)", tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    assert json.loads((tmp_path / "said").read_text()) == ["Succeeded", 0, "Succeeded"]
    awkward = 'a "b" {{c}}\n$d \\ $hole{x} é'
    assert [(tmp_path / f"args.{index}").read_text() for index in (0, 1)] == [awkward, awkward]


def test_a_failed_training_is_a_branch_of_its_own(tmp_path: Path) -> None:
    done = ran(f"branches(target={str(tmp_path / 'said')!r}, code=3)", tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    assert json.loads((tmp_path / "said").read_text()) == ["Failed", 0, "Failed"]


def test_on_failure_fail_fails_the_task(tmp_path: Path) -> None:
    done = ran("fails()", tmp_path)
    assert done.returncode != 0
    assert "Failed: FailedJobs, exit code 1" in done.stdout + done.stderr


def test_a_value_of_the_wrong_type_starts_nothing(tmp_path: Path) -> None:
    done = ran("bad_value(count='two')", tmp_path)
    assert done.returncode != 0
    assert "replicas: must be integer" in done.stdout + done.stderr
    assert not (tmp_path / "started").exists()


def test_the_component_file_runs(tmp_path: Path) -> None:
    done = ran(f"by_file(target={str(tmp_path / 'said')!r})", tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    assert json.loads((tmp_path / "said").read_text()) == ["Succeeded", 0, "Succeeded"]
