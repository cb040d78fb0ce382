"""Where the API server is and who we are: a pod's own service account, or a kubeconfig read by the `kubernetes` package.

In a pod four files and variables say all of it, so that package, which holds fifty megabytes and takes most of a second to
import, is left alone there. Nothing is sent from here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import urllib3

from jobset_steps.errors import BadInput

__all__ = ["Server", "default_namespace", "find"]

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# A rotated token is on disk long before the old one ends; the kubelet looks once a minute.
_TOKEN_SECONDS = 60.0
_POOL = 24


@dataclass(frozen=True)
class Server:
    """One API server: its address, connections to it, and the headers that say who asks (credentials may be renewed)."""

    host: str
    pool: urllib3.PoolManager
    credentials: Callable[[], Mapping[str, str]]


def find(kubeconfig: str | None, context: str | None) -> Server:
    """The server of a kubeconfig (a path; None: $KUBECONFIG, ~/.kube/config), or of the pod around us. Raises BadInput."""
    return _of_pod(_ACCOUNT, os.environ) if _in_cluster(kubeconfig) else _of_kubeconfig(kubeconfig, context)


def default_namespace(kubeconfig: str | None, context: str | None) -> str:
    """The namespace kubectl would use: the pod's own, or the context's."""
    if _in_cluster(kubeconfig):
        return (_ACCOUNT / "namespace").read_text().strip() or "default"
    from kubernetes import config

    try:
        contexts, active = config.list_kube_config_contexts(config_file=kubeconfig)
    except (config.ConfigException, OSError):
        return "default"
    chosen = next((c for c in contexts if c["name"] == context), active) if context else active
    return str((chosen or {}).get("context", {}).get("namespace") or "default")


def _in_cluster(kubeconfig: str | None) -> bool:
    if kubeconfig or os.environ.get("KUBECONFIG"):
        return False
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (_ACCOUNT / "namespace").exists()


def _of_pod(account: Path, environment: Mapping[str, str]) -> Server:
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT") or "443"
    authority = account / "ca.crt"
    token = _Token(account / "token")
    try:
        authority.read_bytes()
        token.headers()
    except OSError as error:
        raise BadInput(f"the pod's service account cannot be used: {error}") from error
    pool = urllib3.PoolManager(
        num_pools=4, maxsize=_POOL, retries=False, ca_certs=str(authority), cert_reqs="CERT_REQUIRED"
    )
    return Server(f"https://{f'[{host}]' if ':' in host else host}:{port}", pool, token.headers)


class _Token:
    """The account's token, read again once a minute: it is rotated on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[float, str] | None = None

    def headers(self) -> dict[str, str]:
        now = time.monotonic()
        if self._read is None or now - self._read[0] > _TOKEN_SECONDS:
            try:
                self._read = (now, self._path.read_text().strip())
            except OSError:
                # In the middle of a rotation: the one before is good for a while.
                if self._read is None:
                    raise
        return {"authorization": f"Bearer {self._read[1]}"}


def _of_kubeconfig(kubeconfig: str | None, context: str | None) -> Server:
    from kubernetes import config
    from kubernetes.client.api_client import ApiClient
    from kubernetes.client.configuration import Configuration

    configuration = Configuration()
    try:
        config.load_kube_config(
            config_file=kubeconfig,
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
    except (config.ConfigException, OSError, ValueError) as error:
        raise BadInput(
            f"no usable Kubernetes configuration: {error}; give --kubeconfig, set KUBECONFIG, or run in a pod"
        ) from error
    # A request whose fate is unknown is for the supervisor to judge, so nothing beneath may send it again.
    configuration.retries = False
    configuration.connection_pool_maxsize = _POOL
    api = ApiClient(configuration)

    def credentials() -> dict[str, str]:
        settings = api.configuration.auth_settings().values()
        return {each["key"]: each["value"] for each in settings if each["in"] == "header" and each["value"]}

    return Server(api.configuration.host, api.rest_client.pool_manager, credentials)
