"""The server: it listens on this machine only, and reads only what it was given."""

from __future__ import annotations

import os
import socketserver
import sys
import threading
from collections.abc import Callable, Sequence
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import urlencode

from opscope.errors import OpscopeError
from opscope.export import page
from opscope.ir import Capture

from .access import new_token
from .handler import Handler
from .shelf import Shelf

LOOPBACK = "127.0.0.1"

ReadBytes = Callable[[str, bytes], Capture]
ReadTable = Callable[[str, bytes], str]


class HttpServer(ThreadingHTTPServer):
    """What the handlers share."""

    daemon_threads = True
    # On Windows "reuse" would let another program take the port while we listen.
    allow_reuse_address = os.name != "nt"

    def __init__(self, port: int, read_bytes: ReadBytes, read_table: ReadTable | None) -> None:
        self.shelf = Shelf()
        self.token = new_token()
        self.read_bytes = read_bytes
        self.read_table = read_table
        try:
            super().__init__((LOOPBACK, port), Handler)
        except (OSError, OverflowError) as error:
            raise OpscopeError(
                f"port {port} of {LOOPBACK} cannot be used ({error}): name another with --port, or none"
            ) from None
        self.port: int = self.server_address[1]
        self.cookie = f"opscope-{self.port}"

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # without asking the network for this machine's name
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is no error."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class Server:
    """Serves captures until it is closed.

    `read_bytes(name, data)` opens a file that is dropped on the page; `read_table(name, data)` gives a table as CSV.
    """

    def __init__(self, read_bytes: ReadBytes, port: int = 0, read_table: ReadTable | None = None) -> None:
        for name in page.ASSETS:
            page.asset(name)  # missing: say so now and not in the browser
        self._http = HttpServer(port, read_bytes, read_table)
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        return self._http.port

    @property
    def token(self) -> str:
        return self._http.token

    def add(self, name: str, capture: Capture, *, local: bool) -> int:
        """Show one more capture; gives its number. `local`: the files that it names are of this machine."""
        return self._http.shelf.add(name, capture, local=local)

    def url(self, captures: Sequence[int] = ()) -> str:
        """The address of the page with all captures, or only with these."""
        query = [("token", self.token), *(("capture", str(number)) for number in captures)]
        return f"http://{LOOPBACK}:{self.port}/?{urlencode(query)}"

    def start(self) -> None:
        """Serve from a thread."""
        self._thread = threading.Thread(target=self._http.serve_forever, name="opscope-server", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when the server is closed; Ctrl-C comes through."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        if self._thread is not None:
            self._http.shutdown()
            self._thread.join()
            self._thread = None
        self._http.server_close()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_shared: list[Server] = []
_making = threading.Lock()


def background(read_bytes: ReadBytes, read_table: ReadTable | None = None) -> Server:
    """The one server of this process that `cap.show()` uses, started when first asked for."""
    with _making:
        if not _shared:
            server = Server(read_bytes, 0, read_table)
            server.start()
            _shared.append(server)
        return _shared[0]
