"""The last lines of a pod's log, and when the last of them was written."""

from __future__ import annotations

import pytest

from jobset_steps.clusters.kubernetes.views import log_tail, seconds
from jobset_steps.observed import LogTail

AT = "2026-01-02T03:04:05.25Z"
LONG_AT = "2026-01-02T03:04:05.250000001Z"


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        ("", 3, LogTail((), 0.0)),
        (f"{AT} one\n{AT} two\n", 1, LogTail(("two",), seconds(AT))),
        (f"{LONG_AT} as the kubelet writes it\n", 3, LogTail(("as the kubelet writes it",), seconds(AT))),
        (f"{AT} \n{AT} after a blank line\n", 3, LogTail(("", "after a blank line"), seconds(AT))),
        (f"{AT} step 1\rstep 2\rstep 3\n", 2, LogTail(("step 2", "step 3"), seconds(AT))),
        (f"{AT} cut off by a limi", 3, LogTail(("cut off by a limi",), seconds(AT))),
        ("unable to retrieve container logs\n", 3, LogTail(("unable to retrieve container logs",))),
    ],
)
def test_lines_lose_their_time_and_the_last_one_tells_it(text: str, lines: int, expected: LogTail) -> None:
    assert log_tail(text, lines) == expected
