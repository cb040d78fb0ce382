"""One HTTP client for a Kubernetes API server: who we are, one call, one stream, and what went wrong as ApiError.

Requests are made here, as plain JSON, because a token that has rotated, a lost answer and a dropped watch must each be told
apart, whatever the version of a client library. It never retries, except once with credentials read anew after a 401.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import urllib3

from jobset_steps.clusters.kubernetes.server import Server, default_namespace, find
from jobset_steps.errors import ApiError

__all__ = ["QUOTA", "Client", "Response"]

Response = urllib3.BaseHTTPResponse

# Seconds to connect, and to wait for the answer of a request that is not a stream.
_CONNECT, _ANSWER = 10.0, 60.0
QUOTA = "exceeded quota"
"""What the server says of an object for which there is no room now."""
# Phrases of 5xx or 403 answers that say "not now", whatever the status code suggests.
_PASSING = ("failed calling webhook", "etcdserver:", "leader changed", "the object has been modified")


class Client:
    """Talks to one API server as one user, from any number of threads.

    `kubeconfig` is a path, None for the usual places: $KUBECONFIG or ~/.kube/config, else the pod's service account.
    Raises BadInput where none of them is usable.
    """

    def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
        self._source = (kubeconfig, context)
        self._lock = threading.Lock()
        self.requests = 0
        """Requests sent so far, streams included."""
        self.namespace = default_namespace(kubeconfig, context)
        self._server = find(kubeconfig, context)

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> dict[str, Any]:
        """Send one request and return the JSON answer. Raises ApiError."""
        response = self._send(method, path, query, body, urllib3.Timeout(connect=_CONNECT, read=_ANSWER))
        try:
            answer = json.loads(response.data or b"{}")
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise ApiError("unavailable", f"{method} {path}: the answer broke off: {error}") from error
        finally:
            response.release_conn()
        return answer if isinstance(answer, dict) else {"items": answer}

    def text(self, path: str, query: Mapping[str, Any]) -> str:
        """GET a text resource (logs). Raises ApiError."""
        response = self._send("GET", path, query, None, urllib3.Timeout(connect=_CONNECT, read=_ANSWER))
        try:
            return bytes(response.data).decode("utf-8", "replace")
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ApiError("unavailable", f"GET {path}: the answer broke off: {error}") from error
        finally:
            response.release_conn()

    def open(self, path: str, query: Mapping[str, Any], *, silence: float) -> Response:
        """Open a stream. It breaks (ApiError from `lines`) when nothing is heard for `silence` seconds."""
        return self._send("GET", path, query, None, urllib3.Timeout(connect=_CONNECT, read=silence))

    def close(self) -> None:
        """Close idle connections."""
        self._server.pool.clear()

    def _send(
        self, method: str, path: str, query: Mapping[str, Any] | None, body: Any, timeout: urllib3.Timeout
    ) -> Response:
        server = self._server
        response = self._once(server, method, path, query, body, timeout)
        if response.status == 401:
            response.drain_conn()
            response.release_conn()
            with self._lock:
                if self._server is server:
                    self._server = find(*self._source)
            response = self._once(self._server, method, path, query, body, timeout)
        if response.status >= 300:
            raise _fault(method, path, response)
        return response

    def _once(
        self,
        server: Server,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: Any,
        timeout: urllib3.Timeout,
    ) -> Response:
        identity = {"Accept": "application/json, */*", "User-Agent": "jobset-steps"}
        headers = {**identity, **server.credentials()}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        url = server.host + path + ("?" + urlencode(query) if query else "")
        self.requests += 1
        try:
            return server.pool.request(
                method,
                url,
                headers=headers,
                body=data,
                timeout=timeout,
                preload_content=False,
                redirect=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ApiError("unavailable", f"{method} {path}: no answer: {error}") from error


def wake(response: Response) -> None:
    """Let whoever reads a stream find that it is over. One that has just ended by itself is left as it is."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        response.shutdown()


def lines(response: Response) -> Iterator[bytes]:
    """Lines of a stream as they come, without the line end. Raises ApiError (unavailable) when it breaks."""
    rest = b""
    try:
        for chunk in response.stream(65536, decode_content=True):
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole
    except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError) as error:
        # ValueError, AttributeError: what urllib3 raises where another thread closed the connection beneath it.
        raise ApiError("unavailable", f"the stream broke off: {error}") from error
    if rest:
        yield rest


def _fault(method: str, path: str, response: Response) -> ApiError:
    """What an answer that is not 2xx means for the caller."""
    try:
        raw = bytes(response.data)
    except (urllib3.exceptions.HTTPError, OSError):
        raw = b""
    finally:
        response.release_conn()
    try:
        status = json.loads(raw)
        message, reason = str(status.get("message", "")), str(status.get("reason", ""))
    except (ValueError, AttributeError):
        message, reason = raw.decode("utf-8", "replace")[:500], ""
    message = message or f"{method} {path}: HTTP {response.status}"
    return ApiError(
        _kind(response.status, reason, message),
        message,
        retry_after=_seconds(response.headers.get("Retry-After")),
    )


def _kind(status: int, reason: str, message: str) -> str:
    """ApiError kind of an HTTP status. JobSet's webhook refuses with 403 up to 0.11 and with 422 from 0.12 on."""
    if any(phrase in message for phrase in _PASSING) and status >= 500:
        return "unavailable"
    if status == 409:
        return "exists" if reason == "AlreadyExists" else "conflict"
    if status == 403:
        # Only RBAC speaks of what a user cannot do. Quota passes; all else is admission's word on the object.
        if QUOTA in message:
            return "unavailable"
        return "forbidden" if " cannot " in message and " resource " in message else "invalid"
    known = {
        400: "invalid",
        401: "unauthorized",
        404: "not_found",
        410: "conflict",
        413: "invalid",
        422: "invalid",
    }
    return known.get(status, "unavailable")


def _seconds(value: str | None) -> float | None:
    try:
        return float(value) if value else None
    except ValueError:
        return None
