"""A JobSet as a step of a Hera workflow: `JobSetStep` stands in a DAG, Steps or parallel block like Hera's own.

It brings its template into the Workflow, and the exit handler with it; how a step is compiled is decided elsewhere.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from typing import Any, Literal

from hera.workflows import DAG, Artifact, Step, Task, Workflow
from hera.workflows import models as m
from hera.workflows._context import _context

from jobset_steps.argo.exit_handler import EXIT, SWEEP, exit_templates
from jobset_steps.argo.parameters import literal
from jobset_steps.argo.step import IMAGE, ArgoStep, Mode, argo_step
from jobset_steps.argo.workflow import template
from jobset_steps.outcome.outputs import DEFAULTS
from jobset_steps.outcome.types import Outcome
from jobset_steps.spec.budgets import Budgets
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.template import SpecTemplate

__all__ = ["JobSetStep"]

# Hera's model of a plugin has no field for the plugin's own body: it is kept as plain data, and pydantic warns of that.
warnings.filterwarnings("ignore", message=r"(?s).*Expected `Plugin`", category=UserWarning)

# Short, but still an Outcome: it stands in every expression that reads one.
_NO_OUTCOME = Outcome.model_validate_json(DEFAULTS["outcome"]).model_dump_json(
    exclude_defaults=True, exclude={"message"}
)
# Outputs were seen to arrive within ten seconds of the pod's end.
_LATE = "60s"


class JobSetStep(Task, Step):
    """A step that runs `spec` and waits for it; a Task within a DAG, a Step within Steps and parallel blocks.

    `spec` may hold Hera parameters and outputs of other steps anywhere. `mode`: "launcher" (a pod that waits: everything),
    "native" (Argo alone: refuses what it cannot carry) or "plugin" (one agent for all steps of a workflow). `deadline` is
    the step's own, queue time included; `budgets` count each stretch. What Hera's steps take besides (when, with_items,
    depends, continue_on, ...) is passed on. Raises InvalidSpec with every fault that can be known now.
    """

    def __init__(
        self,
        name: str,
        spec: JobSet | SpecTemplate | Mapping[str, Any],
        *,
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
        **invocation: Any,
    ) -> None:
        self._step = argo_step(
            spec,
            name=name,
            mode=mode,
            on_failure=on_failure,
            budgets=budgets,
            slot=slot,
            namespace=namespace,
            waive=waive,
            image=image,
            image_pull_policy=image_pull_policy,
            image_pull_secrets=image_pull_secrets,
            service_account=service_account,
            retries=retries,
            deadline=deadline,
            report=report,
        )
        pieces = list(_context.pieces or [])
        self._in_dag = bool(pieces) and isinstance(pieces[-1], DAG)
        workflow = pieces[0] if pieces and isinstance(pieces[0], Workflow) else None
        model = _model(template(self._step))
        if workflow is not None:
            model = _added(workflow, model)
            _add_exit_handler(workflow, self._step)
        arguments = [
            m.Parameter(name=value.name, value=value.argument)
            for value in self._step.passed
            if value.name and value.argument is not None
        ]
        super().__init__(
            name=name,
            template=model,
            arguments=[*arguments, *_listed(invocation.pop("arguments", None))] or None,
            **invocation,
        )

    def __getattribute__(self, name: str) -> Any:
        # Hera's own steps look every name up among declared outputs while a decorated function is read; ours are properties.
        return object.__getattribute__(self, name)

    @property
    def _subtype(self) -> str:
        return "tasks" if self._in_dag else "steps"

    @property
    def verdict(self) -> str:
        """How the step ended, one word of Verdict; "Unknown" where it could not say. For `when` and for arguments."""
        return self._output("verdict", DEFAULTS["verdict"])

    @property
    def outcome(self) -> str:
        """The Outcome as JSON."""
        return self._output("outcome", _NO_OUTCOME)

    @property
    def restarts(self) -> str:
        """How often the JobSet was restarted, a whole number as text."""
        return self._output("restarts", DEFAULTS["restarts"])

    @property
    def metrics(self) -> str:
        """What the training reported, a JSON object."""
        return self._output("metrics", DEFAULTS["metrics"])

    @property
    def reason(self) -> str:
        """Why it ended so, one word."""
        return self._output("reason", DEFAULTS["reason"])

    @property
    def retryable(self) -> str:
        """Whether the failure may pass: "true" or "false"."""
        return self._output("retryable", DEFAULTS["retryable"])

    @property
    def jobset(self) -> str:
        """The JobSet's name, "" where there was none."""
        return self._output("jobset", DEFAULTS["jobset"])

    @property
    def report(self) -> Artifact:
        """The HTML report; only where `report=True` asked for it."""
        return self.get_artifact("report")

    def _output(self, name: str, default: str) -> str:
        """An output with a default, as an expression (docs/decisions/0011).

        Outputs of a failed pod arrive some seconds after its end, so the default is taken only when none came for a while;
        until then Argo must look again, which it does for an error that says that something is missing. Of a pod that was
        lost none ever come, and Argo would look for ever.
        """
        if self._step.mode == "native" and name not in ("verdict", "restarts", "jobset"):
            message = "a resource template has no such output"
            raise InvalidSpec(
                [Fault(f"{self.name}.{name}", "native-output", message, passes="mode launcher")]
            )
        node = f"get({self._subtype}, '{self.name}') ?? {{}}"
        value = f"get(get(get({node}, 'outputs') ?? {{}}, 'parameters') ?? {{}}, '{name}')"
        late = f"now() - date(get({node}, 'finishedAt')) > duration('{_LATE}')"
        return f"{{{{={value} ?? ({late} ? {literal(default)} : nil /* the output is missing */)}}}}"


def _model(made: dict[str, Any]) -> m.Template:
    model = m.Template.model_validate(made)
    if "plugin" in made:
        model.plugin = copy.deepcopy(made["plugin"])
    return model


def _added(workflow: Workflow, model: m.Template) -> m.Template:
    """The template as it stands in the Workflow: one that is there already if it is the same, else under a free name."""
    name, number = model.name, 1
    while (there := _template(workflow, model.name)) is not None:
        if there == model:
            return model
        number += 1
        model.name = f"{name}-{number}"
    workflow._add_sub(model)
    return model


def _add_exit_handler(workflow: Workflow, step: ArgoStep) -> None:
    """The exit handler, once. Where the Workflow has one of its own, that one can call the sweep template."""
    there = _template(workflow, SWEEP)
    if there is None or (step.mode != "native" and getattr(there, "resource", None) is not None):
        # What launchers made is found by a launcher's sweep, and so is what native steps made; not the other way round.
        workflow.templates = [each for each in workflow.templates if each.name not in (EXIT, SWEEP)]
        for made in exit_templates(step):
            workflow._add_sub(_model(made))
    if workflow.on_exit is None:
        workflow.on_exit = EXIT


def _template(workflow: Workflow, name: str | None) -> Any:
    return next((each for each in workflow.templates if each.name == name), None)


def _listed(arguments: Any) -> list[Any]:
    if arguments is None:
        return []
    return arguments if isinstance(arguments, list) else [arguments]
