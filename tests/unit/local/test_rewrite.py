"""Names of the cluster are replaced by what they are on this machine, and nothing else is touched."""

from __future__ import annotations

import pytest

from jobset_steps.clusters.local.rewrite import Hosts, Rewrite, hosts_of, rendezvous_ports

HOSTS = Hosts("train", "team", "train", {"w": (2, 12), "w-1": (1, 1), "leader": (1, 1)})
ADDRESSES = {
    "train-leader-0-0": "127.70.0.1",
    "train-w-0-1": "127.70.0.2",
    "train-w-0-10": "127.70.0.3",
    "train-w-1-0-0": "127.70.0.4",
    "train-w-1-0": "127.70.0.5",
}
rewrite = Rewrite(
    HOSTS,
    ADDRESSES.__getitem__,
    {29500: 12345},
    {"/mnt/ckpt": "/here/ckpt", "/mnt/ckpt/deep": "/here/deep", "/dev/termination-log": "/here/log"},
)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("train-leader-0-0", "127.70.0.1"),
        ("train-leader-0-0.train", "127.70.0.1"),
        ("train-leader-0-0.train.team", "127.70.0.1"),
        ("train-leader-0-0.train.team.svc", "127.70.0.1"),
        ("train-leader-0-0.train.team.svc.cluster.local", "127.70.0.1"),
        ("tcp://train-leader-0-0.train:29500/x", "tcp://127.70.0.1:12345/x"),
        ("train-w-0-1,train-w-0-10", "127.70.0.2,127.70.0.3"),
        # Of two replicated jobs one name begins the other: job 1 of "w" and job 0 of "w-1".
        ("train-w-1-0", "127.70.0.5"),
        ("train-w-1-0-0", "127.70.0.4"),
        ('{"host": "train-leader-0-0.train"}', '{"host": "127.70.0.1"}'),
    ],
)
def test_host_names_become_addresses(given: str, made: str) -> None:
    assert rewrite(given) == made


@pytest.mark.parametrize(
    "text",
    [
        "train-w-0-12",  # no such index
        "train-w-0-01",
        "train-w-0-1-abcde",  # a pod's own name
        "train-w-0",  # a child Job's name
        "mytrain-leader-0-0",
        "x.train-leader-0-0",
        "train-leader-0-0.other",
        "train-leader-0-0.train.otherns.example.org",
        "/data/train-leader-0-0x",
    ],
)
def test_other_names_stay(text: str) -> None:
    assert rewrite(text) == text


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("29500", "12345"),
        ("localhost:29500", "localhost:12345"),
        ("[::1]:29500", "[::1]:12345"),
        ("--master-port=29500", "--master-port=12345"),
        ("--rdzv_endpoint=h:29500 --x", "--rdzv_endpoint=h:12345 --x"),
    ],
)
def test_the_rendezvous_port_becomes_the_drawn_one(given: str, made: str) -> None:
    assert rewrite(given) == made


@pytest.mark.parametrize("text", ["129500", "295001", "--steps=29500", "h:29500.5", "at 29500 steps"])
def test_other_numbers_stay(text: str) -> None:
    assert rewrite(text) == text


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("/mnt/ckpt", "/here/ckpt"),
        ("/mnt/ckpt/step-1", "/here/ckpt/step-1"),
        ("/mnt/ckpt/deep/x", "/here/deep/x"),
        ("--dir=/mnt/ckpt/", "--dir=/here/ckpt/"),
        ("file:///mnt/ckpt/x", "file:///here/ckpt/x"),
        ("/usr/bin:/mnt/ckpt", "/usr/bin:/here/ckpt"),
        ("cat /mnt/ckpt/a > /dev/termination-log", "cat /here/ckpt/a > /here/log"),
    ],
)
def test_paths_of_volumes_become_directories(given: str, made: str) -> None:
    assert rewrite(given) == made


@pytest.mark.parametrize(
    "text",
    ["/mnt/ckpt2", "/mnt/ckpt.old", "/data/mnt/ckpt", "s3://bucket/mnt/ckpt", "~/mnt/ckpt", "mnt/ckpt"],
)
def test_other_paths_stay(text: str) -> None:
    assert rewrite(text) == text


def test_hosts_and_ports_are_read_from_the_manifest() -> None:
    # Given a JobSet with its own subdomain, one replicated job of 3 Jobs and one without a count
    def job(name: str, port: dict[str, object], **spec: object) -> dict[str, object]:
        pod = {"spec": {"containers": [{"name": "c", "ports": [port]}]}}
        return {"name": name, "template": {"spec": {**spec, "template": pod}}}

    manifest = {
        "metadata": {"name": "js", "namespace": "ns"},
        "spec": {
            "network": {"subdomain": "sub"},
            "replicatedJobs": [
                {"replicas": 3, **job("a", {"name": "rendezvous", "containerPort": 29500}, completions=4, parallelism=2)},
                job("b", {"name": "http", "containerPort": 8080}),
            ],
        },
    }  # fmt: skip
    # Then its hosts and its rendezvous ports are these
    assert hosts_of(manifest) == Hosts("js", "ns", "sub", {"a": (3, 4), "b": (1, 1)})
    assert rendezvous_ports(manifest) == (29500,)
