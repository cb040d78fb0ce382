"""A request becomes a plan, a plan an Outcome, an Outcome files and an exit code.

It decides what a launcher is asked for, never what becomes of a training: that is the supervisor's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobset_steps.clusters import Cluster
from jobset_steps.launch.host import Host, TerminalHost, ending_on_signals
from jobset_steps.launch.outputs import write_outputs
from jobset_steps.outcome import Outcome, Verdict
from jobset_steps.runner import Clock, Hooks, Runner
from jobset_steps.spec import spec_hash
from jobset_steps.spec.budgets import Budgets
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.judge import settle
from jobset_steps.spec.template import SpecTemplate
from jobset_steps.supervisor.inputs import Say
from jobset_steps.supervisor.plan import EngineAttempt, Identity, OnFailure, Owner, StepPlan
from jobset_steps.supervisor.state import StepState

__all__ = ["LaunchRequest", "launch", "plan_of", "process_exit_code"]


@dataclass(frozen=True)
class LaunchRequest:
    """What a launcher is asked for.

    `run`, `step` and `slot` are the identity; `engine` says which launcher this is. `outputs` are files to write, by the
    name of the output (see outcome.outputs; "report.html" and "report.md" besides). `waive` names waivable rules.
    """

    spec: JobSet | SpecTemplate
    run: str
    step: str
    engine: EngineAttempt
    slot: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    budgets: Budgets = field(default_factory=Budgets)
    on_failure: OnFailure = "fail"
    namespace: str = "default"
    owner: Owner | None = None
    waive: tuple[str, ...] = ()
    outputs: Mapping[str, Path] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """More annotations for the JobSet and its pods."""
    grace: float = 25.0
    """Seconds within which a cancelled step says that it has ended: less than SIGTERM leaves its process."""


def plan_of(request: LaunchRequest) -> StepPlan:
    """The plan of a request. Raises InvalidSpec with every fault of values and spec."""
    jobset = settle(request.spec, request.values, waive=request.waive)
    # Over what the author wrote: a later version of this package may set other defaults and is still the same training.
    written = spec_hash(jobset.to_dict())
    return StepPlan(
        identity=Identity(request.run, request.step, request.slot),
        jobset=with_defaults(jobset),
        spec_hash=written,
        engine=request.engine,
        namespace=request.namespace,
        budgets=request.budgets,
        on_failure=request.on_failure,
        owner=request.owner,
        annotations=tuple(sorted(request.annotations.items())),
        grace=request.grace,
    )


def launch(
    request: LaunchRequest,
    cluster: Cluster,
    *,
    host: Host | None = None,
    clock: Clock | None = None,
    say: Callable[[Say], None] = lambda _: None,
    seen: Callable[[StepState], None] = lambda _: None,
    log: Callable[[str], None] | None = None,
) -> Outcome:
    """Run one step to its Outcome and write its outputs. SIGTERM and SIGINT end it as the host says.

    Raises InvalidSpec before anything is started. `say`, `seen` and `log` hear of progress, of each state and of the
    leader's log lines.
    """
    plan = plan_of(request)
    runner = Runner(cluster, clock=clock)
    hooks = Hooks(
        deliver=lambda outcome: write_outputs(outcome, request.outputs),
        say=say,
        seen=seen,
        log=log,
    )
    handle = runner.add(plan, hooks)
    try:
        with ending_on_signals(handle, host or TerminalHost()):
            runner.run_all()
    finally:
        runner.close()
    assert handle.outcome is not None
    if handle.outcome.verdict is Verdict.UNKNOWN:
        # Nothing is delivered without a verdict; the files still say why, for whoever looks, if they can be written.
        with contextlib.suppress(OSError):
            write_outputs(handle.outcome, request.outputs)
    return handle.outcome


def process_exit_code(outcome: Outcome, on_failure: OnFailure) -> int:
    """The exit code of the launcher: 0 for every final verdict where the pipeline wants to branch on it."""
    if on_failure == "branch" and outcome.verdict is not Verdict.UNKNOWN:
        return 0
    return outcome.exit_code
