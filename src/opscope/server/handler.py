"""The answers of the server: a handful of addresses, and 403 for whoever may not ask."""

from __future__ import annotations

import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BufferedIOBase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs

from opscope.analysis.annotate import annotate
from opscope.analysis.diff.side_by_side import side_by_side
from opscope.errors import OpscopeError
from opscope.export import page

from .access import has_token, own_host, own_origin
from .strict import StrictLines, is_ambiguous

if TYPE_CHECKING:
    from .serving import HttpServer

LARGEST_FILE = 1 << 30
_LONGEST_NAME = 500

_HEADERS = {
    "Content-Security-Policy": page.SERVED_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


class Handler(BaseHTTPRequestHandler):
    """One request after the other on one connection."""

    protocol_version = "HTTP/1.1"
    server_version = "opscope"
    sys_version = ""
    timeout = 60  # seconds for a silent connection
    raw_requestline: bytes

    @property
    def _server(self) -> HttpServer:
        return cast("HttpServer", self.server)

    def setup(self) -> None:
        super().setup()
        self.rfile = cast("BufferedIOBase", StrictLines(self.rfile))

    def parse_request(self) -> bool:
        """What the standard library forgives and another program may read in another way is no request for us."""
        if not self.raw_requestline.endswith(b"\r\n"):
            self.requestline, self.request_version, self.command = "", "HTTP/1.1", ""
            self.send_error(HTTPStatus.BAD_REQUEST)
            return False
        lines = cast("StrictLines", self.rfile)
        lines.in_headers = True
        try:
            if not super().parse_request():
                return False
        finally:
            lines.in_headers = False
        if lines.is_bad or is_ambiguous(self.headers) or self._has_body() != (self.command == "POST"):
            self.send_error(HTTPStatus.BAD_REQUEST)
            return False
        return True

    def _has_body(self) -> bool:
        """A body that is not read would be taken for the next request. A POST may leave its length out: it is refused
        with a better word later."""
        if self.command == "POST":
            return True
        return "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0").strip() != "0"

    # -- ways in ----------------------------------------------------------------------------------

    def do_GET(self) -> None:
        query = self._entered(header_only=False)
        if query is None:
            return
        try:
            self._get(self.path.partition("?")[0], query)
        except OpscopeError as error:
            self._json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": str(error)})

    do_HEAD = do_GET

    def do_POST(self) -> None:
        query = self._entered(header_only=True)
        if query is None:
            return
        path = self.path.partition("?")[0]
        if path == "/api/open":
            self._open(query)
        elif path == "/api/table":
            self._table(query)
        elif path == "/api/compare":
            self._compare(query)
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def _no_such_method(self) -> None:
        if self._entered(header_only=False) is not None:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED)

    do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _no_such_method

    def _entered(self, *, header_only: bool) -> dict[str, list[str]] | None:
        """The query of the address, where the request may be answered; else it is refused."""
        address = self.path.partition("?")[2]
        query = parse_qs(address) if address.count("&") < 100 else {}
        headers = self.headers
        if (
            own_host(headers)
            and own_origin(headers)
            and has_token(self._server.token, headers, query, self._server.cookie, header_only=header_only)
        ):
            return query
        self._refuse(HTTPStatus.FORBIDDEN)
        return None

    # -- addresses --------------------------------------------------------------------------------

    def _get(self, path: str, query: dict[str, list[str]]) -> None:
        shelf = self._server.shelf
        if path == "/":
            self._page(query)
        elif path[1:] in page.ASSETS:
            self._send(HTTPStatus.OK, _KINDS[PurePosixPath(path).suffix], page.asset(path[1:]))
        elif path == "/api/captures":
            self._json(HTTPStatus.OK, [shown.summary(i) for i, shown in enumerate(shelf.all())])
        elif path.startswith("/api/capture/"):
            self._capture(path.removeprefix("/api/capture/"))
        elif path.startswith("/api/costs/"):
            self._costs(path.removeprefix("/api/costs/"))
        elif path == "/api/source":
            self._source(query)
        elif path == "/api/page":
            self._one_file()
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def _page(self, query: dict[str, list[str]]) -> None:
        """All captures, or with ?capture=N only these."""
        shown = list(enumerate(self._server.shelf.all()))
        chosen = set(query.get("capture", ()))
        if chosen:
            shown = [(i, one) for i, one in shown if str(i) in chosen]
        captures = [one.entry(i) for i, one in shown]
        title = f"{shown[0][1].name} – opscope" if shown else "opscope"
        text = page.served(captures, title, self._server.token)
        # So that the page can be loaded again after it has taken the token out of its address. The name has the
        # port in it: browsers do not separate the cookies of two ports.
        cookie = f"{self._server.cookie}={self._server.token}; Path=/; HttpOnly; SameSite=Strict"
        self._send(HTTPStatus.OK, "text/html; charset=utf-8", text.encode(), {"Set-Cookie": cookie})

    def _one_file(self) -> None:
        """The page with all captures in one file, for who wants to keep or send it."""
        shown = self._server.shelf.all()
        captures = [(one.name, page.capture_bytes(annotate(one.capture))) for one in shown]
        title = f"{shown[0].name} – opscope" if shown else "opscope"
        self._send(HTTPStatus.OK, "text/html; charset=utf-8", page.one_file(captures, title).encode())

    def _compare(self, query: dict[str, list[str]]) -> None:
        """Two graphs side by side, `?before=0:1&after=1:0` (capture and stage), as one more capture."""
        if self.headers.get("Content-Length", "") != "0":
            self.close_connection = True
            return self._refuse(HTTPStatus.BAD_REQUEST)
        places = [self._server.shelf.stage(query.get(side, [""])[0]) for side in ("before", "after")]
        before, after = places
        if before is None or after is None:
            return self._refuse(HTTPStatus.NOT_FOUND)
        shelf = self._server.shelf
        number = shelf.add(f"{before[2]} ↔ {after[2]}", side_by_side(before, after), local=False)
        self._json(HTTPStatus.OK, shelf.all()[number].summary(number))

    def _capture(self, number: str) -> None:
        shown = self._server.shelf.get(number)
        if shown is None:
            return self._refuse(HTTPStatus.NOT_FOUND)
        data, tag = shown.content()
        if tag in [part.strip() for part in self.headers.get("If-None-Match", "").split(",")]:
            return self._send(HTTPStatus.NOT_MODIFIED, None, b"", {"ETag": tag})
        self._send(HTTPStatus.OK, "application/octet-stream", data, {"ETag": tag, "Cache-Control": "no-cache"})

    def _costs(self, number: str) -> None:
        shown = self._server.shelf.get(number)
        if shown is None:
            return self._refuse(HTTPStatus.NOT_FOUND)
        self._send(HTTPStatus.OK, "application/octet-stream", shown.costs())

    def _source(self, query: dict[str, list[str]]) -> None:
        shown = self._server.shelf.get(query.get("capture", ["0"])[0])
        text = None if shown is None else shown.source(query.get("path", [""])[0])
        if not isinstance(text, str):
            why = "the text of this file is not known" if text is None else f"this file is not read: {text.why}"
            return self._json(HTTPStatus.NOT_FOUND, {"error": why})
        self._send(HTTPStatus.OK, "text/plain; charset=utf-8", text.encode("utf-8", "replace"))

    def _body(self, query: dict[str, list[str]]) -> tuple[str, bytes] | None:
        """A file that is sent, and its name; None: it was refused."""
        size = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (size.isascii() and size.isdigit()):
            self._refuse(HTTPStatus.LENGTH_REQUIRED)
            return None
        name = query.get("name", ["file"])[0][:_LONGEST_NAME]
        if len(size) > 15 or int(size) > LARGEST_FILE:
            self.close_connection = True  # what follows is the file, not a request
            error = f"{name}: {size[:20]} bytes; the page takes files of up to {LARGEST_FILE:,}: use `opscope view`"
            self._json(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": error})
            return None
        data = self.rfile.read(int(size))
        if len(data) < int(size):
            self.close_connection = True
            self._refuse(HTTPStatus.BAD_REQUEST)
            return None
        return name, data

    def _table(self, query: dict[str, list[str]]) -> None:
        """A table that was dropped on the page, as CSV."""
        sent = self._body(query)
        if sent is None:
            return
        read = self._server.read_table
        try:
            if read is None:
                raise OpscopeError(f"{sent[0]}: this server reads no tables: use `opscope view`")
            self._send(HTTPStatus.OK, "text/csv; charset=utf-8", read(*sent).encode())
        except OpscopeError as error:
            self._json(HTTPStatus.BAD_REQUEST, {"error": " ".join(str(error).split())})

    def _open(self, query: dict[str, list[str]]) -> None:
        sent = self._body(query)
        if sent is None:
            return
        name, data = sent
        try:
            capture = self._server.read_bytes(name, data)
        except OpscopeError as error:
            return self._json(HTTPStatus.BAD_REQUEST, {"error": " ".join(str(error).split())})
        number = self._server.shelf.add(name, capture, local=False)
        self._json(HTTPStatus.OK, self._server.shelf.all()[number].summary(number))

    # -- answers ----------------------------------------------------------------------------------

    def _json(self, status: HTTPStatus, data: Any) -> None:
        self._send(status, "application/json", json.dumps(data).encode())

    def _refuse(self, status: HTTPStatus) -> None:
        """A status and nothing else. The rest of the request is not read, so the connection ends."""
        self.close_connection = True
        self._send(status, None, b"")

    def _send(self, status: HTTPStatus, kind: str | None, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, **(headers or {})}.items():
            self.send_header(name, value)
        if kind is not None:
            self.send_header("Content-Type", kind)
        if status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """A request that is no HTTP: the standard library would answer with a page."""
        self.close_connection = True
        self.send_response_only(code)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the terminal belongs to the user, and addresses hold the token."""
