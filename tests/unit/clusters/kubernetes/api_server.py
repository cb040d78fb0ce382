"""A small HTTP server that answers as a script says: for what a real API server does only on a bad day."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

__all__ = ["Answer", "Request", "Reset", "serving"]


class Request:
    """What a client sent."""

    def __init__(self, method: str, path: str, token: str, body: Any) -> None:
        self.method, self.path, self.token, self.body = method, path, token, body

    @property
    def is_watch(self) -> bool:
        return "watch=true" in self.path


class Answer:
    """A status with a JSON body, or lines of a stream. `hold` keeps a stream open until the test ends."""

    def __init__(
        self,
        status: int = 200,
        body: Any = None,
        *,
        lines: list[Any] | None = None,
        headers: dict[str, str] | None = None,
        hold: bool = False,
    ) -> None:
        self.status, self.body, self.lines, self.headers, self.hold = status, body, lines, headers or {}, hold


class Reset:
    """Close the connection without an answer."""


Script = Callable[[Request], Answer | Reset]


@contextmanager
def serving(script: Script, home: Path, *, token: str = "first") -> Iterator[tuple[str, list[Request], Path]]:
    """A server on a loopback port: (path of a kubeconfig for it, the requests so far, the token file)."""
    requests: list[Request] = []
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            request = Request(
                self.command, self.path, self.headers.get("Authorization", "").removeprefix("Bearer "), body
            )
            requests.append(request)
            answer = script(request)
            if isinstance(answer, Reset):
                self.close_connection = True
                return
            self.send_response(answer.status)
            for key, value in answer.headers.items():
                self.send_header(key, value)
            if answer.lines is None:
                data = json.dumps(answer.body or {}).encode()
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                return
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in answer.lines:
                data = json.dumps(line).encode() + b"\n"
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
            if answer.hold:
                ended.wait(30)
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PUT = do_DELETE = handle_any

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    token_file = home / "token"
    token_file.write_text(token)
    kubeconfig = home / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
                "users": [{"name": "u", "user": {"tokenFile": str(token_file)}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "c",
            }
        )
    )
    try:
        yield str(kubeconfig), requests, token_file
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
