"""`jobset-steps validate`: every fault of every file, one line each; and what a version of JobSet has."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from typing import Annotated, Any

import typer

from jobset_steps.cli.spec_file import read_spec, values_of
from jobset_steps.errors import BadInput
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.judge import faults_now, settle
from jobset_steps.spec.template import Hole, SpecTemplate
from jobset_steps.spec.versions import DEFAULT_VERSION, DIFFERENCES, VERSIONS, known_version

__all__ = ["faults_of", "validate"]


def validate(
    specs: Annotated[
        list[str] | None, typer.Argument(metavar="SPEC...", help='YAML or JSON files; "-" is standard input.')
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A value for a hole.")
    ] = None,
    waive: Annotated[list[str] | None, typer.Option(metavar="RULE", help="Let a waivable rule pass.")] = None,
    jobset: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help=f"The JobSet version it will run on: {', '.join(VERSIONS)}; default {DEFAULT_VERSION}. "
            "Without a SPEC: print what that version has.",
        ),
    ] = None,
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Judge it as kubectl would send it, without defaults.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the faults as one JSON list.")] = False,
) -> int:
    """Check specs as the cluster would, and for what it would accept and then hang on. Exit code 64 for any fault."""
    version = known_version(jobset or DEFAULT_VERSION)
    if not specs:
        if jobset is None:
            raise BadInput("no SPEC to validate: name a file, or - for standard input")
        _print_version(version)
        return 0
    found: list[dict[str, Any]] = []
    for spec in specs:
        faults, holes = faults_of(spec, values_of(set_), tuple(waive or ()), version, as_is=as_is)
        found += [{"file": spec, **asdict(fault)} for fault in faults]
        if not as_json:
            for fault in faults:
                print(f"{spec}: {fault}")
            if not faults:
                to_come = ", ".join(f"{hole.name} ({hole.type})" for hole in holes)
                print(f"{spec}: ok" + (f"; values to come: {to_come}" if to_come else ""))
    if as_json:
        print(json.dumps(found, indent=2, default=str))
    return 64 if found else 0


def faults_of(
    spec: str, values: dict[str, str], waive: tuple[str, ...], jobset: str, *, as_is: bool
) -> tuple[tuple[Fault, ...], tuple[Hole, ...]]:
    """(all faults of one file, the holes whose values are to come); bound if values are given."""
    try:
        read = read_spec(spec)
        if isinstance(read, SpecTemplate) and not values:
            return faults_now(read, waive=waive, jobset_version=jobset, as_is=as_is), read.holes
        settle(read, values, waive=waive, jobset_version=jobset, as_is=as_is)
    except InvalidSpec as error:
        return error.faults, ()
    return (), ()


def _print_version(version: str) -> None:
    print(f"JobSet {version}, of what differs between {', '.join(VERSIONS)}:")
    for row in DIFFERENCES:
        has = "has" if row.is_in(version) else "has not"
        print(f"\n{has:8}{row.what} (from {row.since} on)")
        print(textwrap.fill(row.meaning, 100, initial_indent=" " * 8, subsequent_indent=" " * 8))
