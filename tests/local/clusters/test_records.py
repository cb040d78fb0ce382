"""Records are changed by one writer at a time and never read half-written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jobset_steps.clusters import Stored
from jobset_steps.clusters.local import LocalCluster
from jobset_steps.clusters.local.records import Records
from jobset_steps.errors import ApiError


def test_a_record_is_saved_at_its_version_only(cluster: LocalCluster) -> None:
    assert cluster.load("d1") is None
    first = cluster.save("d1", '{"a": "é\n"}', "")
    assert cluster.load("d1") == Stored('{"a": "é\n"}', first)
    second = cluster.save("d1", "b", first)
    assert second != first
    for version in ("", first, "999"):
        with pytest.raises(ApiError) as error:
            cluster.save("d1", "c", version)
        assert error.value.kind == "conflict"
    assert cluster.load("d1") == Stored("b", second)


def test_writers_of_several_processes_never_lose_an_update(tmp_path: Path) -> None:
    # Given four processes that each add one to a number fifty times, again on a conflict
    code = f"""
from pathlib import Path
from jobset_steps.clusters.local.records import Records
from jobset_steps.errors import ApiError
records, done = Records(Path({str(tmp_path)!r})), 0
while done < 50:
    stored = records.load("n")
    try:
        records.save("n", str(int(stored.text) + 1 if stored else 1), stored.version if stored else "")
        done += 1
    except ApiError as error:
        assert error.kind == "conflict"
"""
    writers = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    stored = Records(tmp_path).load("n")
    assert stored is not None
    assert stored.text == "200"


def test_a_draft_that_a_crash_left_is_not_a_record(tmp_path: Path) -> None:
    records = Records(tmp_path)
    version = records.save("d", "whole", "")
    (tmp_path / ".d.999").write_text("2\nha")
    assert records.load("d") == Stored("whole", version)
    assert records.save("d", "next", version) == "2"


def test_what_is_no_record_is_an_error_and_not_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("garbage")
    with pytest.raises(ApiError) as error:
        Records(tmp_path).load("d")
    assert error.value.kind == "unavailable"
    with pytest.raises(ApiError) as invalid:
        Records(tmp_path).load("../d")
    assert invalid.value.kind == "invalid"
