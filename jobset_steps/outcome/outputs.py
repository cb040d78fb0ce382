"""What an engine is handed of an Outcome: one text per output, and the text of each where no Outcome came to be.

Every output always has a value, so that a pipeline can branch on a step that did not end as it should.
"""

from __future__ import annotations

import json

from jobset_steps.outcome.types import Outcome, Verdict

__all__ = ["DEFAULTS", "outputs"]


def outputs(outcome: Outcome) -> dict[str, str]:
    """The output parameters of a step, by name. All are text: engines know no other type.

    verdict: one word of Verdict. outcome: the Outcome as JSON. restarts: all restarts, a whole number. metrics: a JSON
    object. reason, message: the Outcome's own. retryable: "true" or "false". jobset: the JobSet's name.
    """
    return {
        "verdict": outcome.verdict.value,
        "outcome": outcome.model_dump_json(),
        "restarts": str(outcome.restarts.total),
        "metrics": json.dumps(outcome.metrics, sort_keys=True),
        "reason": outcome.reason,
        "message": outcome.message,
        "retryable": "true" if outcome.retryable else "false",
        "jobset": outcome.jobset,
    }


DEFAULTS: dict[str, str] = outputs(
    Outcome(
        verdict=Verdict.UNKNOWN,
        reason="InternalError",
        message="The step ended before it could say how: look at its log.",
        exit_code=70,
    )
)
"""The outputs of a step that could write none."""
