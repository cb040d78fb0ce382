"""What a launcher step of an Argo workflow runs: one request file in, one file for each output out, and an exit code.

Who it serves is told by its environment, so that nothing has to be asked before it is known: a launcher that guessed its
identity would train twice. Outputs are written whatever became of the step.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobset_steps import report
from jobset_steps.clusters.kubernetes.launcher_pod import Place, place_of
from jobset_steps.errors import BadInput, StepError
from jobset_steps.launch.launch import LaunchRequest, launch, plan_of, process_exit_code
from jobset_steps.launch.lines import tell
from jobset_steps.launch.options import read_spec, settings
from jobset_steps.launch.outputs import OUTPUTS, write_outputs
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.supervisor.inputs import Say
from jobset_steps.supervisor.plan import OnFailure

__all__ = ["decoded", "main", "request_of"]

_WORKFLOW_API = "argoproj.io/v1alpha1"


def main(arguments: list[str]) -> int:
    """Run the request in the first file named; outputs go to the folder named second. Returns the exit code."""
    source, folder = Path(arguments[0]), Path(arguments[1])
    on_failure: OnFailure = "fail"
    try:
        given = decoded(json.loads(source.read_text(encoding="utf-8")))
        _, on_failure, _ = settings(given.get("options") or {})
        request, place = request_of(given, os.environ)
        plan_of(request)  # every fault, before a cluster is touched
    except (StepError, OSError, ValueError, KeyError) as error:
        outcome = _rejected(error)
        _print(outcome.message)
        with contextlib.suppress(OSError):
            write_outputs(outcome, _files(folder))
        return process_exit_code(outcome, on_failure)
    try:
        outcome = _launched(replace(request, outputs=_files(folder)), place)
    except StepError as error:
        _print(f"jobset-steps: {error}\n{error.todo}")
        return error.exit_code
    for line in report.lines(outcome):
        _print(line)
    return process_exit_code(outcome, request.on_failure)


def request_of(given: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[LaunchRequest, Place]:
    """The request that a template wrote, for the node that the environment names.

    Values, and the slot where it is one, arrive as base64. Raises BadInput and InvalidSpec.
    """
    options = given.get("options") or {}
    budgets, on_failure, waive = settings(options)
    spec = given["spec"]
    owner = {
        "apiVersion": _WORKFLOW_API,
        "kind": "Workflow",
        "name": _told(environment, "JOBSET_STEPS_WORKFLOW"),
        "uid": _told(environment, "JOBSET_STEPS_WORKFLOW_UID"),
    }
    place = place_of(
        {
            "metadata": {
                "uid": _told(environment, "JOBSET_STEPS_POD_UID"),
                "annotations": {
                    "workflows.argoproj.io/node-name": _told(environment, "JOBSET_STEPS_NODE"),
                },
                "ownerReferences": [owner],
            }
        }
    )
    slot = _text("slot", given["slot"]) if "slot" in given else str(options.get("slot") or "")
    namespace = str(options.get("namespace") or "")
    request = LaunchRequest(
        spec=read_spec(spec if isinstance(spec, str) else json.dumps(spec)),
        values={name: _text(name, value) for name, value in (given.get("values") or {}).items()},
        run=place.run,
        step=place.step,
        slot=slot,
        engine=place.engine,
        budgets=budgets,
        on_failure=on_failure,
        namespace=namespace,
        # What is kept for a slot outlives the run that came first; an owner elsewhere would have it collected at once.
        owner=None if slot or namespace else place.owner,
        waive=waive,
        grace=float(given.get("grace") or 25.0),
    )
    return request, place


def decoded(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request, where it is that of a template for any spec: there all that people gave is base64. Raises BadInput."""
    if "encoded" not in given:
        return given
    texts = {name: _text(name, value) for name, value in given["encoded"].items()}
    values = json.loads(texts["values"])
    if not isinstance(values, dict):
        raise BadInput(f'values: must be a JSON object, such as {{"lr": 0.1}}; {texts["values"]} given')
    budgets = {name: texts[f"{name}-timeout"] for name in ("queue", "startup", "run")}
    return {
        "spec": texts["spec"],
        "values": {
            name: base64.b64encode((value if isinstance(value, str) else json.dumps(value)).encode()).decode()
            for name, value in values.items()
        },
        "options": {"on_failure": texts["on-failure"], "slot": texts["slot"], "budgets": budgets},
        "grace": given["grace"],
    }


def _launched(request: LaunchRequest, place: Place) -> Outcome:
    from jobset_steps.clusters.kubernetes import KubernetesCluster

    cluster = KubernetesCluster(namespace=request.namespace or None)
    try:
        return launch(
            replace(request, namespace=cluster.namespace),
            cluster,
            host=cluster.launcher_pod(owner=place.owner),
            say=_say,
            log=lambda line: _print(f"  | {line}"),
        )
    finally:
        cluster.close()


def _rejected(error: Exception) -> Outcome:
    """Nothing was started: the request, the values or the spec they make are wrong."""
    message = str(error) if isinstance(error, StepError) else f"{type(error).__name__}: {error}"
    return Outcome(
        verdict=Verdict.REJECTED, reason="InvalidSpec", message=message, exit_code=BadInput.exit_code
    )


def _files(folder: Path) -> dict[str, Path]:
    return {name: folder / name for name in OUTPUTS}


def _text(name: str, value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise BadInput(f"{name}: Argo did not resolve its value: {value}") from None


def _told(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value or "{{" in value:
        raise BadInput(f"{name} is not set: a launcher step runs as its template says")
    return value


def _say(said: Say) -> None:
    cause = f" ({said.cause})" if said.cause else ""
    _print(f"{said.progress.value}{cause}: {said.message}")


def _print(line: str) -> None:
    tell(line, sys.stdout)


def _process() -> int:
    try:
        return main(sys.argv[1:])
    except Exception:
        # Not 1, which would say that the training failed for good.
        traceback.print_exc()
        return StepError.exit_code


if __name__ == "__main__":
    sys.exit(_process())
