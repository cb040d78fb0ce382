"""What `run` shows while a step lasts: a live view on a terminal, plain lines everywhere else. Only ever to standard error.

It shows what the supervisor knows and says, and decides nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from jobset_steps.launch.lines import tell
from jobset_steps.report.text import clean
from jobset_steps.supervisor.inputs import Progress, Say
from jobset_steps.supervisor.state import StepState

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["View", "open_view"]

_LOG_LINES, _LOG_WIDTH = 8, 500
_FRAMES_A_SECOND = 4


class View(Protocol):
    """Hears of a step; used as a context manager around it."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing; what was shown last stays."""

    def say(self, said: Say) -> None:
        """Progress."""

    def seen(self, state: StepState) -> None:
        """What is known now."""

    def log(self, line: str) -> None:
        """A line of the leader's log; from any thread."""

    def notice(self, text: str) -> None:
        """Something the place cannot give."""


def open_view(*, plain: bool) -> View:
    """The live view if standard error is a terminal that wants one, else lines."""
    terminal = sys.stderr is not None and sys.stderr.isatty()  # None where it was closed.
    wants = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return Live() if wants and not plain else Lines()


class Lines:
    """Plain lines: the time, the progress, what was said; the leader's log as it is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def say(self, said: Say) -> None:
        """See View."""
        cause = f" ({said.cause})" if said.cause else ""
        self._line(f"{said.progress.value}{cause}: {said.message}")

    def seen(self, state: StepState) -> None:
        """See View."""

    def log(self, line: str) -> None:
        """See View."""
        tell(f"  | {line}", sys.stderr)

    def notice(self, text: str) -> None:
        """See View."""
        self._line(f"Note: {text}")

    def _line(self, text: str) -> None:
        tell(f"{time.strftime('%H:%M:%S')} {text}", sys.stderr)


_COLOURS = {
    Progress.QUEUED: "yellow",
    Progress.STARTING: "cyan",
    Progress.RUNNING: "green",
    Progress.RESTARTING: "magenta",
    Progress.STUCK: "red",
    Progress.UNREACHABLE: "red",
    Progress.ENDING: "yellow",
}


class Live:
    """One picture that is drawn anew: progress, replicated jobs, attempts, the last lines of the leader's log."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._lock = threading.Lock()
        self._state: StepState | None = None
        self._said: Say | None = None
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self._notes: list[str] = []
        self._began = time.time()
        self._live = RichLive(
            get_renderable=self._draw,
            console=Console(stderr=True),
            refresh_per_second=_FRAMES_A_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, said: Say) -> None:
        """See View."""
        with self._lock:
            self._said = said

    def seen(self, state: StepState) -> None:
        """See View."""
        with self._lock:
            self._state = state

    def log(self, line: str) -> None:
        """See View."""
        with self._lock:
            # What a terminal would act on would draw over the picture.
            self._log.append(clean(line)[:_LOG_WIDTH])

    def notice(self, text: str) -> None:
        """See View."""
        with self._lock:
            self._notes.append(text)

    def _draw(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        with self._lock:
            state, said, log, notes = self._state, self._said, tuple(self._log), tuple(self._notes)
        head = Text()
        if said is not None:
            head.append(f" {said.progress.value} ", style=f"bold reverse {_COLOURS[said.progress]}")
            head.append(f" {said.message}")
        else:
            head.append(" Loading ", style="bold reverse")
        head.append(f"  {_clock(time.time() - self._began)}", style="dim")
        parts: list[object] = [head]
        if state is not None and state.name:
            parts.append(Text(f" {state.plan.namespace}/{state.name}", style="dim"))
        if state is not None and state.view is not None and state.view.jobset is not None:
            parts += [_jobs(state), *_attempts(state)]
        parts += [Text(f" note: {note}", style="yellow") for note in notes]
        if log:
            parts.append(Text(" leader", style="dim"))
            parts += [Text(f"  | {line}", no_wrap=True, overflow="ellipsis") for line in log]
        return Group(*parts)  # type: ignore[arg-type]


def _jobs(state: StepState) -> object:
    from rich.table import Table

    assert state.view is not None
    table = Table(box=None, padding=(0, 2, 0, 1), header_style="dim")
    for title in ("replicated job", "pods", "running", "ready", "succeeded", "failed"):
        table.add_column(title, justify="left" if title == "replicated job" else "right")
    for replicated in state.plan.jobset.spec.replicated_jobs:
        pods = [
            pod
            for pod in state.view.pods
            if pod.replicated_job == replicated.name and pod.attempt == state.attempt and not pod.gone
        ]
        counts = (
            sum(pod.phase == "Running" for pod in pods),
            sum(pod.ready for pod in pods),
            sum(pod.phase == "Succeeded" for pod in pods),
            sum(pod.phase == "Failed" for pod in pods),
        )
        job = replicated.template.spec
        wanted = (1 if replicated.replicas is None else replicated.replicas) * (job.parallelism or 1)
        table.add_row(replicated.name, str(wanted), *(str(count) if count else "·" for count in counts))
    return table


def _attempts(state: StepState) -> list[object]:
    from rich.text import Text

    assert state.view is not None
    assert state.view.jobset is not None
    policy = state.plan.jobset.spec.failure_policy
    jobset = state.view.jobset
    text = Text(f" attempt {jobset.restarts}")
    if policy is not None:
        text.append(f", {jobset.restarts_counted} of {policy.max_restarts or 0} restarts used", style="dim")
    spent = state.spent
    text.append(
        f", queued {_clock(spent.queued)}, starting {_clock(spent.starting)}, running {_clock(spent.running)}",
        style="dim",
    )
    return [text]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
