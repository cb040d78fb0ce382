"""What an exit code, a signal, a cause and an answer mean, in words. The one place where these are put into words."""

from __future__ import annotations

import signal as signals
from itertools import groupby

from jobset_steps.outcome import Attempt, Cause, Outcome, Restarts
from jobset_steps.report.text import clean, plural

__all__ = ["alike", "answer", "ending", "meaning", "reason", "restarts", "sense", "who"]

_CODES = {
    1: "an error; in Python an exception that nothing caught",
    2: "a command was called wrongly",
    126: "the command is there and cannot be executed",
    127: "the command is not in the image",
}
_SIGNALS = {
    "SIGINT": "interrupted",
    "SIGQUIT": "asked to quit",
    "SIGILL": "an instruction this CPU does not have: the build does not fit the machine",
    "SIGABRT": "it aborted itself: a failed assertion, or a communication library that gave up",
    "SIGBUS": "memory that was not there, often a /dev/shm that is too small",
    "SIGFPE": "an arithmetic error",
    "SIGKILL": "killed from outside: its grace period was over, or memory ran short without Kubernetes saying so",
    "SIGSEGV": "it touched memory that is not its own: a fault in native code",
    "SIGPIPE": "what it wrote to had gone",
    "SIGTERM": "it was told to end",
}


def meaning(code: int | None, signal: int | None = None, *, oom: bool = False) -> str:
    """What an exit code (or a signal number) says, "" where it says nothing in particular."""
    if oom:
        return "out of memory: over its memory limit"
    number = signal or (code - 128 if code is not None and 128 < code < 128 + signals.NSIG else None)
    if number is not None:
        try:
            name = signals.Signals(number).name
        except ValueError:
            return f"signal {number}"
        return f"{name}: {_SIGNALS[name]}" if name in _SIGNALS else name
    return _CODES.get(code, "") if code is not None else ""


def sense(cause: Cause) -> str:
    """What the way it ended says beyond `ending`, "" where that says it all."""
    if cause.oom or cause.disrupted:
        return ""
    said = meaning(cause.exit_code, cause.signal)
    return said.partition(": ")[2] if said.startswith("SIG") else said


def reason(outcome: Outcome) -> str:
    """The outcome's reason where it says more than the verdict."""
    return "" if outcome.reason == outcome.verdict.value else clean(outcome.reason)


def who(cause: Cause) -> str:
    """Which pod: its name where it was seen, else its place."""
    if cause.pod:
        return clean(cause.pod)
    if cause.replicated_job:
        return f"{clean(cause.replicated_job)}-{cause.job_index}-{cause.index}"
    return clean(cause.job) or "a pod that was not seen"


def ending(cause: Cause) -> str:
    """How it ended, short: "exit code 137, out of memory", "evicted", "DeadlineExceeded"."""
    if cause.oom:
        return (
            f"out of memory (exit code {cause.exit_code})" if cause.exit_code is not None else "out of memory"
        )
    parts = []
    if cause.exit_code is not None:
        parts.append(f"exit code {cause.exit_code}")
    name = meaning(cause.exit_code, cause.signal).partition(":")[0]
    if name.startswith(("SIG", "signal")):
        parts.append(name)
    reason = clean(cause.reason)
    if reason and reason not in ("Error", "Completed"):
        parts.append(reason)
    if cause.disrupted:
        parts.append("disrupted")
    return ", ".join(parts) or "ended in a way that was not seen"


def answer(attempt: Attempt) -> str:
    """What the failure policy answered: "RestartJobSet by rule ‹x›", with "free" where it does not count."""
    if not attempt.action:
        return ""
    by = f"by rule {attempt.rule}" if attempt.rule else "by default, no rule matched"
    free = ", free" if attempt.action == "RestartJobSetAndIgnoreMaxRestarts" else ""
    return f"{attempt.action} {by}{free}"


def restarts(spent: Restarts) -> str:
    """Restarts in words: "2 restarts: 1 of at most 3 counted, 1 free"."""
    if spent.maximum is None:
        return (
            f"{plural(spent.total, 'restart')}; no failure policy"
            if spent.total
            else "none; no failure policy"
        )
    free = spent.total - spent.counted
    if not spent.total:
        return f"none of at most {spent.maximum}"
    return f"{spent.counted} of at most {spent.maximum}" + (f", and {free} free" if free > 0 else "")


def alike(outcome: Outcome) -> list[list[Attempt]]:
    """Attempts in order, neighbours that ended the same way in one group."""

    def signature(attempt: Attempt) -> object:
        cause = attempt.cause
        how = (cause.replicated_job, ending(cause)) if cause else None
        return (how, attempt.rule, attempt.action, attempt.counted, attempt.missed)

    return [list(group) for _, group in groupby(outcome.attempts, key=signature)]
