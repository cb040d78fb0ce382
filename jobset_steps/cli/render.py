"""`jobset-steps render`: the JobSet as a step would create it, or an Argo document with it as a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobset_steps.cli.spec_file import read_spec, values_of
from jobset_steps.errors import BadInput
from jobset_steps.spec.budgets import Budgets, parse_duration
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.judge import settle

if TYPE_CHECKING:
    from jobset_steps.spec.jobset import JobSet
    from jobset_steps.spec.template import SpecTemplate

__all__ = ["render"]

_ARGO = "Argo"


def render(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help='A YAML or JSON file; "-" is standard input.')],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A value for a hole.")
    ] = None,
    waive: Annotated[list[str] | None, typer.Option(metavar="RULE", help="Let a waivable rule pass.")] = None,
    engine: Annotated[str | None, typer.Option(help="argo: a document with the JobSet as a step.")] = None,
    mode: Annotated[
        str | None, typer.Option(help="native, launcher or plugin.", rich_help_panel=_ARGO)
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="workflow, template or cluster-template.", rich_help_panel=_ARGO),
    ] = None,
    step: Annotated[
        str | None, typer.Option(help="Its name. Default: the JobSet's.", rich_help_panel=_ARGO)
    ] = None,
    on_failure: Annotated[
        str | None,
        typer.Option(help="fail, or branch: succeed with every final verdict.", rich_help_panel=_ARGO),
    ] = None,
    slot: Annotated[
        str | None, typer.Option(help="A schedule slot: trains once.", rich_help_panel=_ARGO)
    ] = None,
    retries: Annotated[
        int | None, typer.Option(help="Limit of the preset retries.", rich_help_panel=_ARGO)
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(help="Of the step in all, such as 2d.", rich_help_panel=_ARGO)
    ] = None,
    queue_timeout: Annotated[str | None, typer.Option(help="Such as 12h.", rich_help_panel=_ARGO)] = None,
    startup_timeout: Annotated[str | None, typer.Option(help="Per attempt.", rich_help_panel=_ARGO)] = None,
    run_timeout: Annotated[
        str | None, typer.Option(help="Without queue time.", rich_help_panel=_ARGO)
    ] = None,
    image: Annotated[str | None, typer.Option(help="Of the launcher.", rich_help_panel=_ARGO)] = None,
    service_account: Annotated[
        str | None, typer.Option(help="Of the step's pods.", rich_help_panel=_ARGO)
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="The report as an artifact.", rich_help_panel=_ARGO)
    ] = False,
) -> int:
    """Print the manifest with its values and every default, or an Argo document, as YAML."""
    given = {
        "mode": mode,
        "name": step,
        "on_failure": on_failure,
        "slot": slot,
        "retries": retries,
        "deadline": deadline,
        "budgets": _budgets(queue=queue_timeout, startup=startup_timeout, run=run_timeout),
        "image": image,
        "service_account": service_account,
        "report": report or None,
    }
    told = {name: value for name, value in given.items() if value is not None}
    if engine is None:
        if told or kind:
            raise BadInput(f"--{next(iter(told), 'kind').replace('_', '-')}: only with --engine argo")
        _manifest(read_spec(spec), values_of(set_), tuple(waive or ()))
    elif engine == "argo":
        _document(read_spec(spec), values_of(set_), kind or "workflow", {**told, "waive": tuple(waive or ())})
    else:
        raise BadInput(f"--engine {engine}: argo")
    return 0


def _manifest(read: JobSet | SpecTemplate, values: dict[str, str], waive: tuple[str, ...]) -> None:
    print(with_defaults(settle(read, values, waive=waive)).to_yaml(), end="")


def _document(
    read: JobSet | SpecTemplate, values: dict[str, str], kind: Any, options: dict[str, Any]
) -> None:
    from jobset_steps.argo import argo_step, document, to_yaml
    from jobset_steps.argo.workflow import KINDS

    if kind not in KINDS:
        raise BadInput(f"--kind {kind}: one of {', '.join(KINDS)}")
    if values:
        # With every value known it is no template any more; some of them could not be told from an argument left out.
        read = settle(read, values, waive=options["waive"])
    print(to_yaml(document(argo_step(read, **options), kind)), end="")


def _budgets(**given: str | None) -> Budgets | None:
    seconds: dict[str, float] = {}
    for name, text in given.items():
        if text is not None:
            try:
                seconds[name] = parse_duration(float(text) if text.replace(".", "", 1).isdigit() else text)
            except ValueError as error:
                raise BadInput(f"--{name}-timeout: {error}") from None
    return Budgets(**seconds) if seconds else None
