"""The server as a browser or an attacker meets it: real HTTP to a real one."""

from __future__ import annotations

import http.client
import io
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

import bundle
import opscope
from commands import run
from conftest import DATA
from opscope.export import page
from opscope.ir import Capture, Frame, GraphBuilder, Pools, Stage, Table, column, frozen
from opscope.opening import from_bytes
from opscope.server import Server, access, forward_line, handler, serving
from opscope.tables import as_csv

JITTOR = DATA / "jittor"
SIMPLE = JITTOR / "simple_model_train.pkl"
PATIENCE = 120  # seconds until a process or a socket that does not answer is given up, on a machine that is busy


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Sends exactly the headers that it is given."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        host: str | None = None,
        token: bool | str = True,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        sent = {"Host": f"127.0.0.1:{self.server.port}" if host is None else host}
        if token:
            sent["Authorization"] = f"Bearer {self.server.token if token is True else token}"
        if body is not None:
            sent["Content-Length"] = str(len(body))
        for name, value in {**sent, **(headers or {})}.items():
            if value:
                connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        answer = Answer(response.status, response.headers, response.read())
        connection.close()
        return answer


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    bundle.stand_in(monkeypatch)
    with Server(from_bytes, read_table=as_csv) as server:
        server.add("simple_model_train.pkl", opscope.open(SIMPLE, sources=[JITTOR]), local=True)
        yield Client(server)


# -- who may ask ------------------------------------------------------------------------------------

ADDRESSES = [
    "/",
    "/viewer.js",
    "/viewer.css",
    "/engine.js",
    "/api/captures",
    "/api/capture/0",
    "/api/source?path=x",
    "/nothing",
]


@pytest.mark.parametrize("path", ADDRESSES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_without_the_token(client: Client, path: str, method: str) -> None:
    for token in ("", "wrong", client.server.token[:-1], client.server.token + "x"):
        answer = client.ask(path, method=method, token=token, body=b"" if method == "POST" else None)
        assert (answer.status, answer.body) == (403, b"")
        assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil", "127.0.0.2", "0.0.0.0", "[::2]",
        "127.0.0.1:80:80", "localhost:", "localhost:x", "user@localhost", " ", "127.0.0.1, evil",
        "١27.0.0.1".encode().decode("latin-1"),
    ],
)  # fmt: skip
def test_nothing_under_a_foreign_name(client: Client, host: str) -> None:
    for path in ADDRESSES:
        answer = client.ask(path, host=host)
        assert (answer.status, answer.body) == (403, b"")
    assert client.ask("/api/open?name=x", method="POST", host=host, body=SIMPLE.read_bytes()).status == 403
    assert len(client.ask("/api/captures").json()) == 1


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1234", "127.0.0.1", "127.0.0.1:9", "[::1]", "[::1]:80", "LOCALHOST:1"]
)
def test_names_of_this_machine(client: Client, host: str) -> None:
    assert client.ask("/api/captures", host=host).status == 200


def test_no_host_and_two_hosts(client: Client) -> None:
    port, token = client.server.port, client.server.token
    for lines in (
        f"GET /?token={token} HTTP/1.1\r\n",
        f"GET /?token={token} HTTP/1.0\r\n",
        f"GET /?token={token} HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n",
        f"GET http://evil.example/?token={token} HTTP/1.1\r\nHost: evil.example\r\n",
        "GARBAGE\r\n",
        "\x00\x01\x02\r\n",
        f"GET /{'a' * 70_000} HTTP/1.1\r\n",
        f"GET / HTTP/9.9\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as raw:
            raw.sendall(f"{lines}\r\n".encode())
            answer = b""
            try:
                while piece := raw.recv(65536):
                    answer += piece
            except ConnectionResetError:
                pass
        assert b"200" not in answer.split(b"\r\n")[0]
        assert token.encode() not in answer
        assert b"Python" not in answer
        assert answer.partition(b"\r\n\r\n")[2] == b""


def test_ways_to_give_the_token(client: Client) -> None:
    token = client.server.token
    assert client.ask(f"/?token={token}", token=False).status == 200
    assert client.ask("/?token=x", token=False).status == 403
    cookie = client.ask("/").headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    given = {"Cookie": cookie.partition(";")[0]}
    assert client.ask("/api/captures", token=False, headers=given).status == 200
    assert client.ask("/api/captures", token=False, headers={"Cookie": "opscope=x; ;;=;"}).status == 403
    # To change something takes the header: a form of another site would carry the cookie.
    for path, headers in ((f"/api/open?name=x&token={token}", {}), ("/api/open?name=x", given)):
        answer = client.ask(path, method="POST", token=False, body=SIMPLE.read_bytes(), headers=headers)
        assert answer.status == 403
    assert len(client.ask("/api/captures").json()) == 1


def test_other_origins_are_refused(client: Client) -> None:
    own = f"http://127.0.0.1:{client.server.port}"
    assert client.ask("/api/captures", headers={"Origin": own}).status == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"https://127.0.0.1:{client.server.port}"):
        assert client.ask("/api/captures", headers={"Origin": origin}).status == 403


def test_security_headers_stand_on_every_answer(client: Client) -> None:
    for path in (*ADDRESSES, "/../../etc/passwd"):
        for token in (True, False):
            headers = client.ask(path, token=token).headers
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert "unsafe-eval" not in headers["Content-Security-Policy"]
            assert not any(name.lower().startswith("access-control-") for name in headers)
            assert "Python" not in headers.get("Server", "")


def test_it_listens_on_loopback_only(client: Client) -> None:
    assert client.server._http.server_address[0] == "127.0.0.1"  # pyright: ignore[reportPrivateUsage]
    for address in {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}:
        if not str(address).startswith("127."):
            with pytest.raises(OSError):
                socket.create_connection((str(address), client.server.port), timeout=2)


def test_tokens_are_long_and_differ() -> None:
    tokens = {access.new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 32


# -- what it answers --------------------------------------------------------------------------------


def test_the_page(client: Client) -> None:
    answer = client.ask("/")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    text = answer.body.decode()
    assert text.startswith("<!doctype html>")
    assert '<div id="opscope"></div>' in text
    config = json.loads(re.search(r'<script id="opscope-config" type="application/json">(.*?)</script>', text)[1])  # type: ignore[index]
    assert config.pop("devices")
    assert config == {
        "mode": "server",
        "engine": f"engine.js?token={client.server.token}",
        "token": client.server.token,
        "captures": [{"name": "simple_model_train.pkl", "url": "api/capture/0"}],
        "title": "simple_model_train.pkl – opscope",
    }
    assets = re.findall(r'(?:src|href)="(viewer[^"]+)"', text)
    for asset in (*assets, config["engine"]):
        assert client.ask(f"/{asset}", token=False).status == 200
    assert client.ask("/viewer.js").headers["Content-Type"].startswith("text/javascript")
    assert client.ask("/viewer.css").headers["Content-Type"].startswith("text/css")


def test_a_capture_is_an_opscope_file(client: Client) -> None:
    answer = client.ask("/api/capture/0")
    assert answer.status == 200
    assert answer.headers["Content-Length"] == str(len(answer.body))
    sent = from_bytes("x", answer.body)
    own = opscope.open(SIMPLE, sources=[JITTOR]).tables
    costs = {name for name, table in sent.tables.items() if table.fact and name not in own}
    assert {sent.tables[name].fact for name in costs} == {"costs", "lifetimes", "parameters", "kinds"}
    for name in costs:
        del sent.tables[name]
    assert sent.text() == opscope.open(SIMPLE, sources=[JITTOR]).text()
    tag = answer.headers["ETag"]
    again = client.ask("/api/capture/0", headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status, again.body) == (304, b"")
    head = client.ask("/api/capture/0", method="HEAD")
    assert (head.status, head.body, head.headers["Content-Length"]) == (200, b"", answer.headers["Content-Length"])
    assert client.ask("/api/captures").json() == [
        {"name": "simple_model_train.pkl", "url": "api/capture/0", "stages": [{"name": "trace", "nodes": 123}]}
    ]


def test_a_large_graph_is_counted_when_it_has_been_sent(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    monkeypatch.setattr("opscope.server.shelf._MANY_NODES", 100)
    assert client.ask("/api/captures").json()[0]["costs"] == "api/costs/0"
    whole = from_bytes("x", client.ask("/api/capture/0").body)
    unread = {table.fact for table in opscope.open(SIMPLE, sources=[JITTOR]).tables.values()}
    assert {table.fact for table in whole.tables.values()} == unread | {"kinds"}  # which the picture needs
    with zipfile.ZipFile(io.BytesIO(client.ask("/api/costs/0").body)) as archive:  # tables of stages that it has not
        manifest = json.loads(archive.read("manifest.json"))
        assert (manifest["stages"], manifest["graphs"]) == ([], [])
        computed = {table["fact"] for table in manifest["tables"]}
        assert computed == {"kinds", "costs", "lifetimes", "parameters"}
        assert "tables/3.arrow" in archive.namelist()
    assert client.ask("/api/costs/7").status == 404
    assert client.ask("/api/costs/0", token=False).status == 403


@pytest.mark.parametrize(
    "path",
    [
        "/api/capture/1", "/api/capture/-1", "/api/capture/", "/api/capture/0/x", "/api/capture/99999999999",
        "/api/capture/%30", "/api/capture/..%2f..%2fetc%2fpasswd", "/../../../etc/passwd", "/etc/passwd",
        "//etc/passwd", "/_viewer/viewer.js", "/viewer.js/", "/%2e%2e/x", "/api", "/favicon.ico", "http://127.0.0.1/",
    ],
)  # fmt: skip
def test_other_addresses_do_not_exist(client: Client, path: str) -> None:
    answer = client.ask(path)
    assert (answer.status, answer.body) == (404, b"")


def test_other_methods_do_not_exist(client: Client) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        assert client.ask("/", method=method).status == 405
    assert client.ask("/api/captures", method="POST", body=b"").status == 404


# -- source text ------------------------------------------------------------------------------------


def capture_naming(*paths: str, line: int = 1, kernel: str = "") -> Capture:
    pools = Pools()
    b = GraphBuilder(pools)
    for path in paths:
        b.node("op", stack=pools.stack([Frame(path, line, "f")]))
    if kernel:
        b.group("kernel", [0], name="k")
    capture = Capture(pools=pools, stages=[Stage("s", b.freeze())])
    if kernel:
        capture.add(Table(0, "group:kernel", frozen([0]), {"file": column([kernel])}, "files"))
    return capture


def source(client: Client, capture: int, path: str) -> Answer:
    return client.ask(f"/api/source?capture={capture}&path={quote(path, safe='')}")


def test_source_text_that_is_embedded(client: Client) -> None:
    capture = opscope.open(SIMPLE, sources=[JITTOR])
    (path,) = [path for path in capture.sources if path.endswith("gen_seed.py")]
    answer = source(client, 0, path)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.body.decode() == capture.sources[path]
    groups = capture.graph.groups["kernel"]
    known = [i for i in range(len(groups)) if groups.code[i]]
    assert known
    (files,) = capture.facts("files", 0)
    file = files.columns["file"].values[known[0]]
    assert source(client, 0, file).body.decode() == capture.pools.strings[int(groups.code[known[0]])]


def test_source_text_from_disk_is_of_named_files_only(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named, kernel, other = tmp_path / "model.py", tmp_path / "kernel.cc", tmp_path / "secret.txt"
    named.write_text("x = 1\n")
    kernel.write_text("int main();\n")
    other.write_text("secret")
    (tmp_path / "link.py").symlink_to(other)
    number = client.server.add("live", capture_naming(str(named), kernel=str(kernel)), local=True)
    assert source(client, number, str(named)).body == b"x = 1\n"
    assert source(client, number, str(kernel)).body == b"int main();\n"
    for path in (
        str(other),
        str(tmp_path / "link.py"),
        f"{tmp_path}/../{tmp_path.name}/secret.txt",
        f"{tmp_path}/./model.py",
        f"{tmp_path}//model.py",
        f"{named}\0",
        "model.py",
        "/etc/passwd",
        "",
        "a" * 40_000,
    ):
        answer = source(client, number, path)
        assert answer.status == 404
        assert answer.json() == {"error": "the text of this file is not known"}
    assert source(client, 0, str(named)).status == 404  # named by another capture
    for bad in ("9", "-1", "x", ""):
        assert client.ask(f"/api/source?capture={bad}&path={quote(str(named))}").status == 404


def test_source_text_of_odd_names(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here.py").write_text("here\n")
    monkeypatch.chdir(tmp_path)
    dots = f"{tmp_path}/x/../here.py"
    (tmp_path / "x").mkdir()
    odd = ["/proc/self/environ", "/dev/zero", "here.py", dots, str(tmp_path), "/no/such\0file", "/" + "a" * 5000]
    number = client.server.add("odd", capture_naming(*odd), local=True)
    for path in odd:
        assert source(client, number, path).status == 404
    # A file that has become shorter than the line that is named is another version.
    number = client.server.add("old", capture_naming(str(tmp_path / "here.py"), line=5), local=True)
    assert source(client, number, str(tmp_path / "here.py")).status == 404


def test_a_dropped_file_reads_nothing_from_disk(client: Client, tmp_path: Path) -> None:
    named = tmp_path / "model.py"
    named.write_text("x = 1\n")
    data = page.capture_bytes(capture_naming(str(named)))
    answer = client.ask("/api/open?name=sent.opscope", method="POST", body=data)
    assert answer.status == 200
    assert source(client, 1, str(named)).status == 404


@pytest.mark.parametrize(
    "request_text",
    [
        "GET /api/captures HTTP/1.1\n{head}\r\n",  # lines without CR
        "GET /api/captures HTTP/1.1\r\n{head}X: y\n\r\n",
        "GET /api/captures HTTP/1.1\r\n{head}X: y\r\n folded\r\n\r\n",
        "GET /api/captures HTTP/1.1\r\n{head}Content-Length : 0\r\n\r\n",
        "GET /api/captures HTTP/1.1\r\n{head}Content-Length: 40\r\n\r\nGET /api/captures HTTP/1.1\r\n{head}\r\n",
        "GET /api/captures HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /api/open?name=x HTTP/1.1\r\n{head}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    ],
)
def test_requests_that_can_be_read_in_two_ways_are_refused(client: Client, request_text: str) -> None:
    head = f"Host: 127.0.0.1:{client.server.port}\r\nAuthorization: Bearer {client.server.token}\r\n"
    with socket.create_connection(("127.0.0.1", client.server.port), timeout=PATIENCE) as raw:
        raw.sendall(request_text.format(head=head).encode())
        raw.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := raw.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1  # nothing behind it was taken for a second request


def test_a_capture_reads_no_file_outside_of_the_current_folder(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, other = tmp_path / "project", tmp_path / "other.py"
    project.mkdir()
    (project / "notes").write_text("secret\n")
    other.write_text("secret\n")
    (project / "link.py").symlink_to(other)
    monkeypatch.chdir(project)
    named = ("/etc/passwd", str(other), str(project / "notes"), str(project / "link.py"))
    number = client.server.add("sent", capture_naming(*named), local=True)
    for path in named:
        answer = source(client, number, path)
        assert answer.status == 404
        assert answer.json()["error"].startswith("this file is not read: it ")


# -- dropping files ---------------------------------------------------------------------------------


def test_a_dropped_file_becomes_a_capture(client: Client) -> None:
    name = "../</script>\"'‮.pkl"
    answer = client.ask(f"/api/open?name={quote(name, safe='')}", method="POST", body=SIMPLE.read_bytes())
    assert answer.status == 200
    assert answer.json() == {"name": name, "url": "api/capture/1", "stages": [{"name": "trace", "nodes": 123}]}
    assert from_bytes("x", client.ask("/api/capture/1").body).graph.n_nodes == 123
    text = client.ask("/").body.decode()
    assert text.count("</script>") == 2
    only = client.ask("/?capture=1").body.decode()
    assert "api/capture/1" in only
    assert "api/capture/0" not in only


def test_a_bad_file_gives_its_one_line(client: Client) -> None:
    for data, words in ((b"", "an empty file"), (b"hello", "not a format"), (SIMPLE.read_bytes()[:500], "x.pkl: ")):
        answer = client.ask("/api/open?name=x.pkl", method="POST", body=data)
        assert answer.status == 400
        assert words in answer.json()["error"]
        assert "\n" not in answer.json()["error"]
    assert len(client.ask("/api/captures").json()) == 1


def test_a_dropped_parquet_file_is_read_as_a_table(client: Client, tmp_path: Path) -> None:
    import arro3.core as ac
    from arro3.io import write_parquet

    names, figures = ac.Array(["a,b", "c"], ac.DataType.utf8()), ac.Array([1.5, 2], ac.DataType.float64())
    write_parquet(ac.Table.from_pydict({"module": names, "latency": figures}), str(tmp_path / "mine.parquet"))
    data = (tmp_path / "mine.parquet").read_bytes()
    answer = client.ask("/api/table?name=mine.parquet", method="POST", body=data)
    assert (answer.status, answer.body.decode()) == (200, 'module,latency\n"a,b",1.5\nc,2.0\n')
    for bad in (b"", b"PAR1 and no end", data[:-9]):
        answer = client.ask("/api/table?name=mine.parquet", method="POST", body=bad)
        assert answer.status == 400
        assert answer.json()["error"].startswith("mine.parquet: ")
    assert client.ask("/api/table?name=x", method="POST", body=data, token=False).status == 403


def test_sizes_are_checked_before_reading(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def post(**headers: str) -> Answer:
        return client.ask(
            "/api/open?name=x", method="POST", headers={k.replace("_", "-"): v for k, v in headers.items()}
        )

    assert post().status == 411
    assert post(Content_Length="-1").status == 411
    assert post(Content_Length="x").status == 411
    assert post(Transfer_Encoding="chunked", Content_Length="0").status == 411
    answer = post(Content_Length=str((1 << 30) + 1))
    assert answer.status == 413
    assert "use `opscope view`" in answer.json()["error"]
    assert post(Content_Length="9" * 500).status == 413
    monkeypatch.setattr(handler, "LARGEST_FILE", 10)
    assert client.ask("/api/open?name=x", method="POST", body=b"x" * 11).status == 413


def test_a_body_that_breaks_off(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.server.port), timeout=PATIENCE) as raw:
        head = f"POST /api/open?name=x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.server.token}\r\n"
        raw.sendall(f"{head}Content-Length: 100\r\n\r\nabc".encode())
        raw.shutdown(socket.SHUT_WR)
        assert raw.recv(1000).startswith(b"HTTP/1.1 400 ")
    assert client.ask("/api/captures").status == 200


def test_many_at_once(client: Client) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.ask("/api/capture/0").body, range(32)))
    assert len(set(answers)) == 1


# -- the command and cap.show() ---------------------------------------------------------------------


@dataclass
class Running:
    process: subprocess.Popen[str]
    url: str

    def get(self, path: str) -> Answer:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE)
        connection.request("GET", path)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())

    def announced(self) -> str:
        """Everything that the server prints to stderr while it starts."""
        assert self.process.stderr is not None
        text = ""
        while "Press Ctrl-C to stop." not in text:
            line = self.process.stderr.readline()
            assert line, text
            text += line
        return text

    def stop(self) -> tuple[int, str]:
        """Press Ctrl-C: the exit code, and what was left on stderr."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, errors


def view(*args: str | Path, **environment: str) -> Running:
    env = {key: value for key, value in os.environ.items() if key != "SSH_CONNECTION"} | environment
    process = subprocess.Popen(
        bundle.program("view", *map(str, args)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )
    assert process.stdout is not None
    return Running(process, process.stdout.readline().strip())


def test_view_serves_until_ctrl_c() -> None:
    running = view(SIMPLE, JITTOR / "simple_model.pkl", "--no-browser")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", running.url)
    address = running.url.partition("?")[2]
    assert running.get(f"/?{address}").status == 200
    assert running.get("/").status == 403
    names = [entry["name"] for entry in running.get(f"/api/captures?{address}").json()]
    assert names == ["simple_model_train.pkl", "simple_model.pkl"]
    code, errors = running.stop()
    assert code == 0
    assert "Traceback" not in errors


def test_view_on_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            bundle.program("view", str(SIMPLE), "--no-browser", "--port", str(port)), capture_output=True, text=True
        )
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"port {port} of 127.0.0.1 cannot be used" in done.stderr
    assert done.stderr.count("\n") == 1


def test_view_over_ssh_prints_the_way() -> None:
    running = view(SIMPLE, SSH_CONNECTION="10.0.0.9 5000 10.0.0.5 2222", BROWSER="false")
    port = urlsplit(running.url).port
    text = running.announced()
    assert re.search(rf"ssh -p 2222 -N -L {port}:127\.0\.0\.1:{port} \S*10\.0\.0\.5\n", text)
    assert running.stop()[0] == 0


def test_bad_files_fail_before_anything_is_served(tmp_path: Path) -> None:
    (tmp_path / "bad.pkl").write_bytes(b"hello")
    for files in ([tmp_path / "bad.pkl"], [SIMPLE, tmp_path / "bad.pkl"], [tmp_path / "missing"], []):
        done = run("view", *files, "--no-browser")
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1


def test_the_forward_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.9 5000 10.0.0.5 22")
    assert re.fullmatch(r"ssh -N -L 99:127\.0\.0\.1:99 (\S+@)?10\.0\.0\.5", forward_line(99))
    monkeypatch.setenv("SSH_CONNECTION", "odd")
    assert socket.gethostname() in forward_line(99)


def test_show_serves_from_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle.stand_in(monkeypatch)
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    monkeypatch.setattr(serving, "_shared", [])
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    cap = opscope.open(SIMPLE)
    first, second = cap.show(), cap.show("again", browser=False)
    assert opened == [first]
    assert urlsplit(first).netloc == urlsplit(second).netloc
    (server,) = serving._shared  # pyright: ignore[reportPrivateUsage]
    running = Running(None, second)  # type: ignore[arg-type]
    parts = urlsplit(second)
    text = running.get(f"/?{parts.query}").body.decode()
    assert '"again"' in text
    assert "api/capture/0" not in text
    server.close()


def test_a_missing_bundle_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(page, "files", lambda _: tmp_path)
    with pytest.raises(opscope.OpscopeError, match=r"viewer\.js is not in this installation: .* `make viewer`"):
        Server(from_bytes)
    with pytest.raises(opscope.OpscopeError, match="make viewer"):
        opscope.open(SIMPLE).save(tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []


def test_demo_in_a_pipe_only_describes() -> None:
    done = subprocess.run([sys.executable, "-m", "opscope", "demo"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "http://" not in done.stdout


def test_demo_in_a_terminal_serves() -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        bundle.program("demo", "--no-browser"), stdin=follower, stdout=follower, stderr=follower, close_fds=True
    )
    os.close(follower)
    text = ""
    try:
        while "Ctrl-C" not in text:
            text += os.read(leader, 65536).decode("utf-8", "replace")
        assert "ResNet-18" in text
        assert re.search(r"http://127\.0\.0\.1:\d+/\?token=", text)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        os.close(leader)
