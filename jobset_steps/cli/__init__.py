"""The command line. Commands live in files of their own name; here they become one program with one kind of error.

Whatever goes wrong ends with the exit code of the README's table and one readable message, never a traceback.
"""

from __future__ import annotations

import io
import sys
import tempfile
import traceback
from collections.abc import Sequence

import typer

from jobset_steps.cli.explain import explain
from jobset_steps.cli.render import render
from jobset_steps.cli.run import run
from jobset_steps.cli.serve import serve
from jobset_steps.cli.sweep import sweep
from jobset_steps.cli.validate import validate
from jobset_steps.errors import StepError
from jobset_steps.spec.fault import InvalidSpec

__all__ = ["main"]

_USAGE = 64
_NOBODY_READS = 141  # As of a program that SIGPIPE ends: 0 would say that nothing is wrong.
# typer carries its own copy of click in some versions and depends on it in others: this is ClickException of either.
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="jobset-steps",
    help="Distributed training as one step of a pipeline: run, validate, render and explain JobSets.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (run, validate, render, explain, sweep, serve):
    app.command()(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    try:
        result = typer.main.get_command(app).main(
            args=list(sys.argv[1:] if arguments is None else arguments),
            prog_name="jobset-steps",
            standalone_mode=False,
        )
        if sys.stdout is not None:
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except InvalidSpec as error:
        for fault in error.faults:
            print(fault, file=sys.stderr)
        if missing := [fault.hole for fault in error.faults if fault.rule == "missing-value"]:
            print(f"Give values with {' '.join(f'--set {name}=...' for name in missing)}", file=sys.stderr)
        return error.exit_code
    except StepError as error:
        print(f"jobset-steps: {error}\n{error.todo}", file=sys.stderr)
        return error.exit_code
    except _UsageError as error:
        text: str = getattr(error, "format_message", error.__str__)()
        if text:  # None where no command was given: then the help has been printed.
            print(f"jobset-steps: {text} (see --help)", file=sys.stderr)
        return _USAGE
    except typer.Abort:
        return 130
    except BrokenPipeError:
        from jobset_steps.launch.lines import give_up

        give_up(sys.stdout)
        return _NOBODY_READS
    except Exception as error:
        print(f"jobset-steps: {type(error).__name__}: {error}\n{_kept(error)}", file=sys.stderr)
        return StepError.exit_code


def _kept(error: Exception) -> str:
    """Where the traceback of our own defect is, for the report of it."""
    with tempfile.NamedTemporaryFile("w", prefix="jobset-steps-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    return f"{StepError.todo} The details are in {file.name}"


def console() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal of another encoding shows escapes, and is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main())
