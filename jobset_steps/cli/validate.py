"""`jobset-steps validate`: every fault of every file, one line each."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from jobset_steps.cli.spec_file import read_spec, values_of
from jobset_steps.spec.check import check
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.template import SpecTemplate

__all__ = ["faults_of", "validate"]


def validate(
    specs: Annotated[
        list[str], typer.Argument(metavar="SPEC...", help='YAML or JSON files; "-" is standard input.')
    ],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A value for a hole.")
    ] = None,
    waive: Annotated[list[str] | None, typer.Option(metavar="RULE", help="Let a waivable rule pass.")] = None,
    jobset: Annotated[
        str, typer.Option(metavar="VERSION", help="The JobSet version it will run on.")
    ] = "0.11",
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Judge it as kubectl would send it, without defaults.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the faults as one JSON list.")] = False,
) -> int:
    """Check specs as the cluster would, and for what it would accept and then hang on. Exit code 64 for any fault."""
    found: list[dict[str, Any]] = []
    for spec in specs:
        faults = faults_of(spec, values_of(set_), tuple(waive or ()), jobset, as_is=as_is)
        found += [{"file": spec, **asdict(fault)} for fault in faults]
        if not as_json:
            for fault in faults:
                print(f"{spec}: {fault}")
            if not faults:
                print(f"{spec}: ok")
    if as_json:
        print(json.dumps(found, indent=2, default=str))
    return 64 if found else 0


def faults_of(
    spec: str, values: dict[str, str], waive: tuple[str, ...], jobset: str, *, as_is: bool
) -> tuple[Fault, ...]:
    """All faults of one file; a template is bound if values are given, else checked as far as can be."""
    try:
        read = read_spec(spec)
        if isinstance(read, SpecTemplate):
            if not values:
                return read.check(waive=waive)
            read = read.bind(values)
        return check(read if as_is else with_defaults(read), waive=waive, jobset_version=jobset)
    except InvalidSpec as error:
        return error.faults
