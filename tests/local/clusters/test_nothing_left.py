"""Whoever is killed, nothing that was started here is left, and no zombie."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_sets import Watched, eventually, jobset, log_of, processes, python, replicated, sh, terminal

from jobset_steps.clusters.local import LocalCluster

# A main process with every kind of descendant that is hard to find again: none of them keeps its parent, its session, its
# environment or its signals. {mark} is in the command line of all of them.
NAUGHTY = """
import os, signal, sys, time
mark = "{mark}"
def leave(times):
    for _ in range(times):
        if os.fork():
            os._exit(0)
        os.setsid()
def stay():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", mark], {{}})
if not os.fork():
    os.setsid(); stay()
if not os.fork():
    leave(1); stay()
if not os.fork():
    leave(3); os.closerange(0, 64); stay()
for _ in range(3):
    if not os.fork():
        stay()
if not os.fork():  # one that goes on making new ones
    os.setsid()
    while True:
        if not os.fork():
            leave(2); stay()
        os.wait(); time.sleep(0.2)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
while {forever}:
    time.sleep(0.05)
time.sleep(0.5)
"""

PARENT = """
import os, sys, time
from pathlib import Path
from jobset_steps.clusters.local import LocalCluster
sys.path.insert(0, {tests!r})
from local_sets import Watched, jobset, python, replicated
root = {root!r}
cluster = LocalCluster(root)
watched = Watched(cluster, "n")
cluster.create(jobset("n", replicated("w", python(Path(root, "naughty.py").read_text()), pods=2)))
watched.running(2)
{more}
print(cluster.guardian, flush=True)
time.sleep(600)
"""


@pytest.fixture
def mark() -> Iterator[str]:
    mark = f"naughty-{time.time_ns()}"
    yield mark
    for pid in processes(mark):
        os.kill(pid, signal.SIGKILL)


def start_parent(
    root: Path, mark: str, more: str = "", *, quiet: bool = False
) -> tuple[subprocess.Popen[str], int]:
    """A process with a local cluster in which two pods misbehave, and its guardian's pid."""
    naughty = NAUGHTY.format(mark=mark, forever=True)
    (root / "naughty.py").write_text(
        naughty.replace("while True:", "while time.sleep(600):") if quiet else naughty
    )
    code = PARENT.format(tests=str(Path(__file__).parent), root=str(root), more=more)
    parent = subprocess.Popen([sys.executable, "-c", code, mark], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        guardian = int(parent.stdout.readline())
    # Two mains, six and more below each; the keepers and the parent do not carry the mark of a pod's own.
    assert eventually(lambda: len(processes(mark)) >= 14)
    return parent, guardian


def test_sigkill_of_the_parent_leaves_no_process(tmp_path: Path, mark: str) -> None:
    parent, guardian = start_parent(tmp_path, mark)
    parent.kill()
    parent.wait()
    assert eventually(lambda: processes(mark) == {}), processes(mark)
    assert eventually(lambda: not Path(f"/proc/{guardian}").exists())


def test_sigkill_of_a_parent_whose_fork_lives_on_leaves_no_process(tmp_path: Path, mark: str) -> None:
    # Given a fork of the parent that holds all its descriptors, as multiprocessing makes them
    fork = "if not os.fork():\n    os.close(1)\n    time.sleep(20)\n    os._exit(0)"
    parent, guardian = start_parent(tmp_path, mark, fork)
    parent.kill()
    parent.wait()
    # Then only that fork is left: it has the parent's command line
    assert eventually(lambda: not Path(f"/proc/{guardian}").exists())
    (left,) = processes(mark)
    os.kill(left, signal.SIGKILL)


@pytest.mark.parametrize("quiet", [False, True])
def test_sigkill_of_parent_and_guardian_together_leaves_no_process(
    tmp_path: Path, mark: str, quiet: bool
) -> None:
    # Quiet: no process ends or starts any more, so that nothing but the guardian's death can wake a keeper
    parent, guardian = start_parent(tmp_path, mark, quiet=quiet)
    os.kill(guardian, signal.SIGKILL)
    parent.kill()
    parent.wait()
    assert eventually(lambda: processes(mark) == {}), processes(mark)


def test_a_guardian_that_is_killed_takes_all_along_and_its_pods_are_lost_not_awaited(
    cluster: LocalCluster, mark: str
) -> None:
    # Given a set that may restart once, with pods that misbehave in attempt 0
    naughty = NAUGHTY.format(mark=mark, forever=True)
    code = f"import os\nif os.environ['ATTEMPT'] == '0':\n    exec({naughty!r})\nprint('second')"
    watched = Watched(cluster, "lost")
    cluster.create(jobset("lost", replicated("w", python(code), pods=2), max_restarts=1))
    watched.running(2)
    assert eventually(lambda: len(processes(mark)) >= 14)
    # When the guardian is killed
    assert cluster.guardian is not None
    os.kill(cluster.guardian, signal.SIGKILL)
    # Then the pods failed, for a reason that is not theirs, and the set went on under a new guardian
    view = watched.ended()
    assert terminal(view) == "Completed"
    lost = [pod for pod in watched.pods.values() if pod.attempt == 0]
    assert {pod.containers[0].reason for pod in lost} == {"ContainerStatusUnknown"}
    assert all(pod.condition("DisruptionTarget") for pod in lost)
    assert processes(mark) == {}
    assert log_of(cluster, "lost", 1).split() == ["second", "second"]


def test_a_keeper_that_is_killed_takes_its_container_along(cluster: LocalCluster, mark: str) -> None:
    watched = Watched(cluster, "kept")
    cluster.create(jobset("kept", replicated("w", python(NAUGHTY.format(mark=mark, forever=True)))))
    watched.running()
    assert eventually(lambda: len(processes(mark)) >= 7)
    guardian = cluster.guardian
    assert guardian is not None
    (keeper,) = map(int, Path(f"/proc/{guardian}/task/{guardian}/children").read_text().split())
    os.kill(keeper, signal.SIGKILL)
    assert terminal(watched.ended()) == "Failed"
    assert eventually(lambda: processes(mark) == {}), processes(mark)


def test_what_a_main_process_leaves_behind_ends_with_it(cluster: LocalCluster, mark: str) -> None:
    watched = Watched(cluster, "ended")
    cluster.create(jobset("ended", replicated("w", python(NAUGHTY.format(mark=mark, forever=False)))))
    # When the main process has ended, its pod ends, and with it all that it started
    assert terminal(watched.ended()) == "Completed"
    assert processes(mark) == {}


def test_deleting_a_set_ends_whole_trees_and_only_its_own(cluster: LocalCluster, mark: str) -> None:
    stays = Watched(cluster, "stays")
    cluster.create(jobset("stays", replicated("w", sh(f"echo {mark}-stays; sleep 600; true"))))
    stays.running()
    watched = Watched(cluster, "goes")
    naughty = python(NAUGHTY.format(mark=mark, forever=True))
    uid = cluster.create(jobset("goes", replicated("w", naughty, terminationGracePeriodSeconds=0)))
    watched.running()
    assert eventually(lambda: len(processes(mark)) >= 8)
    cluster.delete("goes", uid)
    watched.gone()
    left = processes(mark)
    assert len(left) == 1
    assert set(left) == set(processes(f"{mark}-stays"))


def test_no_zombies_while_many_pods_end(cluster: LocalCluster) -> None:
    # Given pods whose orphans end after their parents
    watched = Watched(cluster, "orphans")
    cluster.create(jobset("orphans", replicated("w", sh("(sleep 0.05 &) ; (true &) ; sleep 0.2"), pods=20)))
    watched.running()
    assert terminal(watched.ended()) == "Completed"
    guardian = cluster.guardian
    assert guardian is not None
    # Then the guardian has no child left, dead or alive, and neither has this process but the guardian
    children = Path(f"/proc/{guardian}/task/{guardian}/children")
    assert eventually(lambda: children.read_text().split() == [])
    assert [state for pid, state in processes("guardian.py").items() if pid == guardian] == ["S"]
