"""`jobset-steps serve`: listens where Argo's agent calls, until it is told to end, and then settles what is under way."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from pathlib import Path

import uvicorn

from jobset_steps.clusters.kubernetes import KubernetesCluster
from jobset_steps.errors import BadInput
from jobset_steps.launch.lines import tell
from jobset_steps.serve.app import app_of
from jobset_steps.serve.steps import Namespace, Steps

__all__ = ["serve"]

# Of the thirty seconds that a pod has by default: the rest is for the answers on their way.
_GRACE = 27.0


def serve(*, port: int, token_file: Path, kubeconfig: str | None = None) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code. Raises BadInput where port or token cannot be had."""
    _token(token_file)
    sockets = _listening(port)
    steps = Steps(lambda namespace: _namespace(namespace, kubeconfig), say=_say)
    app = app_of(steps.answer, lambda: _token(token_file))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    # In a thread of its own: uvicorn would end on a signal at once, with steps still to settle.
    thread = threading.Thread(target=server.run, kwargs={"sockets": sockets}, name="jobset-steps-http")
    thread.start()
    _say(f"serving Argo's agent on port {port}")
    while not told.wait(1.0):
        if not thread.is_alive():
            raise BadInput(f"the server on port {port} ended: see above")
    settled = steps.stop(_GRACE)
    server.should_exit = True
    thread.join(2.0)
    return 0 if settled else 76


def _listening(port: int) -> list[socket.socket]:
    """Sockets on both loopback addresses: the agent calls "localhost", which is ::1 on some machines."""
    sockets = []
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            made = socket.create_server((address, port), family=family, backlog=128)
        except OSError as error:
            if family is socket.AF_INET6:
                continue
            raise BadInput(f"--port {port}: {error.strerror or error}") from error
        sockets.append(made)
    return sockets


def _namespace(name: str, kubeconfig: str | None) -> Namespace:
    cluster = KubernetesCluster(kubeconfig=kubeconfig, namespace=name)
    return Namespace(cluster, cluster)


def _token(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise BadInput(
            f"--token-file {path}: {error.strerror}: Argo mounts it for a plugin (components/argo/plugin.yaml)"
        ) from error


def _say(line: str) -> None:
    tell(line, sys.stdout)
