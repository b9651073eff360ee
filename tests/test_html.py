"""The one-file page and the notebook: whole, harmless, and not too large."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from nbclient import NotebookClient

import bundle
import opscope
from conftest import DATA
from opscope.export import html, notebook, page
from opscope.ir import Capture, Frame, GraphBuilder, Pools, Stage
from opscope.opening import from_bytes
from strategies import captures, texts

JITTOR = DATA / "jittor"
HOSTILE = [
    "</script><script>alert(1)</script>",
    "\"'&<>",
    "‮rtl",
    "<!--<script>",
    "\u2028\ud800",
    "x" * 100_000,
    "{{7*7}}",
]


class Page(HTMLParser):
    """What a browser sees: elements by id, and every tag."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        self.texts[self._inside] = self.texts.get(self._inside, "") + data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]

    @property
    def config(self) -> dict[str, Any]:
        return json.loads(self.texts["opscope-config"])

    def capture(self, index: int = 0) -> opscope.Capture:
        data = self.config["captures"][index]["data"]
        return without_costs(from_bytes("x", base64.b64decode(self.texts[data], validate=True)))


def without_costs(capture: opscope.Capture) -> opscope.Capture:
    """As it was before it was annotated."""
    computed = ("costs", "lifetimes", "parameters", "kinds")
    added = [name for name, table in capture.tables.items() if table.fact in computed]
    assert {(capture.tables[name].fact, capture.tables[name].stage) for name in added} == {
        (fact, stage) for fact in computed for stage in range(len(capture.stages))
    }
    for name in added:
        del capture.tables[name]
    return capture


def hostile_capture() -> Capture:
    pools = Pools()
    b = GraphBuilder(pools)
    for text in HOSTILE:
        scope = pools.scope(0, text, text)
        stack = pools.stack([Frame(text, 1, text)])
        node = b.node(text, name=text, scope=scope, stack=stack, attrs={text: text})
        b.output(node, pools.type(text, (text,)), name=text)
    capture = Capture(pools=pools, stages=[Stage(HOSTILE[0], b.freeze())])
    capture.sources["</script>"] = "</script>"
    return capture


def check(parsed: Page) -> None:
    """One document: our elements and no other, and a policy that lets only our script run."""
    assert [attrs.get("id") for attrs in parsed.all("script")] == [
        "opscope-config",
        *(entry["data"] for entry in parsed.config["captures"]),
        "opscope-engine",
        "opscope-js",
    ]
    allowed = ["html", "head", "meta", "meta", "meta", "link", "title", "meta", "style", "body", "div"]
    assert [tag for tag, _ in parsed.tags if tag != "script"] == allowed
    assert [link["href"] for link in parsed.all("link")] == ["data:,"]
    assert zlib.decompress(base64.b64decode(parsed.texts["opscope-engine"])) == page.asset("engine.js")
    script = parsed.texts["opscope-js"].encode()
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
    (policy,) = [m["content"] for m in parsed.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "connect-src blob: data:;" in policy


def test_one_file_holds_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle.stand_in(monkeypatch)
    capture = opscope.open(JITTOR / "simple_model_train.pkl", sources=[JITTOR])
    capture.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    parsed = Page(text)
    check(parsed)
    config = parsed.config
    assert {device["name"] for device in config.pop("devices")} > {"h100", "a100"}
    assert config == {
        "mode": "file",
        "captures": [{"name": "page", "data": "capture-0"}],
        "title": "page – opscope",
    }
    assert parsed.capture().text() == capture.text()
    assert "src=" not in re.sub(r"default-src|\w+-src", "", text)
    assert "http://" not in text
    assert "https://" not in text
    assert parsed.texts["opscope-js"] == "/* js \\x3c/script> \\x3c!-- */"


def test_hostile_names_stay_text(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle.stand_in(monkeypatch)
    capture = hostile_capture()
    for name in HOSTILE:
        parsed = Page(html.render(capture, name))
        check(parsed)
        assert parsed.config["captures"][0]["name"] == name
        assert len(parsed.texts["title"]) < 220
        assert "‮" not in parsed.texts["title"]
        assert parsed.capture().text() == text_of(capture)
        served = Page(page.served([{"name": name, "url": "api/capture/0"}], name, "token"))
        assert served.config["captures"][0]["name"] == name
        assert len(served.all("script")) == 2


def text_of(capture: Capture) -> str:
    return opscope.Capture.of(capture).text()


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(captures(), texts)
def test_any_capture_makes_one_document(capture: Capture, name: str) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        bundle.stand_in(monkeypatch)
        text = html.render(capture, name).encode("utf-8", "backslashreplace").decode()
        check(Page(text))


def test_escaped_json_is_json() -> None:
    for data in (HOSTILE, {"a": None, "</": [1.5, True]}):
        text = page.escaped_json(data)
        assert json.loads(text) == data
        assert not re.search(r"[<>&]|[^\x00-\x7f]", text)


@pytest.mark.skipif(not bundle.BUILT, reason="the page is not built")
def test_the_scripts_of_the_page_stay_small() -> None:
    for name in page.ASSETS:
        assert len(page.asset(name)) <= 500_000, name


def test_the_page_of_a_training_graph_is_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not bundle.BUILT:  # what the bundle may be at most
        limit = {"viewer.js": b"/" * 300_000, "viewer.css": b" " * 50_000, "engine.js": os.urandom(150_000)}
        monkeypatch.setattr(page, "asset", limit.__getitem__)
    opscope.open(JITTOR / "resnet_train.pkl").save(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size <= 1_500_000


# -- notebooks --------------------------------------------------------------------------------------


def frame_of(text: str) -> tuple[dict[str, str | None], Page]:
    outer = Page(text)
    (frame,) = outer.all("iframe")
    assert len(outer.tags) == 1
    return frame, Page(frame["srcdoc"] or "")


def test_a_capture_shows_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle.stand_in(monkeypatch)
    capture = opscope.Capture.of(hostile_capture())
    data = capture._repr_mimebundle_()
    assert set(data) == {"text/plain", "text/html"}
    assert capture._repr_html_() == data["text/html"]
    frame, parsed = frame_of(data["text/html"])
    assert "allow-same-origin" not in (frame["sandbox"] or "")
    assert "height: 560px" in (frame["style"] or "")
    check(parsed)
    assert parsed.config["mode"] == "notebook"
    assert parsed.config["height"] == 560
    assert parsed.capture().text() == capture.text()


def test_a_large_capture_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle.stand_in(monkeypatch)
    capture = opscope.Capture.of(hostile_capture())
    for limit in (100, len(capture._repr_html_()) - 1000):  # by the capture alone, and by the page
        monkeypatch.setattr(notebook, "LARGEST", limit)
        text = capture._repr_html_()
        assert len(text) < 2000
        assert "cap.show()" in text
        assert 'cap.save("graph.html")' in text
        assert "<script" not in text
        assert "7 operators" in text


def test_an_empty_capture_and_a_missing_bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "nothing in it yet" in opscope.Capture()._repr_html_()
    monkeypatch.setattr(page, "files", lambda _: tmp_path)
    assert "make viewer" in opscope.Capture.of(hostile_capture())._repr_html_()


def test_a_real_notebook(tmp_path: Path) -> None:
    """Run by Jupyter's own client on a real kernel, and saved."""
    first = "import opscope"
    if not bundle.BUILT:
        first += f"\nfrom opscope.export import page\npage.asset = {bundle.STAND_IN!r}.__getitem__"
    book = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(first),
            nbformat.v4.new_code_cell(f"cap = opscope.open({str(JITTOR / 'simple_model_train.pkl')!r})\ncap"),
            nbformat.v4.new_code_cell("url = cap.show(browser=False)\nurl"),
        ]
    )
    NotebookClient(book, timeout=120, kernel_name="python3").execute()
    nbformat.write(book, tmp_path / "book.ipynb")
    _, shown, served = (cell.outputs for cell in nbformat.read(tmp_path / "book.ipynb", as_version=4).cells)
    (output,) = shown
    assert output.data["text/plain"].startswith("<opscope.Capture jittor")
    _, parsed = frame_of(output.data["text/html"])
    check(parsed)
    assert parsed.capture().graph.n_nodes == 123
    assert "http://127.0.0.1:" in served[0].data["text/plain"]
    assert (tmp_path / "book.ipynb").stat().st_size < notebook.LARGEST
