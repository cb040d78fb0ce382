import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jobset_steps.errors import BadInput
from jobset_steps.worker import Checkpoints, newest_complete_checkpoint


def names(directory):
    return sorted(os.listdir(directory))


def test_there_is_none_at_first(tmp_path):
    assert Checkpoints(tmp_path / "new").newest() is None
    assert newest_complete_checkpoint(tmp_path / "absent") is None


def test_the_newest_is_the_highest_step_not_the_last_written(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=5)
    for step in (9, 100, 20):
        checkpoints.save(step, lambda path, step=step: path.write_text(str(step)))

    newest = checkpoints.newest()

    assert (newest.step, newest.path.read_text()) == (100, "100")
    assert newest.path == checkpoints.path_for(100)


def test_one_that_the_framework_cannot_load_is_passed_over(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, lambda path: path.write_text("good"))
    checkpoints.save(2, lambda path: path.write_text(""))

    assert checkpoints.newest(lambda path: path.stat().st_size > 0).step == 1


def test_directories_are_checkpoints_too(tmp_path):
    checkpoints = Checkpoints(tmp_path)

    with checkpoints.writing(7) as path:
        path.mkdir()
        (path / "model").write_text("m")
        (path / "optimizer").write_text("o")

    assert names(checkpoints.newest().path) == ["model", "optimizer"]


def test_a_write_that_fails_leaves_nothing(tmp_path):
    checkpoints = Checkpoints(tmp_path)

    def fails(path):
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        checkpoints.save(3, fails)

    assert names(tmp_path) == []


def test_a_process_killed_in_the_middle_of_a_write_leaves_nothing_that_is_chosen(tmp_path):
    script = """
import os, signal, sys
from jobset_steps.worker import Checkpoints
checkpoints = Checkpoints(sys.argv[1])
checkpoints.save(1, lambda path: path.write_text("one"))
def half(path):
    path.write_text("tw")
    os.kill(os.getpid(), signal.SIGKILL)
checkpoints.save(2, half)
"""
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2  # the complete one, and the half one under another name

    assert newest_complete_checkpoint(tmp_path).step == 1


def test_what_an_earlier_attempt_left_half_written_is_cleared_by_a_later_one(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBSET_NAME", "train-12345678")
    monkeypatch.setenv("JOBSET_RESTART_ATTEMPT", "0")
    (Checkpoints(tmp_path).shared(5) / "shard-0").write_text("half")
    monkeypatch.setenv("JOBSET_RESTART_ATTEMPT", "2")
    mine = Checkpoints(tmp_path).shared(5)
    monkeypatch.setenv("JOBSET_RESTART_ATTEMPT", "1")

    Checkpoints(tmp_path).save(1, lambda path: path.write_text("late"))

    assert mine.is_dir()  # attempt 2 is alive: attempt 1 was late
    assert names(tmp_path) == [mine.name, "checkpoint-0000000001"]


def test_a_new_generation_clears_what_the_one_before_left(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBSET_NAME", "train-12345678")
    monkeypatch.setenv("JOBSET_RESTART_ATTEMPT", "3")
    Checkpoints(tmp_path).shared(5)
    monkeypatch.setenv("JOBSET_NAME", "train-12345678-g2")
    monkeypatch.setenv("JOBSET_RESTART_ATTEMPT", "0")

    Checkpoints(tmp_path).save(6, lambda path: path.write_text("new"))

    assert names(tmp_path) == ["checkpoint-0000000006"]


def test_shards_of_all_ranks_become_one_checkpoint_when_the_leader_publishes(tmp_path):
    ranks = [Checkpoints(tmp_path) for _ in range(3)]
    for rank, checkpoints in enumerate(ranks):
        (checkpoints.shared(40) / f"shard-{rank}").write_text(str(rank))
    assert ranks[0].newest() is None

    ranks[0].publish(40)

    assert names(ranks[2].newest().path) == ["shard-0", "shard-1", "shard-2"]


def test_only_the_newest_are_kept_and_always_the_one_just_saved(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=2)
    for step in (10, 20, 30, 40):
        checkpoints.save(step, lambda path: path.mkdir())
    assert [c.step for c in checkpoints.all()] == [30, 40]

    checkpoints.save(5, lambda path: path.mkdir())

    assert [c.step for c in checkpoints.all()] == [5, 30, 40]


def test_writers_at_the_same_time_never_show_a_half_one(tmp_path):
    wrong = []
    done = threading.Event()

    def write(letter):
        checkpoints = Checkpoints(tmp_path, keep=3)
        for step in range(30):
            with checkpoints.writing(step) as path:
                path.mkdir()
                for part in "abc":
                    (path / part).write_text(letter * 500)

    def read():
        while not done.is_set():
            newest = newest_complete_checkpoint(tmp_path)
            if newest is None:
                continue
            try:
                parts = [(newest.path / part).read_text() for part in "abc"]
            except FileNotFoundError:
                if newest in Checkpoints(tmp_path).all():  # not just pruned: it was there, and half
                    wrong.append(newest)
                continue
            if len(set(parts)) != 1 or len(parts[0]) != 500:
                wrong.append(parts)

    with ThreadPoolExecutor(4) as threads:
        reader = threads.submit(read)
        writers = [threads.submit(write, letter) for letter in "xyz"]
        for writer in writers:
            writer.exception()
        done.set()
    assert [each.exception() for each in [reader, *writers]] == [None] * 4

    assert wrong == []
    assert [c.step for c in Checkpoints(tmp_path).all()] == [27, 28, 29]
    assert names(tmp_path) == ["checkpoint-0000000027", "checkpoint-0000000028", "checkpoint-0000000029"]


def test_d4_a_restarted_pod_resumes_from_the_newest_complete_checkpoint(tmp_path, monkeypatch):
    # One pod template for all attempts: only the attempt differs, the directory does not.
    monkeypatch.setenv("JOBSET_STEPS_RANK_OFFSET", "0")
    monkeypatch.setenv("JOBSET_STEPS_WORLD_SIZE", "1")
    monkeypatch.setenv("JOBSET_STEPS_CHECKPOINT_DIR", str(tmp_path / "run-1" / "train"))
    monkeypatch.setenv("JOBSET_RESTART_ATTEMPT", "0")
    Checkpoints().save(10, lambda path: path.write_text("round 10"))
    Checkpoints().shared(20)  # killed before it was published

    monkeypatch.setenv("JOBSET_RESTART_ATTEMPT", "1")

    assert Checkpoints().newest().path.read_text() == "round 10"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: Checkpoints("s3://bucket/run"), "object URI"),
        (lambda path: Checkpoints(path, keep=0), "keep at least 1, 0 given"),
        (lambda path: Checkpoints(path).path_for(-1), "from 0 on, -1 given"),
        (lambda path: Checkpoints(path).save(1, lambda where: None), "nothing was written"),
    ],
)
def test_what_makes_no_sense_is_said(tmp_path, make, said):
    with pytest.raises(BadInput, match=said):
        make(tmp_path)


def test_without_a_directory_the_recipes_argument_is_named(monkeypatch):
    monkeypatch.setenv("JOBSET_STEPS_RANK_OFFSET", "0")
    monkeypatch.setenv("JOBSET_STEPS_WORLD_SIZE", "1")
    monkeypatch.delenv("JOBSET_STEPS_CHECKPOINT_DIR", raising=False)

    with pytest.raises(BadInput, match='checkpoints="pvc://'):
        Checkpoints()
