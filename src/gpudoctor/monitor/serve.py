"""Answers /metrics, /healthz and /report over HTTP, from what the last cycle left; a slow reader delays nobody."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MAX_READERS = 8
_PATIENCE = 5.0

# path -> (status, content type, body)
Answers = Callable[[str], tuple[int, str, str]]


class Server:
    """Listens in threads of its own until `stop`."""

    def __init__(self, address: str, port: int, answers: Answers) -> None:
        handler = type("Handler", (_Handler,), {"answers": staticmethod(answers)})
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        kind = type("Listener", (_Listener,), {"address_family": family})
        self._server: ThreadingHTTPServer = kind((address, port), handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.5}, daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 16

    def __init__(self, *arguments: Any) -> None:
        self._free = threading.BoundedSemaphore(MAX_READERS)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE
    server_version = "gpudoctor"
    sys_version = ""
    answers: Answers

    def do_GET(self) -> None:
        """Answer."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Answer without the body."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        status, kind, text = self.answers(self.path.partition("?")[0])
        content = text.encode("utf-8", "replace")
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            if body:
                self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        """Keep no log of readers."""
