"""The live view: what it draws stays a picture, whatever a training prints."""

from __future__ import annotations

from rich.console import Console

from jobset_steps.cli.live import Live


def drawn(view: Live) -> str:
    console = Console(width=80)
    with console.capture() as captured:
        console.print(view._draw())
    return captured.get()


def test_a_log_line_never_acts_on_the_terminal() -> None:
    view = Live()
    view.log("\x1b[2J\x1b]0;title\x07\x1b[31mred\x1b[0m")
    view.log("10%\r50%\r100%")
    view.log("[bold]text[/bold]" + "x" * 1_000_000)
    lines = drawn(view).splitlines()
    assert [line.strip() for line in lines[-3:-1]] == ["| red", "| 100%"]
    assert lines[-1].startswith("  | [bold]text[/bold]xxx")
    assert "\x1b[2J" not in drawn(view)
