"""`jobset-steps run`: one step from the shell, on this machine or on a cluster."""

from __future__ import annotations

import re
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobset_steps.cli.spec_file import not_text, read_spec, values_of
from jobset_steps.errors import BadInput
from jobset_steps.spec.budgets import Budgets, parse_duration

if TYPE_CHECKING:
    from jobset_steps.launch import LaunchRequest
    from jobset_steps.outcome import Outcome
    from jobset_steps.spec.jobset import JobSet
    from jobset_steps.spec.template import SpecTemplate
    from jobset_steps.supervisor.plan import OnFailure

__all__ = ["run"]

_BUDGETS = "Budgets"
_IDENTITY = "Identity"
_OUTPUT = "Output"


def run(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help='A YAML or JSON file; "-" is standard input.')],
    on: Annotated[str, typer.Option(help="Where: local or kubernetes.")] = "local",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A value for a hole.")
    ] = None,
    on_failure: Annotated[
        str, typer.Option(help="fail, or branch: exit 0 with every final verdict.")
    ] = "fail",
    waive: Annotated[list[str] | None, typer.Option(metavar="RULE", help="Let a waivable rule pass.")] = None,
    namespace: Annotated[
        str | None, typer.Option("-n", "--namespace", help="Default: the current one.")
    ] = None,
    kubeconfig: Annotated[
        str | None, typer.Option(help="Default: as kubectl, or the pod's own account.")
    ] = None,
    queue_timeout: Annotated[str | None, typer.Option(help="Such as 12h.", rich_help_panel=_BUDGETS)] = None,
    startup_timeout: Annotated[
        str | None, typer.Option(help="Per attempt.", rich_help_panel=_BUDGETS)
    ] = None,
    run_timeout: Annotated[
        str | None, typer.Option(help="Without queue time.", rich_help_panel=_BUDGETS)
    ] = None,
    outage_timeout: Annotated[
        str | None, typer.Option(help="API server away.", rich_help_panel=_BUDGETS)
    ] = None,
    run_id: Annotated[
        str | None,
        typer.Option("--run", help="The run it belongs to. Default: a new one.", rich_help_panel=_IDENTITY),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(help="The step of that run. Default: the JobSet's name.", rich_help_panel=_IDENTITY),
    ] = None,
    slot: Annotated[
        str | None,
        typer.Option(help="A schedule slot: trains once, whichever run comes.", rich_help_panel=_IDENTITY),
    ] = None,
    retry: Annotated[int, typer.Option(help="The engine's retry index.", rich_help_panel=_IDENTITY)] = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the outcome as JSON.", rich_help_panel=_OUTPUT),
    ] = None,
    report: Annotated[
        list[Path] | None, typer.Option(help="Write a report: .html or .md.", rich_help_panel=_OUTPUT)
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Lines instead of a live view.", rich_help_panel=_OUTPUT)
    ] = False,
) -> int:
    """Run a JobSet as a step and wait for its outcome."""
    read, values, failing, budgets, identity, outputs = _each(
        lambda: read_spec(spec),
        lambda: values_of(set_),
        lambda: _on_failure(on_failure),
        lambda: _budgets(
            queue=queue_timeout, startup=startup_timeout, run=run_timeout, outage=outage_timeout
        ),
        lambda: _identity(run_id, step, slot, retry, namespace),
        lambda: _outputs(output, report or []),
    )
    request = _request(read, values, failing, tuple(waive or ()), budgets, identity, outputs)
    from jobset_steps.launch import process_exit_code
    from jobset_steps.launch.lines import tell

    outcome = _run(request, on, namespace, kubeconfig, plain, told=bool(run_id or step))
    from jobset_steps.report import lines

    for line in lines(outcome):
        tell(line, sys.stdout)
    return process_exit_code(outcome, request.on_failure)


def _run(
    request: LaunchRequest, on: str, namespace: str | None, kubeconfig: str | None, plain: bool, told: bool
) -> Outcome:
    from dataclasses import replace

    from jobset_steps.cli.live import open_view
    from jobset_steps.launch import launch, open_cluster, placed, plan_of

    plan_of(request)  # every fault, before a cluster is touched
    view = open_view(plain=plain)
    with view:
        cluster = open_cluster(on, namespace=namespace, kubeconfig=kubeconfig, notice=view.notice)
        try:
            request = replace(
                request, namespace=getattr(cluster, "namespace", None) or namespace or "default"
            )
            request, host = placed(request, cluster, told=told)
            return launch(request, cluster, host=host, say=view.say, seen=view.seen, log=view.log)
        finally:
            cluster.close()


def _each(*readings: Callable[[], Any]) -> list[Any]:
    """What each reading gives. Raises BadInput with all that is wrong with any."""
    read, wrong = [], []
    for reading in readings:
        try:
            read.append(reading())
        except BadInput as error:
            wrong.append(error)
    if len(wrong) == 1:
        raise wrong[0]
    if wrong:
        raise BadInput("\n".join(map(str, wrong)))
    return read


def _request(
    read: JobSet | SpecTemplate,
    values: dict[str, str],
    on_failure: OnFailure,
    waive: tuple[str, ...],
    budgets: Budgets,
    identity: tuple[str | None, str | None, str | None, int],
    outputs: dict[str, Path],
) -> LaunchRequest:
    from jobset_steps.launch import LaunchRequest
    from jobset_steps.spec.jobset import JobSet
    from jobset_steps.supervisor.plan import EngineAttempt

    tree: Any = read.to_dict() if isinstance(read, JobSet) else read.tree
    name = str((tree.get("metadata") or {}).get("name") or "train")
    run_id, step, slot, retry = identity
    return LaunchRequest(
        spec=read,
        values=values,
        run=run_id or f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:6]}",
        step=step or name,
        slot=slot or "",
        # A new process of the same run is another launcher; in a pod `placed` knows better.
        engine=EngineAttempt(uuid.uuid4().hex, retry),
        budgets=budgets,
        on_failure=on_failure,
        waive=waive,
        outputs=outputs,
    )


def _on_failure(text: str) -> OnFailure:
    if text == "fail":
        return "fail"
    if text == "branch":
        return "branch"
    raise BadInput(f"--on-failure {text}: fail or branch")


def _identity(
    run_id: str | None, step: str | None, slot: str | None, retry: int, namespace: str | None
) -> tuple[str | None, str | None, str | None, int]:
    wrong = []
    for option, text in (("--run", run_id), ("--step", step), ("--slot", slot)):
        if text == "":
            # Mostly a variable of a shell that is not set: taken as "not given" it would train once more.
            wrong.append(f"{option}: is empty; leave it out, or name the {option[2:]}")
        elif text is not None and not_text(text):
            wrong.append(f"{option} {text!r}: is not UTF-8 text")
    if retry < 0:
        wrong.append(f"--retry {retry}: 0 or more")
    if namespace is not None and not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", namespace):
        wrong.append(f"--namespace {namespace!r}: lower case letters, digits and '-', at most 63")
    if wrong:
        raise BadInput("\n".join(wrong))
    return run_id, step, slot, retry


def _budgets(**given: str | None) -> Budgets:
    seconds: dict[str, float] = {}
    wrong = []
    for name, text in given.items():
        if text is not None:
            try:
                seconds[name] = parse_duration(float(text) if text.replace(".", "", 1).isdigit() else text)
            except ValueError as error:
                wrong.append(f"--{name}-timeout: {error}")
    if wrong:
        raise BadInput("\n".join(wrong))
    return Budgets(**seconds)


def _outputs(output: Path | None, reports: list[Path]) -> dict[str, Path]:
    files = {"outcome": output} if output is not None else {}
    wrong = []
    for path in reports:
        if path.suffix not in (".html", ".md"):
            wrong.append(f"--report {path}: must end in .html or .md")
        elif f"report{path.suffix}" in files:
            wrong.append(f"--report {path}: one report ending in {path.suffix} is written, not two")
        else:
            files[f"report{path.suffix}"] = path
    for path in files.values():
        try:
            if path.is_dir():
                raise IsADirectoryError("is a directory")
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            wrong.append(f"{path}: cannot be written: {error.strerror or error}")
    if wrong:
        raise BadInput("\n".join(wrong))
    return files
