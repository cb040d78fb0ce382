"""MPI over ssh between the pods of one attempt: workers serve ssh, the launcher runs mpirun once all of them are there.

Recipes put this very file into the pods (`python -c`), under the entry. Keys are made anew in every attempt and never leave
the pod that made them: public ones are exchanged over the rendezvous port, under a code that only pods of this JobSet can
make. It restarts nothing and never changes mpirun's exit code.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

TIMEOUT = 1800.0
"""Seconds until all workers must be there: as long as a step's start-up may last."""
LOST = 3.0
"""Seconds that the launcher holds its own failure back where a worker was lost, so that the worker's end is seen first."""
SESSION = """
import json, os, sys
with open(sys.argv[1]) as saved:
    pod = json.load(saved)
os.chdir(pod["cwd"])
command = os.environ.get("SSH_ORIGINAL_COMMAND", "true")
os.execve("/bin/sh", ["sh", "-c", command], pod["env"])
"""
"""What an ssh session runs: the command with the environment and directory of the worker's container, byte for byte."""


class Peers:
    """Who speaks in this attempt: lines of JSON with a code over them, made with the JobSet's uid."""

    def __init__(self, environ: dict[str, str]) -> None:
        self._key = environ["JOBSET_STEPS_JOBSET_UID"].encode()
        self._attempt = environ["JOBSET_NAME"] + " attempt " + environ["JOBSET_RESTART_ATTEMPT"]
        self.address = environ["JOBSET_STEPS_POD_IP"]
        self.port = int(environ["JOBSET_STEPS_PORT"])
        self.launcher = environ["JOBSET_STEPS_COORDINATOR"]

    def say(self, line: socket.socket, **what: Any) -> None:
        """Send one message."""
        text = json.dumps(dict(what, of=self._attempt))
        line.sendall(json.dumps([text, self._code(text)]).encode() + b"\n")

    def hear(self, lines: Any) -> dict[str, Any]:
        """The next message. Raises ConnectionError where the line was closed, ValueError for one that is not of us."""
        raw = lines.readline()
        if not raw:
            raise ConnectionError("the other side has closed the connection")
        text, code = json.loads(raw)
        if not hmac.compare_digest(code, self._code(text)):
            raise ValueError("a message that no pod of this JobSet has sent")
        what = json.loads(text)
        if what["of"] != self._attempt:
            raise ValueError("a message of " + what["of"])
        return dict(what)

    def _code(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


def make_key(path: str) -> str:
    """Make a key pair at `path` and return its public half."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    with open(path + ".pub") as public:
        return public.read().strip()


def write(path: str, text: str, mode: int = 0o600) -> str:
    """Write a file that is this user's alone; returns its path."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
        file.write(text)
    return path


def config(settings: dict[str, Any]) -> str:
    """A configuration file of ssh or sshd."""
    return "".join(f"{name} {value}\n" for name, value in settings.items())


# The launcher ---------------------------------------------------------------------------------------------------------


def launch(home: str, workers: int, slots: int, words: list[str]) -> int:
    """Wait for `workers` workers, then run `words` as workers x slots ranks under mpirun; returns its exit code."""
    peers = Peers(dict(os.environ))
    key = make_key(os.path.join(home, "key"))
    there: dict[int, dict[str, Any]] = {}
    lines: dict[int, socket.socket] = {}
    lost: set[int] = set()
    changed = threading.Condition()

    def welcome(line: socket.socket) -> None:
        index = None
        try:
            # Only what is ready counts; a worker that is slow to say so holds nobody else up.
            line.settimeout(60)
            lines_of = line.makefile("rb")
            worker = peers.hear(lines_of)
            peers.say(line, client_key=key)
            peers.hear(lines_of)
            line.settimeout(None)
            index = int(worker["index"])
            with changed:
                there[index], lines[index] = worker, line
                changed.notify_all()
            peers.hear(lines_of)
        except (OSError, ValueError, KeyError, TypeError) as error:
            if index is None:
                say("turned away: " + str(error))
            else:
                lost.add(index)

    family = socket.AF_INET6 if ":" in peers.address else socket.AF_INET
    server = socket.create_server((peers.address, peers.port), family=family, backlog=1024)

    def listen() -> None:
        while True:
            line, _ = server.accept()
            threading.Thread(target=welcome, args=(line,), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()
    with changed:
        if not changed.wait_for(lambda: len(there) >= workers, TIMEOUT):
            missing = sorted(set(range(workers)) - set(there))
            say(
                "workers " + ", ".join(map(str, missing)) + " did not come within " + str(int(TIMEOUT)) + " s"
            )
            return 75
    say("all " + str(workers) + " workers are there")
    environ, hosts = prepare(home, peers, [there[index] for index in range(workers)], slots)
    code = run(["mpirun", "--hostfile", hosts, "-np", str(workers * slots), *words], environ)
    for line in lines.values():
        with suppress(OSError):
            peers.say(line, ended=code)
    if code and lost:
        say("lost worker " + ", ".join(map(str, sorted(lost))))
        time.sleep(LOST)
    return code


def prepare(home: str, peers: Peers, workers: list[dict[str, Any]], slots: int) -> tuple[dict[str, str], str]:
    """(environment of mpirun, its host file): an `ssh` before all others that knows the workers and their keys."""

    def at(name: str) -> str:
        return os.path.join(home, name)

    known = "".join(f"[{one['address']}]:{peers.port} {one['host_key']}\n" for one in workers)
    settings = {
        "Port": peers.port,
        "IdentityFile": at("key"),
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": write(at("known_hosts"), known),
        "GlobalKnownHostsFile": "none",
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
        "LogLevel": "ERROR",
        "ConnectionAttempts": 10,
        "ServerAliveInterval": 15,
    }
    write(at("config"), config(settings))
    os.mkdir(at("bin"))
    real = shlex.quote(shutil.which("ssh") or "ssh")
    write(at("bin/ssh"), f'#!/bin/sh\nexec {real} -F {shlex.quote(at("config"))} "$@"\n', 0o700)
    hosts = "".join(f"{one['address']} slots={slots}\n" for one in workers)
    own = {
        "PATH": at("bin") + os.pathsep + os.environ.get("PATH", os.defpath),
        # Containers run as root, and as one user only.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        # The launcher opens every connection itself: workers then need no key of their own.
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
    }
    return {**own, **os.environ, "PATH": own["PATH"]}, write(at("hosts"), hosts)


def run(command: list[str], environ: dict[str, str]) -> int:
    """Run mpirun and hand signals on to it; returns its exit code, 128 + signal where one ended it."""
    heard: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def forward(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        if child is not None:
            child.send_signal(number)

    for wanted in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(wanted, forward)
    try:
        child = subprocess.Popen(command, env=environ)
    except OSError as error:
        say("cannot run mpirun: " + str(error.strerror))
        return 127
    for number in list(heard):
        child.send_signal(number)
    code = child.wait()
    return code if code >= 0 else 128 - code


# A worker -------------------------------------------------------------------------------------------------------------


def serve(home: str) -> int:
    """Serve ssh to the launcher until it says that mpirun has ended; 0 then, 1 where the launcher is lost."""
    peers = Peers(dict(os.environ))
    host_key = make_key(os.path.join(home, "host_key"))
    server: subprocess.Popen[bytes] | None = None

    def end(number: int, frame: FrameType | None) -> None:
        # The ranks here hear of it as they would without ssh, and have the pod's grace to finish.
        tell(server, number)
        while server is not None and below(server.pid):
            time.sleep(0.1)
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        line = connect(peers)
        lines = line.makefile("rb")
        peers.say(
            line, index=int(os.environ["JOB_COMPLETION_INDEX"]), address=peers.address, host_key=host_key
        )
        write(os.path.join(home, "authorized_keys"), "restrict " + peers.hear(lines)["client_key"] + "\n")
        server = start_sshd(home, peers)
        until_it_listens(peers, server)
        peers.say(line, ready=True)
        peers.hear(lines)
    except (OSError, ValueError) as error:
        say("the launcher is lost: " + str(error))
        return 1
    finally:
        tell(server, signal.SIGKILL)
        if server is not None:
            server.kill()
    return 0


def tell(server: subprocess.Popen[bytes] | None, number: int) -> None:
    """Send a signal to everything that sshd's sessions have started."""
    for pid in below(server.pid) if server is not None else ():
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def connect(peers: Peers) -> socket.socket:
    """A connection to the launcher, which may not listen yet."""
    end = time.monotonic() + TIMEOUT
    while True:
        try:
            line = socket.create_connection((peers.launcher, peers.port), timeout=60)
        except OSError as error:
            if time.monotonic() > end:
                raise TimeoutError("the launcher does not listen: " + str(error)) from error
            time.sleep(0.2)
            continue
        line.settimeout(None)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return line


def start_sshd(home: str, peers: Peers) -> subprocess.Popen[bytes]:
    """An ssh server on this pod's address for the launcher's key alone, whose sessions are as in this container."""

    def at(name: str) -> str:
        return os.path.join(home, name)

    pod = json.dumps({"cwd": os.getcwd(), "env": dict(os.environ)})
    session = [sys.executable, write(at("session.py"), SESSION), write(at("pod.json"), pod)]
    settings = {
        "Port": peers.port,
        "ListenAddress": peers.address,
        "HostKey": at("host_key"),
        "AuthorizedKeysFile": at("authorized_keys"),
        "ForceCommand": " ".join(map(shlex.quote, session)),
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "MaxStartups": 1000,
        # An error to it is also that somebody only looked whether it listens.
        "LogLevel": "FATAL",
    }
    path = write(at("sshd_config"), config(settings))
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    # It starts itself anew for every connection, for which it must know where it is.
    sshd = (
        shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
        or "/usr/sbin/sshd"
    )
    return subprocess.Popen([sshd, "-D", "-e", "-f", path])


def until_it_listens(peers: Peers, server: subprocess.Popen[bytes]) -> None:
    """Wait for the ssh server; OSError where it ends instead."""
    while True:
        if server.poll() is not None:
            raise OSError("sshd ended with " + str(server.returncode))
        with suppress(OSError), socket.create_connection((peers.address, peers.port), timeout=5):
            return
        time.sleep(0.05)


def below(top: int) -> list[int]:
    """Every process that sshd's sessions have started, but for sshd's own."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for pid, parent, name in processes():
        parents[pid], names[pid] = parent, name

    def is_below(pid: int) -> bool:
        while pid in parents and pid != top:
            pid = parents[pid]
        return pid == top

    return [pid for pid in parents if pid != top and names[pid] != "sshd" and is_below(pid)]


def processes() -> Iterator[tuple[int, int, str]]:
    """(pid, parent, name) of every process of the container that has not ended."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError), open("/proc/" + entry + "/stat") as stat:
                before, rest = stat.read().rsplit(")", 1)
                state, parent = rest.split()[:2]
                if state not in "ZX":
                    yield int(entry), int(parent), before.split("(", 1)[1]


def say(text: str) -> None:
    """One line on standard error, with who says it."""
    print("jobset-steps: " + text, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """`launch WORKERS SLOTS words...` or `serve`; returns the exit code."""
    # Keys, which are gone with it.
    with tempfile.TemporaryDirectory(prefix="mpi-") as home:
        if arguments[:1] == ["serve"]:
            return serve(home)
        return launch(home, int(arguments[1]), int(arguments[2]), arguments[3:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
