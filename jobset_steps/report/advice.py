"""Whether another try is worth it, and what a person should do: one table from verdict and reason to words."""

from __future__ import annotations

from jobset_steps.outcome import Attempt, Cause, Outcome, Verdict

__all__ = ["advice", "headline", "last_failure", "worth_a_retry"]

_HEADLINE = {
    Verdict.SUCCEEDED: "The training ended well.",
    Verdict.FAILED: "The training failed.",
    Verdict.QUEUE_TIMEOUT: "The training was still waiting for admission when its queue budget was spent.",
    Verdict.STARTUP_TIMEOUT: "Not all pods came up within the start-up budget.",
    Verdict.RUN_TIMEOUT: "The training was still running when its run budget was spent.",
    Verdict.STUCK: "The training could never have started: the cluster refuses its child Jobs.",
    Verdict.DELETED_EXTERNALLY: "The JobSet was deleted by somebody else while it ran.",
    Verdict.REJECTED: "The cluster refused the spec. Nothing was started.",
    Verdict.FORBIDDEN: "The step's account is not allowed to run a JobSet here. Nothing was started.",
    Verdict.CANCELLED: "The step was cancelled and its JobSet deleted.",
    Verdict.UNKNOWN: "The step ended without a verdict. The training may still run.",
}

_ADVICE = {
    Verdict.SUCCEEDED: "Nothing.",
    Verdict.QUEUE_TIMEOUT: "Look at the queue's quota and at what is ahead in it; then raise budgets.queue, ask for "
    "less, or use another queue. Nothing has run, so nothing is lost.",
    Verdict.STARTUP_TIMEOUT: "Look for the cause above: no node with enough room, an image that cannot be pulled, a volume "
    "that cannot be mounted. Where nodes are only slow to come, raise budgets.startup.",
    Verdict.RUN_TIMEOUT: "Raise budgets.run, or make the training shorter. It goes on from its newest checkpoint if it "
    "keeps checkpoints.",
    Verdict.STUCK: "Correct what the message names. `jobset-steps validate` finds most of these before "
    "anything is submitted.",
    Verdict.DELETED_EXTERNALLY: "Find out who deleted it (the API server's audit log says). Run the step again to train "
    "again: it is never started anew by itself.",
    Verdict.REJECTED: "Correct what the message names, and check with `jobset-steps validate`.",
    Verdict.FORBIDDEN: "Have the role in components/kubernetes bound to the account that the message names.",
    Verdict.CANCELLED: "Nothing, if you meant it. Run the step again to train again.",
}

_NO_VERDICT = {
    "LauncherEvicted": "Nothing: the next launcher of the step finds the running JobSet and goes on waiting.",
    "ApiUnavailable": "Check that the API server can be reached, then start the step again: it finds the running JobSet.",
    "LauncherOOMKilled": "Give the launcher more memory and start the step again: it finds the running JobSet.",
}


def headline(outcome: Outcome) -> str:
    """One sentence: how it ended."""
    return _HEADLINE[outcome.verdict]


def last_failure(outcome: Outcome) -> Attempt | None:
    """The attempt that ended the training badly, or the last one whose end is known."""
    return next((attempt for attempt in reversed(outcome.attempts) if attempt.cause is not None), None)


def worth_a_retry(outcome: Outcome) -> str:
    """Whether running the step again, as it is, may end otherwise."""
    if outcome.verdict is Verdict.SUCCEEDED:
        return ""
    if outcome.verdict is Verdict.UNKNOWN:
        return "Yes: a new launcher adopts the training that may still run; it does not train twice."
    if outcome.retryable:
        return "Yes: what ended it was not the training's own fault. The preset retry does it by itself."
    return "Not as it is: the same is likely to happen again."


def advice(outcome: Outcome) -> str:
    """What a person should do."""
    if outcome.leaked:
        return (
            f"Delete the JobSet {outcome.leaked} by hand: it should be gone and could not be confirmed gone, "
            "so it may still hold nodes. " + _advice(outcome)
        )
    return _advice(outcome)


def _advice(outcome: Outcome) -> str:
    if outcome.verdict is Verdict.UNKNOWN:
        return _NO_VERDICT.get(
            outcome.reason, "Report it with this message; start the step again: it finds the running JobSet."
        )
    if outcome.verdict is not Verdict.FAILED:
        return _ADVICE[outcome.verdict]
    failed = last_failure(outcome)
    return _after_failure(outcome, failed.cause if failed and failed.cause else Cause())


def _after_failure(outcome: Outcome, cause: Cause) -> str:
    if cause.oom:
        return "Raise the container's memory limit, or make the batch or the model smaller."
    if cause.disrupted:
        return "Run it again when the nodes are steadier, or let the failure policy restart it more often for free."
    if cause.exit_code == 127:
        return "Check the command and the image: the command is not in it."
    if cause.exit_code == 126:
        return "Check the command and its file mode: it is in the image and cannot be executed."
    if cause.reason in ("ErrImagePull", "ImagePullBackOff", "InvalidImageName"):
        return "Check the image's name and the pull secret."
    if outcome.action == "FailJobSet":
        rule = f"rule {outcome.rule} calls" if outcome.rule else "the failure policy calls"
        return f"Correct the training: {rule} this failure fatal, so it was not restarted."
    if outcome.reason == "ReachedMaxRestarts":
        return "Read the last log lines. If each attempt fails alike, correct the training; else raise maxRestarts."
    if outcome.restarts.maximum is None:
        return "Read the last log lines. A failure policy, FailurePolicy.resilient, would restart after such a failure."
    return "Read the last log lines and correct the training."
