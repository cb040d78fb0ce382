"""Every error this package raises on purpose, with the exit code it ends a process with and what to do.

One hierarchy: a shell that catches `StepError` can print `str(error)` and `error.todo`, and exit with
`error.exit_code`. Anything else that escapes is a defect of ours and ends with 70.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = ["ApiError", "BadInput", "StepError"]


class StepError(Exception):
    """Root of the errors. `exit_code` is the process's, `todo` says what the reader can do about it."""

    exit_code: ClassVar[int] = 70
    todo: ClassVar[str] = "This is a defect of jobset-steps: report it with the command and its output."


class BadInput(StepError):
    """The author's spec, file, option, environment or value is wrong. Nothing was started."""

    exit_code = 64
    todo = "Correct what is named above and run again."


class ApiError(StepError):
    """One call to a cluster did not do what was asked.

    `kind` is one of `ApiError.KINDS` and is all that decisions read; `message` is the server's own words;
    `retry_after` is in seconds where the server gave one (429), else None.
    """

    exit_code = 69
    todo = "Check that the cluster is reachable, then run again: a running JobSet is found and adopted."

    # unavailable: no answer, or 5xx, 429, resets, time-outs: the call may or may not have taken effect.
    # exists: 409 on create. conflict: 409 on a compare-and-swap save or a uid precondition.
    # invalid: the server refuses the object. forbidden: RBAC. not_found: 404. unauthorized: 401 after a re-read token.
    KINDS: ClassVar[tuple[str, ...]] = (
        "unavailable",
        "exists",
        "conflict",
        "invalid",
        "forbidden",
        "not_found",
        "unauthorized",
    )

    def __init__(self, kind: str, message: str, *, retry_after: float | None = None) -> None:
        if kind not in self.KINDS:
            raise ValueError(f"kind: one of {', '.join(self.KINDS)}; {kind!r} given")
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after = retry_after
