"""What Argo's agent asks and what it is answered, as plain data. Pure.

The agent asks about one node again and again: "Running" with a time to ask again, until an answer ends the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobset_steps.errors import BadInput
from jobset_steps.outcome import Outcome, Verdict, outputs
from jobset_steps.supervisor.inputs import Say
from jobset_steps.supervisor.plan import OnFailure

__all__ = ["PLUGIN", "Call", "call_of", "ended", "refused", "running"]

PLUGIN = "jobset-steps"
"""The key under `plugin` in a template that is ours."""
_MESSAGE = 1000


@dataclass(frozen=True, slots=True)
class Call:
    """One question of the agent: which node of which Workflow, and what its template says."""

    namespace: str
    workflow: str
    uid: str
    node: str
    body: Mapping[str, Any]


def call_of(asked: Any) -> Call | None:
    """The question in a request's JSON, None where the template is another plugin's. Raises BadInput."""
    template = asked.get("template") if isinstance(asked, Mapping) else None
    plugin = template.get("plugin") if isinstance(template, Mapping) else None
    if not isinstance(plugin, Mapping) or PLUGIN not in plugin:
        return None
    body = plugin[PLUGIN]
    meta = (asked.get("workflow") or {}).get("metadata") or {}
    if not isinstance(body, Mapping) or not isinstance(body.get("spec"), str):
        raise BadInput(
            f"plugin.{PLUGIN}.spec: a JobSet as JSON text is missing; `jobset-steps render` writes it"
        )
    node = str(body.get("node") or "")
    if not node or "{{" in node:
        raise BadInput(
            f'plugin.{PLUGIN}.node: must be "{{{{node.name}}}}", which Argo fills in; {node!r} given'
        )
    missing = [key for key in ("name", "namespace", "uid") if not meta.get(key)]
    if missing:
        raise BadInput(f"the request names no Workflow: {', '.join(missing)} missing")
    return Call(meta["namespace"], meta["name"], meta["uid"], node, body)


def running(said: Say | None, ask_again: float) -> dict[str, Any]:
    """The step is under way; `ask_again` in so many seconds."""
    cause = f" ({said.cause})" if said is not None and said.cause else ""
    message = f"{said.progress.value}{cause}: {said.message}" if said is not None else "starting"
    return {"node": {"phase": "Running", "message": message[:_MESSAGE]}, "requeue": f"{ask_again:g}s"}


def ended(outcome: Outcome, on_failure: OnFailure) -> dict[str, Any]:
    """The step has ended: its outputs whatever the verdict, and an exit code that a retry strategy can read."""
    well = outcome.verdict is Verdict.SUCCEEDED or (
        on_failure == "branch" and outcome.verdict is not Verdict.UNKNOWN
    )
    told = f"{outcome.verdict.value}: {outcome.reason}" + (f": {outcome.message}" if outcome.message else "")
    parameters = [{"name": name, "value": value} for name, value in outputs(outcome).items()]
    return {
        "node": {
            "phase": "Succeeded" if well else "Failed",
            "message": told[:_MESSAGE],
            "outputs": {"parameters": parameters, "exitCode": "0" if well else str(outcome.exit_code)},
        }
    }


def refused(message: str, on_failure: OnFailure = "fail") -> dict[str, Any]:
    """Nothing was started: the request, its values or the spec they make are wrong."""
    outcome = Outcome(
        verdict=Verdict.REJECTED, reason="InvalidSpec", message=message, exit_code=BadInput.exit_code
    )
    return ended(outcome, on_failure)
