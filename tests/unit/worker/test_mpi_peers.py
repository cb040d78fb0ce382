"""How launcher and workers of one attempt know each other, over a real connection; no ssh is needed for that."""

import json
import os
import socket
import stat
import subprocess

import pytest

from jobset_steps.worker import mpi

POD = {
    "JOBSET_NAME": "sim-1a2b",
    "JOBSET_RESTART_ATTEMPT": "1",
    "JOBSET_STEPS_JOBSET_UID": "6f1d",
    "JOBSET_STEPS_POD_IP": "10.0.0.1",
    "JOBSET_STEPS_PORT": "2222",
    "JOBSET_STEPS_COORDINATOR": "sim-1a2b-launcher-0-0.sim-1a2b",
}


def heard(sender, receiver):
    """What the receiver makes of one message of the sender."""
    here, there = socket.socketpair()
    with here, there:
        mpi.Peers(POD | sender).say(here, index=2)
        return mpi.Peers(POD | receiver).hear(there.makefile("rb"))


def test_pods_of_one_attempt_hear_each_other():
    assert heard({}, {})["index"] == 2


@pytest.mark.parametrize(
    ("stranger", "said"),
    [
        ({"JOBSET_STEPS_JOBSET_UID": "other"}, "no pod of this JobSet has sent"),
        ({"JOBSET_RESTART_ATTEMPT": "0"}, "a message of sim-1a2b attempt 0"),
    ],
)
def test_a_stranger_and_an_attempt_before_are_turned_away(stranger, said):
    with pytest.raises(ValueError, match=said):
        heard(stranger, {})


def test_a_message_that_was_changed_on_the_way_is_turned_away():
    here, there = socket.socketpair()
    peers = mpi.Peers(POD)
    with here, there:
        peers.say(here, client_key="mine")
        text, code = json.loads(there.makefile("rb").readline())
        here.sendall(json.dumps([text.replace("mine", "evil"), code]).encode() + b"\n")
        with pytest.raises(ValueError, match="no pod of this JobSet has sent"):
            peers.hear(there.makefile("rb"))


def test_a_side_that_is_gone_is_a_lost_connection():
    here, there = socket.socketpair()
    here.close()
    with there, pytest.raises(ConnectionError):
        mpi.Peers(POD).hear(there.makefile("rb"))


def test_mpirun_is_told_the_hosts_and_reaches_them_only_by_their_keys(tmp_path):
    workers = [{"address": f"10.0.0.{n}", "host_key": f"ssh-ed25519 key{n}"} for n in (2, 3)]

    environ, hosts = mpi.prepare(str(tmp_path), mpi.Peers(POD), workers, 8)

    assert (tmp_path / "hosts").read_text() == "10.0.0.2 slots=8\n10.0.0.3 slots=8\n"
    assert hosts == str(tmp_path / "hosts")
    known = (tmp_path / "known_hosts").read_text()
    assert known == "[10.0.0.2]:2222 ssh-ed25519 key2\n[10.0.0.3]:2222 ssh-ed25519 key3\n"
    assert "StrictHostKeyChecking yes" in (tmp_path / "config").read_text()
    assert environ["PATH"].split(os.pathsep)[0] == str(tmp_path / "bin")
    assert stat.S_IMODE((tmp_path / "config").stat().st_mode) == 0o600
    assert f"-F {tmp_path}/config" in (tmp_path / "bin" / "ssh").read_text()


def test_mpiruns_exit_code_is_kept_and_one_that_is_missing_is_named(capfd):
    assert mpi.run(["sh", "-c", "exit 65"], dict(os.environ)) == 65
    assert mpi.run(["sh", "-c", "kill -9 $$"], dict(os.environ)) == 137
    assert mpi.run(["no-such-mpirun"], dict(os.environ)) == 127
    assert "cannot run mpirun: No such file" in capfd.readouterr().err


def test_what_a_session_started_is_found_whoever_its_parent_is():
    # Given a process that stands for sshd, with a child and a grandchild
    server = subprocess.Popen(["sh", "-c", "sleep 600 & sh -c 'sleep 600 & wait' & wait"])
    found: list[int] = []
    try:
        while len(found := mpi.below(server.pid)) < 3:
            assert server.poll() is None
        names = {pid: name for pid, _, name in mpi.processes()}
        assert sorted(names[pid] for pid in found) == ["sh", "sleep", "sleep"]
    finally:
        mpi.tell(server, 9)
        server.kill()
        server.wait()
    assert mpi.below(server.pid) == []
