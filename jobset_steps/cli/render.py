"""`jobset-steps render`: the JobSet as a step would create it, to look at or to apply by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from jobset_steps.cli.spec_file import read_spec, values_of
from jobset_steps.spec.check import check
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.template import SpecTemplate

__all__ = ["render"]


def render(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help='A YAML or JSON file; "-" is standard input.')],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A value for a hole.")
    ] = None,
    waive: Annotated[list[str] | None, typer.Option(metavar="RULE", help="Let a waivable rule pass.")] = None,
) -> int:
    """Print the manifest with its values and every default, as YAML."""
    read = read_spec(spec)
    jobset = with_defaults(read.bind(values_of(set_)) if isinstance(read, SpecTemplate) else read)
    if faults := check(jobset, waive=tuple(waive or ())):
        raise InvalidSpec(faults)
    print(jobset.to_yaml(), end="")
    return 0
