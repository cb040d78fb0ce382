"""What pods do in the simulated cluster: scripts, chosen by replicated job, index and attempt. Plain data.

Written in Python or as YAML (`Scripts.from_yaml`). A script says what happens; the simulated Kubelet makes it happen.
"""

from __future__ import annotations

from dataclasses import dataclass

import yaml
from pydantic import Field, ValidationError

from jobset_steps.errors import BadInput
from jobset_steps.spec.model import Model

__all__ = ["Case", "PodRun", "PodScript", "Scripts"]


@dataclass(frozen=True, slots=True)
class PodRun:
    """One run of a pod's container. `retry` counts pods of the same index before it in this attempt, `restart` the
    kubelet's restarts of this pod's container before it.
    """

    replicated_job: str
    job: int
    pod: int
    attempt: int
    retry: int = 0
    restart: int = 0


class PodScript(Model):
    """What one run does. Times are in seconds. The default starts after a second, runs for one and ends well."""

    starts_after: float = Field(default=1.0, gt=0)
    """From the pod's creation (or its container's restart) to running."""
    ready_after: float | None = Field(default=0.0, ge=0)
    """From running to ready; None: never ready."""
    runs: float | None = Field(default=1.0, ge=0)
    """From running to its end; None: until it is stopped."""
    exit_code: int = 0
    signal: int | None = None
    oom: bool = False
    """Ends as OOMKilled with exit code 137, whatever `exit_code` says."""
    disrupted: bool = False
    """At its end it is evicted: DisruptionTarget, deleted, SIGTERM."""
    unschedulable: bool = False
    """No node takes it; an event FailedScheduling says so."""
    cannot_pull: bool = False
    """Its image cannot be pulled; events and a waiting container say so."""
    stops_after: float = Field(default=0.0, ge=0)
    """From SIGTERM to its end; beyond its grace period it is killed (exit code 137)."""
    stop_exit_code: int = 143
    lost: bool = False
    """Its node does not answer: once deleted it stays Terminating for ever."""
    message: str = ""
    """What it writes to its termination log."""
    log: tuple[str, ...] = ()
    """Lines that it writes when it starts."""
    node: str = "node-1"


class Case(Model):
    """A script for the runs that all given fields match; a field that is not given matches any."""

    replicated_job: str | None = None
    job: int | None = None
    pod: int | None = None
    attempt: int | None = None
    retry: int | None = None
    restart: int | None = None
    script: PodScript

    def matches(self, run: PodRun) -> bool:
        """Whether it is for this run."""
        return all(
            getattr(self, field) in (None, getattr(run, field))
            for field in ("replicated_job", "job", "pod", "attempt", "retry", "restart")
        )


class Scripts(Model):
    """Cases in order; the first that matches is taken, `default` where none does."""

    cases: tuple[Case, ...] = ()
    default: PodScript = PodScript()

    def __call__(self, run: PodRun) -> PodScript:
        """The script of a run."""
        return next((case.script for case in self.cases if case.matches(run)), self.default)

    @classmethod
    def from_yaml(cls, text: str) -> Scripts:
        """Scripts from a YAML document with `cases` and `default`. Raises BadInput with all that is wrong."""
        try:
            return cls.model_validate(yaml.safe_load(text) or {})
        except yaml.YAMLError as error:
            raise BadInput(f"not a YAML document: {error}") from None
        except ValidationError as error:
            faults = [
                f"{'.'.join(map(str, each['loc']))}: {each['msg']}"
                for each in error.errors(include_url=False)
            ]
            raise BadInput("\n".join(faults)) from None
