"""The Outcome as a contract: exit codes, outputs that are always there, the published schema."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pydantic import ValidationError

from jobset_steps.outcome import DEFAULTS, FINAL, Outcome, Restarts, Verdict, exit_code, outputs
from jobset_steps.outcome.__main__ import schema_text


@pytest.mark.parametrize(
    ("verdict", "retryable", "reason", "code"),
    [
        (Verdict.SUCCEEDED, False, "", 0),
        (Verdict.FAILED, False, "ReachedMaxRestarts", 1),
        (Verdict.FAILED, True, "ReachedMaxRestarts", 75),
        (Verdict.QUEUE_TIMEOUT, False, "", 124),
        (Verdict.STARTUP_TIMEOUT, False, "", 124),
        (Verdict.RUN_TIMEOUT, False, "", 124),
        (Verdict.STUCK, False, "JobCreationFailed", 65),
        (Verdict.DELETED_EXTERNALLY, False, "", 1),
        (Verdict.REJECTED, False, "", 64),
        (Verdict.FORBIDDEN, False, "", 77),
        (Verdict.CANCELLED, False, "", 143),
        (Verdict.UNKNOWN, False, "LauncherEvicted", 76),
        (Verdict.UNKNOWN, False, "ApiUnavailable", 69),
        (Verdict.UNKNOWN, False, "InternalError", 70),
        (Verdict.UNKNOWN, False, "LauncherOOMKilled", 137),
        (Verdict.UNKNOWN, False, "Superseded", 70),
    ],
)
def test_exit_codes(verdict: Verdict, retryable: bool, reason: str, code: int) -> None:
    assert exit_code(verdict, retryable=retryable, reason=reason) == code


def test_every_verdict_but_unknown_is_final() -> None:
    assert set(Verdict) - FINAL == {Verdict.UNKNOWN}


def test_every_output_has_a_default_and_all_are_text() -> None:
    outcome = Outcome(verdict=Verdict.SUCCEEDED, restarts=Restarts(total=2), metrics={"b": 1, "a": [2]})
    given = outputs(outcome)

    assert given.keys() == DEFAULTS.keys()
    assert all(isinstance(value, str) for value in (*given.values(), *DEFAULTS.values()))
    assert given["verdict"] == "Succeeded"
    assert given["restarts"] == "2"
    assert json.loads(given["metrics"]) == {"a": [2], "b": 1}
    assert Outcome.model_validate_json(given["outcome"]) == outcome
    assert DEFAULTS["verdict"] == "Unknown"
    assert Outcome.model_validate_json(DEFAULTS["outcome"]).exit_code == 70


def test_an_outcome_does_not_change_and_takes_no_unknown_field() -> None:
    outcome = Outcome(verdict=Verdict.SUCCEEDED)
    with pytest.raises(ValidationError):
        outcome.reason = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Outcome.model_validate({"verdict": "Succeeded", "colour": "green"})


def test_the_published_schema_is_up_to_date(golden: Callable[[str, str], None]) -> None:
    golden("outcome.schema.json", schema_text())
