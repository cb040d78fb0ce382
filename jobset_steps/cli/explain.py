"""`jobset-steps explain`: what an outcome, or an exit code alone, means and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from jobset_steps import report
from jobset_steps.cli.spec_file import standard_input
from jobset_steps.errors import BadInput
from jobset_steps.outcome import Outcome

__all__ = ["explain"]

_EXIT_CODES = {
    0: "Succeeded, or any final verdict where the step was told to branch.",
    1: "Failed, for good: the training failed and a retry would fail again; or its JobSet was deleted by somebody else.",
    64: "Rejected: the spec, a file, an option or a value is wrong. Nothing was started.",
    65: "Stuck: child Jobs can never be created. The JobSet was deleted.",
    69: "No verdict: the API server was away longer than the outage budget. The JobSet runs on; run again to adopt it.",
    70: "No verdict: jobset-steps itself failed. The JobSet runs on; run again to adopt it.",
    75: "Failed, worth a retry: the last failure was not the training's fault. A retry trains again.",
    76: "No verdict: the launcher was evicted. The JobSet runs on; run again to adopt it.",
    77: "Forbidden: the service account may not do what the step needs (components/kubernetes/rbac.yaml).",
    124: "A budget was spent: queue, start-up or run. The JobSet was deleted.",
    137: "No verdict: the launcher was killed, mostly for lack of memory. The JobSet runs on; run again to adopt it.",
    143: "Cancelled. The JobSet was deleted.",
}


def explain(
    outcome: Annotated[
        str, typer.Argument(metavar="OUTCOME|EXITCODE", help='outcome.json, "-", or an exit code.')
    ],
) -> int:
    """Say in plain words what happened, who decided, and what to do."""
    if outcome.isdecimal() and outcome.isascii():
        if int(outcome) not in _EXIT_CODES:
            known = ", ".join(map(str, _EXIT_CODES))
            raise BadInput(f"{outcome} is not an exit code of a step; known: {known}")
        print(_EXIT_CODES[int(outcome)])
        return 0
    try:
        text = standard_input() if outcome == "-" else Path(outcome).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{outcome}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}"
        ) from None
    try:
        print(report.explain(Outcome.model_validate_json(text)))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadInput(f"{outcome}: not an outcome: {where + ': ' if where else ''}{first['msg']}") from None
    return 0
