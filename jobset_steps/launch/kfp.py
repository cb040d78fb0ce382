"""What a Kubeflow task runs: the launcher inside Kubeflow's own executor, on a cluster or under kfp.local.

On a cluster run, step and retry come from the pod; on a laptop each task is a run of its own. Outputs are returned where the
task succeeds; where it fails Kubeflow keeps none, and the exit code and the log say why.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from jobset_steps import report as reports
from jobset_steps.errors import StepError
from jobset_steps.launch.launch import LaunchRequest, launch, plan_of, process_exit_code
from jobset_steps.launch.lines import tell
from jobset_steps.launch.options import read_spec, settings
from jobset_steps.launch.places import open_cluster
from jobset_steps.launch.pod import in_a_pod, placed
from jobset_steps.outcome import Outcome
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.supervisor.inputs import Say
from jobset_steps.supervisor.plan import EngineAttempt

__all__ = ["Outputs", "run"]

_MODEL_URI = "jobset-steps/model-uri"


class Outputs(NamedTuple):
    """The output parameters of a task."""

    verdict: str
    outcome: str
    restarts: int


def run(
    spec: str, values: Mapping[str, Any], options: Mapping[str, Any], *, metrics: Any, model: Any, report: Any
) -> Outputs:
    """Run a spec (JSON or YAML) with the values of its holes; `metrics`, `model` and `report` are Kubeflow artifacts.

    Ends the process with the outcome's exit code where the task is to fail, with 64 and every fault for bad input.
    """
    try:
        outcome, on_failure = _launch(_request(spec, values, options, model.uri))
    except InvalidSpec as error:
        for fault in error.faults:
            print(fault, file=sys.stderr)
        sys.exit(error.exit_code)
    except StepError as error:
        print(f"jobset-steps: {error}\n{error.todo}", file=sys.stderr)
        sys.exit(error.exit_code)
    for line in reports.lines(outcome):
        _print(line)
    if code := process_exit_code(outcome, on_failure):
        sys.exit(code)
    Path(report.path).parent.mkdir(parents=True, exist_ok=True)
    Path(report.path).write_text(reports.html(outcome), encoding="utf-8")
    for name, value in outcome.metrics.items():
        metrics.log_metric(name, value)
    Path(model.path).parent.mkdir(parents=True, exist_ok=True)
    return Outputs(outcome.verdict.value, outcome.model_dump_json(), outcome.restarts.total)


def _request(
    spec: str, values: Mapping[str, Any], options: Mapping[str, Any], model_uri: str
) -> LaunchRequest:
    budgets, on_failure, waive = settings(options)
    return LaunchRequest(
        spec=read_spec(spec),
        values={name: _whole(value) for name, value in values.items()},
        run=f"local-{uuid.uuid4().hex[:12]}",
        step=str(options.get("step") or "train"),
        slot=str(options.get("slot") or ""),
        engine=EngineAttempt(uuid.uuid4().hex),
        budgets=budgets,
        on_failure=on_failure,
        namespace=str(options.get("namespace") or ""),
        waive=waive,
        annotations={_MODEL_URI: model_uri},
    )


def _whole(value: Any) -> Any:
    """A value as its author wrote it: within lists and mappings Kubeflow makes 4.0 of 4."""
    if isinstance(value, Mapping):
        return {key: _whole_number(_whole(item)) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_number(_whole(item)) for item in value]
    return value


def _whole_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _launch(request: LaunchRequest) -> tuple[Outcome, Any]:
    plan_of(request)  # every fault, before a cluster is touched
    cluster = open_cluster(
        "kubernetes" if in_a_pod() else "local",
        namespace=request.namespace or None,
        notice=lambda text: _print(f"Note: {text}"),
    )
    try:
        request, host = placed(request, cluster)
        request = replace(
            request, namespace=getattr(cluster, "namespace", None) or request.namespace or "default"
        )
        outcome = launch(request, cluster, host=host, say=_said(), log=lambda line: _print(f"  | {line}"))
        return outcome, request.on_failure
    finally:
        cluster.close()


def _said() -> Callable[[Say], None]:
    def say(said: Say) -> None:
        cause = f" ({said.cause})" if said.cause else ""
        _print(f"{said.progress.value}{cause}: {said.message}")

    return say


def _print(line: str) -> None:
    tell(line, sys.stdout)
