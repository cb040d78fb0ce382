"""Pods find each other: own addresses, replaced names, drawn ports, volumes and the downward API, in real processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from local_sets import Watched, eventually, field, jobset, log_of, python, replicated, sh, terminal

from jobset_steps.clusters.local import LocalCluster
from jobset_steps.clusters.local.network import Addresses, draw_port, has_own_addresses

PORT = {"ports": [{"name": "rendezvous", "containerPort": 29500}]}

# A leader listens on every address, as a careless rendezvous does; the others greet it by its name in the cluster.
MEET = """
import os, socket, sys, time
rank, count, where = int(os.environ["JOB_COMPLETION_INDEX"]), int(sys.argv[1]), os.environ["LEADER"]
host, port = where.rsplit(":", 1)
if rank == 0:
    server = socket.create_server(("0.0.0.0", int(port)), backlog=64)
    seen = set()
    while len(seen) < count - 1:
        connection, (peer, _) = server.accept()
        seen.add(connection.makefile().readline().strip())
        connection.close()
    print(os.environ["SET"], sorted(seen), flush=True)
else:
    for _ in range(500):
        try:
            client = socket.create_connection((host, int(port)), source_address=(os.environ["IP"], 0))
            break
        except OSError:
            time.sleep(0.02)
    client.sendall(f"{os.environ['SET']}-{rank}\\n".encode())
    client.recv(1)
    time.sleep(0.2)
"""


def meeting(name: str, pods: int) -> dict[str, Any]:
    jobset_name = field("JOBSET_NAME", "metadata.annotations['jobset.sigs.k8s.io/jobset-name']")
    env = [
        jobset_name,
        {"name": "LEADER", "value": "$(JOBSET_NAME)-w-0-0.$(JOBSET_NAME):29500"},
        {"name": "SET", "value": "$(JOBSET_NAME)"},
        field("IP", "status.podIP"),
    ]
    container = python(MEET, env=env, args=[str(pods)], **PORT)
    return jobset(name, replicated("w", container, pods=pods))


def test_replaced_names_and_ports_really_connect(cluster: LocalCluster) -> None:
    watched = Watched(cluster, "meet")
    cluster.create(meeting("meet", 4))
    assert terminal(watched.ended()) == "Completed", log_of(cluster, "meet", 0)
    assert log_of(cluster, "meet", 0).strip() == "meet ['meet-1', 'meet-2', 'meet-3']"


def test_two_sets_at_once_with_the_same_port_do_not_clash(cluster: LocalCluster, tmp_path: Path) -> None:
    # Given the same recipe's port in two JobSets of this process and in two of another one
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from local_sets import Watched, terminal
from test_names import meeting
from jobset_steps.clusters.local import LocalCluster
with LocalCluster({str(tmp_path / "other")!r}) as cluster:
    watched = [Watched(cluster, name) for name in ("c", "d")]
    for each in watched:
        cluster.create(meeting(each.name, 3))
    print([terminal(each.ended()) for each in watched])
"""
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    here = [Watched(cluster, name) for name in ("a", "b")]
    for each in here:
        cluster.create(meeting(each.name, 3))
    # Then all meet their own
    assert [terminal(each.ended()) for each in here] == ["Completed", "Completed"]
    out, _ = other.communicate(timeout=30)
    assert out.strip() == "['Completed', 'Completed']"
    for name in ("a", "b"):
        assert log_of(cluster, name, 0).strip() == f"{name} ['{name}-1', '{name}-2']"


@pytest.mark.skipif(not has_own_addresses(), reason="only 127.0.0.1 here")
def test_c10_stragglers_reach_nobody_each_attempt_has_addresses_and_a_port_of_its_own(
    cluster: LocalCluster,
) -> None:
    show = "echo $IP $PEER $PORT; [ $ATTEMPT = 1 ] || { sleep 0.3; exit 1; }"
    env = [
        field("IP", "status.podIP"),
        {"name": "PEER", "value": "addresses-w-0-1"},
        {"name": "PORT", "value": "29500"},
    ]
    watched = Watched(cluster, "addresses")
    cluster.create(jobset("addresses", replicated("w", sh(show, env=env, **PORT), pods=2), max_restarts=1))
    assert terminal(watched.ended()) == "Completed"
    seen = []
    for attempt in (0, 1):
        first, second = (log_of(cluster, "addresses", attempt, f"addresses-w-0-{n}").split() for n in (0, 1))
        # All pods of an attempt agree, on the peer's address and on the port
        assert first[1:] == second[1:]
        assert second[0] == second[1]
        assert len({first[0], second[0], "127.0.0.1"}) == 3
        seen += [first, second]
    assert len({address for address, _, _ in seen}) == 4
    assert len({port for _, _, port in seen} - {"29500"}) == 2


def test_claims_are_exclusive_and_given_back() -> None:
    one, two = Addresses(), Addresses()
    try:
        if has_own_addresses():
            taken = {one.take() for _ in range(300)} | {two.take() for _ in range(300)}
            assert len(taken) == 600
            assert all(address.startswith("127.") for address in taken)
    finally:
        one.close()
        two.close()


def test_a_drawn_port_is_free_on_every_address_and_drawn_once() -> None:
    ports = [draw_port() for _ in range(50)]
    try:
        assert len({port.number for port in ports}) == 50
        for port in ports[:5]:
            with socket.create_server(("0.0.0.0", port.number)):
                pass
    finally:
        for port in ports:
            port.close()


def test_the_environment_is_the_specs_and_not_the_shells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a shell with settings of its own
    monkeypatch.setenv("RANK", "7")
    monkeypatch.setenv("WANDB_API_KEY", "from-the-shell")
    env = [
        {"name": "BASE", "value": "b"},
        {"name": "BOTH", "value": "$(BASE)-$(NONE)-$$(BASE)"},
        field("POD", "metadata.name"),
        field("NODE", "spec.nodeName"),
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "WANDB_API_KEY", "valueFrom": {"secretKeyRef": {"name": "wandb", "key": "key"}}},
    ]
    show = "import json, os, sys; print(json.dumps({'env': dict(os.environ), 'argv': sys.argv, 'exe': sys.executable}))"
    container = python(
        show,
        env=env,
        args=["$(BOTH)", "$(JOB_COMPLETION_INDEX)", "$HOME"],
        resources={"limits": {"cpu": "3"}},
    )
    heard: list[str] = []
    with LocalCluster(tmp_path, notice=heard.append) as cluster:
        watched = Watched(cluster, "env")
        cluster.create(jobset("env", replicated("w", container, pods=2)))
        assert terminal(watched.ended()) == "Completed"
        told = json.loads(log_of(cluster, "env", 0, "env-w-0-1"))
    (pod,) = (pod for pod in watched.pods.values() if pod.index == 1)
    assert told["argv"] == ["-c", "b-$(NONE)-$(BASE)", "1", "$HOME"]
    assert told["exe"] == sys.executable
    got = told["env"]
    assert "RANK" not in got
    assert got["HOSTNAME"] == "env-w-0-1"
    assert (got["POD"], got["NODE"], got["CPU"]) == (pod.name, pod.node, "3")
    assert (got["JOB_COMPLETION_INDEX"], got["ATTEMPT"]) == ("1", "0")
    assert got["WANDB_API_KEY"] == "from-the-shell"
    assert Path(got["PATH"].split(os.pathsep)[0]) == Path(sys.executable).parent
    # And what was not given as on a cluster was said, once
    assert sum("WANDB_API_KEY is taken from your environment" in text for text in heard) == 1


def test_volumes_empty_ones_are_fresh_and_removed_claims_are_kept(cluster: LocalCluster) -> None:
    # Given a pod that counts its runs in a claim and in an empty directory, and fails the first time
    count = """
        ls /cache | wc -l; ls /ckpt/run | wc -l; touch /cache/$ATTEMPT /ckpt/run/$ATTEMPT; echo $WHERE
        [ $ATTEMPT = 1 ]
    """
    mounts = [
        {"name": "cache", "mountPath": "/cache"},
        {"name": "ckpt", "mountPath": "/ckpt/run", "subPath": "set/run"},
    ]
    env = [{"name": "WHERE", "value": "/cache/x"}]
    volumes = [
        {"name": "cache", "emptyDir": {}},
        {"name": "ckpt", "persistentVolumeClaim": {"claimName": "team"}},
    ]
    container = sh(count, volumeMounts=mounts, env=env, workingDir="/cache")
    watched = Watched(cluster, "volumes")
    cluster.create(jobset("volumes", replicated("w", container, volumes=volumes), max_restarts=1))
    assert terminal(watched.ended()) == "Completed"
    first, second = (log_of(cluster, "volumes", attempt).split() for attempt in (0, 1))
    assert first[:2] == ["0", "0"]
    assert second[:2] == ["0", "1"]
    assert sorted(p.name for p in (cluster.root / "volumes" / "team" / "set" / "run").iterdir()) == ["0", "1"]
    assert first[2] != second[2]
    assert eventually(lambda: not Path(first[2]).parent.exists() and not Path(second[2]).parent.exists())


@pytest.mark.parametrize(
    ("script", "policy", "message"),
    [
        ('printf \'{"loss": 1}\' > $JOBSET_STEPS_TERMINATION_LOG; exit 1', "File", '{"loss": 1}'),
        ("echo why > /dev/termination-log; echo noise; exit 1", "FallbackToLogsOnError", "why\n"),
        ("echo first; echo why; exit 1", "FallbackToLogsOnError", "first\nwhy"),
        ("echo first; echo why; exit 1", "File", ""),
        ("seq 1 5000; exit 1", "FallbackToLogsOnError", "\n".join(map(str, range(4921, 5001)))),
        ("head -c 9000 /dev/zero | tr '\\0' x > $JOBSET_STEPS_TERMINATION_LOG; exit 1", "File", "x" * 4096),
    ],
)  # fmt: skip
def test_the_termination_message_is_the_kubelets(
    cluster: LocalCluster, script: str, policy: str, message: str
) -> None:
    watched = Watched(cluster, "message")
    cluster.create(jobset("message", replicated("w", sh(script, terminationMessagePolicy=policy))))
    watched.ended()
    (pod,) = watched.pods.values()
    assert pod.containers[0].message == message
