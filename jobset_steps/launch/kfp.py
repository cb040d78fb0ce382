"""What a Kubeflow task runs: the launcher inside Kubeflow's own executor, on a cluster or under kfp.local.

On a cluster run, step and retry come from the pod; on a laptop each task is a run of its own. Outputs are returned where the
task succeeds; where it fails Kubeflow keeps none, and the exit code and the log say why.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from jobset_steps import report as reports
from jobset_steps.errors import BadInput, StepError
from jobset_steps.launch.launch import LaunchRequest, launch, plan_of, process_exit_code
from jobset_steps.launch.lines import tell
from jobset_steps.launch.places import open_cluster
from jobset_steps.launch.pod import in_a_pod, placed
from jobset_steps.outcome import Outcome
from jobset_steps.spec.budgets import Budgets
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.load import load
from jobset_steps.spec.template import SpecTemplate
from jobset_steps.supervisor.inputs import Say
from jobset_steps.supervisor.plan import EngineAttempt, OnFailure

__all__ = ["Outputs", "run"]

_MODEL_URI = "jobset-steps/model-uri"
_OPTIONS = {"step", "slot", "on_failure", "budgets", "namespace", "waive"}


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
    budgets, on_failure, waive = _settings(options)
    read = SpecTemplate.from_json(spec) if _is_template(spec) else load(spec + "\n")
    return LaunchRequest(
        spec=read,
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


def _settings(options: Mapping[str, Any]) -> tuple[Budgets, OnFailure, tuple[str, ...]]:
    """Budgets, on_failure and waived rules. Raises BadInput with all that is wrong with the options."""
    wrong = [
        f"options: {name}: not known; known: {', '.join(sorted(_OPTIONS))}"
        for name in set(options) - _OPTIONS
    ]
    budgets = Budgets()
    try:
        budgets = Budgets.model_validate(options.get("budgets") or {})
    except ValidationError as error:
        wrong += [
            f"options.budgets{''.join(f'.{part}' for part in each['loc'])}: {each['msg']}"
            for each in error.errors()
        ]
    on_failure: Any = options.get("on_failure") or "fail"
    if on_failure not in ("fail", "branch"):
        wrong.append(f"options.on_failure: fail or branch; {on_failure!r} given")
    waive: Any = options.get("waive") or ()
    if not isinstance(waive, list | tuple):
        wrong.append(f"options.waive: a list of rules; {waive!r} given")
    if wrong:
        raise BadInput("\n".join(sorted(wrong)))
    return budgets, on_failure, tuple(map(str, waive))


def _whole(value: Any) -> Any:
    """A value as its author wrote it: within lists and mappings Kubeflow makes 4.0 of 4."""
    if isinstance(value, Mapping):
        return {key: _whole_number(_whole(item)) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_number(_whole(item)) for item in value]
    return value


def _whole_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_template(spec: str) -> bool:
    try:
        data = json.loads(spec)
    except ValueError:
        return False
    return isinstance(data, dict) and set(data) == {"tree", "holes"}


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
