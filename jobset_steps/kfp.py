"""A JobSet as a task of a Kubeflow pipeline: `jobset_step(spec)` inside a `@dsl.pipeline`, outputs to branch on.

Each upstream output in the spec becomes a typed input of the task, so values arrive as what they are and byte for byte. What
the task runs is `jobset_steps.launch.kfp`, named in text: authoring a pipeline never imports what starts something.
"""

from __future__ import annotations

import json
import linecache
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from kfp import compiler, dsl
from kfp.dsl import pipeline_channel

from jobset_steps import __version__
from jobset_steps.spec.budgets import Budgets
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.holes import kfp_type, template_of
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.judge import faults_now
from jobset_steps.spec.template import Hole, SpecTemplate

__all__ = ["IMAGE", "component", "jobset_step"]

IMAGE = f"jobset-steps:{__version__}"
"""The launcher image that a task runs in by default: the one of this version (components/image/Dockerfile)."""

_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "list": "list",
    "object": "dict",
}

# Kubeflow copies the text of a component's function into the pipeline, so the function is made as text.
_SOURCE = '''
def {name}(
    spec: str,
    options: dict,
{inputs}    metrics: Output[Metrics],
    model: Output[Model],
    report: Output[HTML],
) -> NamedTuple("Outputs", [("verdict", str), ("outcome", str), ("restarts", int)]):
    """Run a JobSet as a step and wait for its outcome."""
    import importlib

    launcher = importlib.import_module("jobset_steps.launch.kfp")
    values = {{{values}}}
    return launcher.run(spec, values, options, metrics=metrics, model=model, report=report)
'''


def jobset_step(
    spec: JobSet | SpecTemplate | Mapping[str, Any],
    *,
    name: str | None = None,
    on_failure: str = "fail",
    budgets: Budgets | None = None,
    slot: Any = "",
    namespace: str = "",
    waive: tuple[str, ...] = (),
    image: str = IMAGE,
) -> dsl.PipelineTask:
    """A task that runs `spec` and waits for it; call it inside a pipeline function.

    Its outputs: `verdict` (one word), `outcome` (JSON), `restarts` (whole number), and the artifacts `metrics`, `model` (its
    URI reaches the pods as JOBSET_STEPS_MODEL_URI) and `report` (HTML). `on_failure="branch"` lets the task succeed with
    every final verdict, so that the pipeline can branch on it: a failed task of Kubeflow has no outputs. `spec` may hold
    outputs of other tasks anywhere. Raises InvalidSpec with every fault that can be known now.
    """
    made = template_of(spec) if isinstance(spec, Mapping) else spec
    faults = list(faults_now(made, waive=waive))
    if on_failure not in ("fail", "branch"):
        faults.append(Fault("on_failure", "enum", "fail or branch", on_failure))
    if faults:
        raise InvalidSpec(faults)
    holes = made.holes if isinstance(made, SpecTemplate) else ()
    tree: Any = made.tree if isinstance(made, SpecTemplate) else made.to_dict()
    step = name or str((tree.get("metadata") or {}).get("name") or "train")
    text = made.to_json() if isinstance(made, SpecTemplate) else json.dumps(tree, ensure_ascii=False)
    # kfp.local writes its own interpreter over every "python3" of a command line, and the spec stands on one.
    text = text.replace("python3", "python\\u0033")
    options = {
        "step": step,
        "slot": slot,
        "on_failure": on_failure,
        "budgets": (budgets or Budgets()).model_dump(),
        "namespace": namespace,
        "waive": list(waive),
    }
    made_component = component(step, holes, image=image)
    task = made_component(
        spec=text, options=options, **{_input_name(hole): _channel_of(hole) for hole in holes}
    )
    return _never_cached(task.set_display_name(step))


def component(name: str, holes: tuple[Hole, ...] = (), *, image: str = IMAGE) -> Any:
    """The component that `jobset_step` makes its task from: inputs spec and options, and one for each hole."""
    inputs, values = [], []
    for hole in holes:
        argument = _input_name(hole)
        kind = _kfp_type(hole)
        inputs.append(f"    {argument}: {kind},\n")
        values.append(f"{hole.name!r}: {argument}" + (".uri" if kind.startswith("Input") else ""))
    text = _SOURCE.format(
        name=re.sub(r"\W", "_", name).strip("_") or "train", inputs="".join(inputs), values=", ".join(values)
    )
    return dsl.component(
        _function(text),
        base_image=image,
        packages_to_install=[],
        install_kfp_package=False,
    )


def _function(text: str) -> Callable[..., Any]:
    """The one function that a text defines, with its source where `inspect` looks for it."""
    filename = f"<jobset_step {hash(text):x}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"__name__": __name__, **vars(dsl)}
    exec("from typing import NamedTuple\n", scope)
    before = set(scope)
    # This file postpones annotations; Kubeflow reads the types themselves.
    exec(compile(text, filename, "exec", dont_inherit=True), scope)
    (name,) = set(scope) - before
    made: Callable[..., Any] = scope[name]
    return made


def _input_name(hole: Hole) -> str:
    """A Python name for a hole that no other input has."""
    return "in_" + re.sub(r"\W", "_", hole.name).lower()


def _channel_of(hole: Hole) -> Any:
    """The upstream output that stands in a hole, as Kubeflow's own object."""
    source = hole.source
    if isinstance(source, pipeline_channel.PipelineChannel):
        return source
    found = pipeline_channel.extract_pipeline_channels_from_any(source) if source is not None else []
    if not found:
        raise InvalidSpec(
            [
                Fault(
                    hole.name,
                    "no-source",
                    "no upstream output stands here",
                    passes="an output of a task, or bind it first",
                )
            ]
        )
    return found[0]


def _kfp_type(hole: Hole) -> str:
    """The type of a hole's input: the upstream output's own; an artifact arrives as its URI."""
    channel_type = _channel_of(hole).channel_type
    if not isinstance(channel_type, str):
        return "str"
    type_ = kfp_type(channel_type)
    return "Input[Artifact]" if type_ is None else _TYPES[type_]


def _never_cached(task: dsl.PipelineTask) -> dsl.PipelineTask:
    """A cached training is no training: caching is off, and turning it on is refused."""
    task.set_caching_options(False)

    def refuse(enable_caching: bool, *_: Any, **__: Any) -> dsl.PipelineTask:
        if enable_caching:
            raise InvalidSpec(
                [
                    Fault(
                        "set_caching_options",
                        "cached-training",
                        "a cached step is skipped and trains nothing",
                        True,
                        "False",
                    )
                ]
            )
        return task

    task.set_caching_options = refuse
    return task


def main(arguments: list[str]) -> None:
    """Write the generic component file: `python -m jobset_steps.kfp components/kfp/jobset_step.yaml`."""
    compiler.Compiler().compile(component("jobset_step"), arguments[0])


if __name__ == "__main__":
    main(sys.argv[1:])
