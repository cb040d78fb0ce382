"""What one Argo step is: a JobSet, how it runs, and every fault of the two that can be known while compiling.

It decides what each mode can carry, never how a template looks: that is the mode's own file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from jobset_steps import __version__
from jobset_steps.argo.parameters import Passed, passed
from jobset_steps.spec.budgets import Budgets, parse_duration
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.holes import template_of
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.judge import faults_now
from jobset_steps.spec.template import Hole, SpecTemplate

__all__ = ["IMAGE", "ArgoStep", "Mode", "argo_step"]

IMAGE = f"jobset-steps:{__version__}"
"""The launcher image: the one of this version (components/image/Dockerfile)."""

Mode = Literal["native", "launcher", "plugin"]
"""native: a resource template. launcher: a pod that waits. plugin: one agent for all steps of a workflow."""

_NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]{0,127}")
_ONE_TAG = re.compile(r"\s*\{\{[^{}]*\}\}\s*")
# Control characters that YAML cannot hold, not even escaped by whoever sends it: JSON writers leave them bare.
_UNREADABLE = re.compile("[\\x7f-\\x84\\x86-\\x9f]")


@dataclass(frozen=True, eq=False)
class ArgoStep:
    """One step, checked. Made by `argo_step`.

    `deadline` is the step's activeDeadlineSeconds, queue time included. `retries` is the limit of the preset retry strategy,
    0 for none. `report` adds the HTML report as an artifact, which needs an artifact store. `values` says how the holes of
    `spec` are passed; `slot` is a schedule slot, as text or passed.
    """

    name: str
    spec: JobSet | SpecTemplate
    mode: Mode = "launcher"
    on_failure: Literal["fail", "branch"] = "fail"
    budgets: Budgets = field(default_factory=Budgets)
    slot: str | Passed = ""
    namespace: str = ""
    waive: tuple[str, ...] = ()
    image: str = IMAGE
    image_pull_policy: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    service_account: str = ""
    retries: int = 5
    deadline: int | None = None
    report: bool = False
    values: tuple[Passed, ...] = ()

    @property
    def passed(self) -> tuple[Passed, ...]:
        """All that is passed to the template, slot included."""
        return (*self.values, self.slot) if isinstance(self.slot, Passed) else self.values


def argo_step(
    spec: JobSet | SpecTemplate | Mapping[str, Any],
    *,
    name: str | None = None,
    mode: Mode = "launcher",
    on_failure: Literal["fail", "branch"] = "fail",
    budgets: Budgets | None = None,
    slot: Any = "",
    namespace: str = "",
    waive: tuple[str, ...] = (),
    image: str = IMAGE,
    image_pull_policy: str = "",
    image_pull_secrets: tuple[str, ...] = (),
    service_account: str = "",
    retries: int = 5,
    deadline: float | str | None = None,
    report: bool = False,
) -> ArgoStep:
    """A step of `spec`, which may hold outputs of other steps anywhere. Raises InvalidSpec with every fault known now."""
    made = template_of(spec) if isinstance(spec, Mapping) else spec
    tree: Any = made.tree if isinstance(made, SpecTemplate) else made.to_dict()
    step_name = name or str((tree.get("metadata") or {}).get("name") or "train")
    faults = list(faults_now(made, waive=waive))
    values: tuple[Passed, ...] = ()
    slot_passed: str | Passed = ""
    holes = made.holes if isinstance(made, SpecTemplate) else ()
    try:
        *values_list, slot_passed = _passed(holes, slot)
        values = tuple(value for value in values_list if isinstance(value, Passed))
    except InvalidSpec as error:
        faults += error.faults
    seconds: int | None = None
    try:
        seconds = None if deadline is None else max(1, round(parse_duration(deadline)))
    except ValueError as error:
        faults.append(Fault("deadline", "duration", str(error)))
    step = ArgoStep(
        name=step_name,
        spec=made,
        mode=mode,
        on_failure=on_failure,
        budgets=budgets or Budgets(),
        slot=slot_passed,
        namespace=namespace,
        waive=tuple(waive),
        image=image,
        image_pull_policy=image_pull_policy,
        image_pull_secrets=tuple(image_pull_secrets),
        service_account=service_account,
        retries=retries,
        deadline=seconds,
        report=report,
        values=values,
    )
    faults += _step_faults(step)
    if mode == "native":
        faults += _native_faults(step)
    elif mode == "plugin":
        faults += _plugin_faults(step)
    if faults:
        raise InvalidSpec(faults)
    return step


def _passed(holes: tuple[Hole, ...], slot: Any) -> tuple[Passed | str, ...]:
    """How the holes are passed, and last the slot, which is text where nothing of it is to come."""
    if isinstance(slot, str) and not _ONE_TAG.fullmatch(slot):
        if "{{" in slot:
            message = "a slot is text, or one tag alone"
            raise InvalidSpec([Fault("slot", "slot", message, slot, '"{{workflow.scheduledTime}}"')])
        return (*passed(holes), slot)
    return passed((*holes, Hole("slot" if all(h.name != "slot" for h in holes) else "slot-", source=slot)))


def _step_faults(step: ArgoStep) -> Iterator[Fault]:
    if not _NAME.fullmatch(step.name):
        yield Fault("name", "step-name", "letters, digits and '-', at most 128", step.name, "train")
    if step.mode not in get_args(Mode):
        yield Fault("mode", "enum", "native, launcher or plugin", step.mode)
    if step.on_failure not in ("fail", "branch"):
        yield Fault("on_failure", "enum", "fail or branch", step.on_failure)
    if step.retries < 0:
        yield Fault("retries", "minimum", "0 or more", step.retries)
    if step.namespace and "other-namespace" not in step.waive:
        yield Fault(
            "namespace",
            "other-namespace",
            "a JobSet outside the Workflow's namespace has no owner: deleting the Workflow would leave it running",
            step.namespace,
            "the Workflow's own namespace",
            waivable=True,
        )


def _native_faults(step: ArgoStep) -> Iterator[Fault]:
    """What a resource template cannot carry. Each names the mode that can."""
    other = "mode launcher"
    if step.on_failure == "branch":
        message = "a resource template that fails has no outputs to branch on"
        yield Fault("on_failure", "native-branch", message, "branch", other)
    if step.slot:
        yield Fault("slot", "native-slot", "needs a launcher that keeps a Record", passes=other)
    if step.namespace:
        yield Fault(
            "namespace",
            "native-namespace",
            "a resource template owns within its own namespace",
            step.namespace,
        )
    if step.report:
        yield Fault("report", "native-report", "needs a launcher that saw the training", passes=other)
    default = Budgets()
    for budget in ("queue", "startup", "outage"):
        if (given := getattr(step.budgets, budget)) != getattr(default, budget):
            message = "Argo counts one deadline from the start, and cannot tell waiting from running"
            yield Fault(f"budgets.{budget}", "native-budget", message, given, f"{other}, or deadline")
    if isinstance(step.spec, SpecTemplate):
        for hole in step.spec.holes:
            if hole.type != "string":
                message = "a resource template carries text alone into a manifest"
                yield Fault(hole.name, "native-parameter", message, hole.type, other)
    tree: Any = step.spec.tree if isinstance(step.spec, SpecTemplate) else step.spec.to_dict()
    if bare := _UNREADABLE.search(json.dumps(tree, ensure_ascii=False)):
        message = "the API server reads what is applied as YAML, which cannot hold this character"
        yield Fault("", "native-character", message, bare[0], other)
    if (tree.get("spec") or {}).get("suspend"):
        message = "a resource template that comes back would suspend the training again"
        yield Fault("spec.suspend", "native-suspend", message, True, f"{other}, or a queue-name label")


def _plugin_faults(step: ArgoStep) -> Iterator[Fault]:
    if step.namespace:
        message = "a plugin step trains in the namespace of its Workflow"
        yield Fault("namespace", "plugin-namespace", message, step.namespace)
    if step.report:
        message = "a plugin step has no artifacts; its outcome is an output"
        yield Fault("report", "plugin-report", message, passes="mode launcher")
