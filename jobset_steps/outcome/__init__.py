"""What happened to a step: states and evidence in, one typed Outcome out. Pure.

`types` holds the stable contract, `causes` reads why a pod failed, `judgement` says what a terminal JobSet means,
`outputs` is what an engine is handed. `python -m jobset_steps.outcome` prints the JSON schema of an Outcome.
"""

from __future__ import annotations

from jobset_steps.outcome.outputs import DEFAULTS, outputs
from jobset_steps.outcome.types import (
    FINAL,
    Attempt,
    Cause,
    Outcome,
    Restarts,
    SecondsSpent,
    Verdict,
    exit_code,
)

__all__ = [
    "DEFAULTS",
    "FINAL",
    "Attempt",
    "Cause",
    "Outcome",
    "Restarts",
    "SecondsSpent",
    "Verdict",
    "exit_code",
    "outputs",
]
