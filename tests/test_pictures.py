"""Pictures without a browser: what the page draws, as SVG, PNG and PDF."""

from __future__ import annotations

import builtins
import io
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pypdfium2
import pytest
from click.testing import CliRunner
from PIL import Image, ImageChops

import opscope
from conftest import DATA
from opscope.cli import cli
from opscope.export.picture import fonts
from opscope.ir import Capture, GraphBuilder, Origin, Pools, Stage

GOLDEN = Path(__file__).parent / "golden" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"
SAMPLES = [
    "jittor/simple_model.pkl",
    "jittor/resnet_train.pkl",
    "torch/net.pt2",
    "torch/scripted.pt",
    "page/step.opscope",
    "page/branches.opscope",
]

Notes = list[str]


def written(capture: opscope.Capture, out: Path, **options: Any) -> tuple[bytes, Notes]:
    notes: Notes = []
    capture.save(out, say=notes.append, **options)
    return out.read_bytes(), notes


def texts(svg: bytes) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def named(*names: str, scopes: tuple[str, ...] = ()) -> opscope.Capture:
    """A chain of operators of these names."""
    pools = Pools()
    b = GraphBuilder(pools)
    inside = [pools.scope(0, scope) for scope in scopes] or [0]
    b.nodes(
        list(names),
        [[i - 1] if i else [] for i in range(len(names))],
        [pools.type("float32", [2, 3])] * len(names),
        scopes=[inside[i % len(inside)] for i in range(len(names))],
        phases=["forward"] * len(names),
    )
    return opscope.Capture.of(Capture(pools=pools, stages=[Stage("s", b.freeze())], origin=Origin("test")))


@pytest.fixture(scope="module")
def step() -> opscope.Capture:
    return opscope.open(DATA / "page" / "step.opscope")


@pytest.fixture(scope="module")
def resnet() -> opscope.Capture:
    return opscope.open(DATA / "jittor" / "resnet_train.pkl")


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_kind_of_picture_of_real_captures(sample: str, tmp_path: Path) -> None:
    capture = opscope.open(DATA / sample)
    svg, _ = written(capture, tmp_path / "p.svg")
    assert len(texts(svg)) > 5
    png, _ = written(capture, tmp_path / "p.png", size="600")
    assert Image.open(io.BytesIO(png)).size[0] == 600
    pdf, _ = written(capture, tmp_path / "p.pdf")
    (page,) = pypdfium2.PdfDocument(pdf)
    found = page.get_textpage().get_text_range()
    assert texts(svg)[0] in found


def test_model_explorer_files_too(resnet: opscope.Capture, tmp_path: Path) -> None:
    resnet.save(tmp_path / "graph.json")
    svg, _ = written(opscope.open(tmp_path / "graph.json"), tmp_path / "p.svg")
    assert "resnet18" in texts(svg)


@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf"])
def test_the_same_capture_gives_the_same_bytes(step: opscope.Capture, tmp_path: Path, ending: str) -> None:
    first, _ = written(step, tmp_path / f"a{ending}")
    again, _ = written(opscope.open(DATA / "page" / "step.opscope"), tmp_path / f"b{ending}")
    assert first == again


def test_golden_svg(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    svg, notes = written(named("conv", "relu", "add", scopes=("one", "two")), tmp_path / "p.svg")
    golden = GOLDEN / "chain.svg"
    if pytestconfig.getoption("overwrite"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_bytes(svg)
    assert svg.decode() == golden.read_text(encoding="utf-8"), "chain.svg changed: pytest --overwrite, and look at it"
    assert notes == []


def test_a_png_has_its_text(step: opscope.Capture, tmp_path: Path) -> None:
    from opscope.export.picture import png
    from opscope.export.picture.size import Size

    svg = written(step, tmp_path / "p.svg")[0].decode()
    bare = re.sub(r"<text[^>]*>[^<]*</text>", "", svg)
    with_text, without = (Image.open(io.BytesIO(png.render(s, Size(800))[0])).convert("L") for s in (svg, bare))
    changed = ImageChops.difference(with_text, without).point(lambda v: 255 if v > 60 else 0)
    assert changed.histogram()[255] > 1500


def test_chinese_names_are_drawn(tmp_path: Path) -> None:
    """Different signs give different pixels: none of them is an empty box."""
    pixels: set[bytes] = set()
    for name in ("卷积", "池化", "한국", "かな", "conv"):
        content, notes = written(named(name), tmp_path / "p.png", size="400")
        assert notes == []
        pixels.add(Image.open(io.BytesIO(content)).tobytes())
        pdf, notes = written(named(name), tmp_path / "p.pdf")
        assert notes == []
        assert name in pypdfium2.PdfDocument(pdf)[0].get_textpage().get_text_range()
    assert len(pixels) == 5


def test_a_sign_without_a_glyph_is_a_warning(tmp_path: Path) -> None:
    for ending in (".png", ".pdf"):
        _, notes = written(named("rocket🚀"), tmp_path / f"p{ending}")
        assert len(notes) == 1
        assert "U+1F680" in notes[0]
    svg, notes = written(named("rocket🚀"), tmp_path / "p.svg")
    assert notes == []
    assert "rocket🚀" in texts(svg)
    with pytest.warns(UserWarning, match="U\\+1F680"):
        named("rocket🚀").save(tmp_path / "p.png")


def test_the_fonts_have_what_they_should() -> None:
    everyday = {bytes([a, b]).decode("gb2312") for a in range(0xB0, 0xD7) for b in range(0xA1, 0xFA)}
    assert {ord(c) for c in everyday} <= fonts.signs(fonts.CJK)
    assert {ord(c) for c in "abcXYZ0189×…·→≤αβ" + fonts.INSTEAD} <= fonts.signs(fonts.REGULAR) & fonts.signs(fonts.BOLD)
    assert 0x1F680 not in fonts.signs(fonts.REGULAR)


@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf"])
def test_hostile_names_do_no_harm(tmp_path: Path, ending: str) -> None:
    names = [
        "</text><script>x()</script>",
        "a&b\"c'd]]>",
        "\x00\x1b[31m\u202e",
        "{{%s}}${y}\\u0041",
        "x" * 5000,
        "\ud800",
    ]
    content, _ = written(named(*names), tmp_path / f"p{ending}")
    if ending == ".svg":
        root = ElementTree.fromstring(content)
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
            *("svg", "title", "style", "g", "rect", "path", "text")
        }
        assert any("<script>" in text for text in texts(content))


def test_what_could_not_be_read_is_closed_and_says_so(resnet: opscope.Capture, tmp_path: Path) -> None:
    closed, notes = written(resnet, tmp_path / "p.svg")
    assert len(notes) == 1
    assert re.search(r"\d,\d\d\d boxes cannot be read, so modules are closed below level 4 \(forward\)", notes[0])
    whole, notes = written(resnet, tmp_path / "p.svg", whole=True)
    assert notes == []
    assert len(texts(whole)) > 5 * len(texts(closed))
    one, notes = written(resnet, tmp_path / "p.svg", depth=1)
    assert notes == []
    assert "conv1" not in texts(one)
    opened, _ = written(resnet, tmp_path / "p.svg", depth=1, open=["resnet18"])
    assert "conv1" in texts(opened)


def test_options(step: opscope.Capture, tmp_path: Path) -> None:
    def of(**options: Any) -> bytes:
        return written(step, tmp_path / "p.svg", **options)[0]

    def size(svg: bytes) -> tuple[float, float]:
        root = ElementTree.fromstring(svg)
        return float(root.attrib["width"]), float(root.attrib["height"])

    plain = of()
    assert {"forward", "backward", "optimizer"} <= set(texts(plain))
    forward = of(phases=["forward"])
    assert "addmm" in texts(forward)
    assert not {"backward", "sigmoid_backward"} & set(texts(forward))
    down, right = size(forward), size(of(phases=["forward"], direction="right"))
    assert down[1] > down[0] and right[0] > right[1]  # noqa: PT018
    assert b"#0d0f14" in of(theme="dark")
    assert size(of(size="500"))[0] == 500
    width, height = size(of(size="500x300"))
    assert (width <= 500, height) == (True, 300)
    png, _ = written(step, tmp_path / "p.png", size="500x300")
    assert Image.open(io.BytesIO(png)).size == (pytest.approx(width, abs=1), 300)  # resvg rounds one side, up or down
    pdf, _ = written(step, tmp_path / "p.pdf", size="400")
    assert pypdfium2.PdfDocument(pdf)[0].get_size()[0] == pytest.approx(300)


def test_a_capture_without_operators(tmp_path: Path) -> None:
    for ending in (".svg", ".png", ".pdf"):
        assert written(named(), tmp_path / f"p{ending}")[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"size": "big"}, "'big' is not a size: write 1600"),
        ({"size": "0x9"}, "0 is not between 16 and"),
        ({"engine": "neato"}, "engine: 'neato' is not known .there are: opscope, graphviz"),
        ({"theme": "pink"}, "theme: 'pink' is not known"),
        ({"direction": "up"}, "direction: 'up' is not known"),
        ({"phases": ["sideways"]}, "phase: 'sideways' is not known .there are: init, forward"),
        ({"open": ["nowhere"]}, "no module 'nowhere'"),
        ({"stage": "nowhere"}, "no stage 'nowhere'"),
        ({"engine": "graphviz", "theme": "dark"}, "graphviz knows no theme"),
    ],
)
def test_what_cannot_be_done_is_said(step: opscope.Capture, tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(opscope.OpscopeError, match=said):
        step.save(tmp_path / "p.svg", **options)
    assert not (tmp_path / "p.svg").exists()


def test_only_pictures_have_a_theme(step: opscope.Capture, tmp_path: Path) -> None:
    with pytest.raises(opscope.OpscopeError, match=r"only pictures .* have a theme"):
        step.save(tmp_path / "p.dot", theme="dark")
    with pytest.raises(TypeError, match="no option colour"):
        step.save(tmp_path / "p.svg", colour="red")


@pytest.mark.parametrize(
    ("ending", "package"), [(".svg", "py_mini_racer"), (".png", "resvg_py"), (".pdf", "reportlab")]
)
def test_without_the_extra_one_line_says_what_to_install(
    step: opscope.Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, package: str
) -> None:
    real: Callable[..., Any] = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(opscope.OpscopeError, match=r"pip install 'opscope\[picture\]'"):
        step.save(tmp_path / f"p{ending}")


def test_graphviz_is_used_when_asked_for(
    step: opscope.Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform != "win32":  # a dot of our own: what it is called with
        dot = tmp_path / "bin" / "dot"
        dot.parent.mkdir()
        dot.write_text('#!/bin/sh\nfor last; do :; done\ncat "$last" > "$(dirname "$last")/graph.svg"; echo "$@" >&2\n')
        dot.chmod(0o755)
        with monkeypatch.context() as patch:
            patch.setenv("PATH", str(dot.parent), prepend=":")
            content, _ = written(step, tmp_path / "p.svg", engine="graphviz", direction="right")
        assert b"rankdir=LR" in content
        dot.write_text("#!/bin/sh\necho 'Error: no memory' >&2; exit 1\n")
        with monkeypatch.context() as patch:
            patch.setenv("PATH", str(dot.parent), prepend=":")
            with pytest.raises(opscope.OpscopeError, match="dot failed: Error: no memory"):
                step.save(tmp_path / "q.svg", engine="graphviz")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(opscope.OpscopeError, match="`dot` is not installed"):
        step.save(tmp_path / "q.svg", engine="graphviz")


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf"])
def test_the_real_graphviz(step: opscope.Capture, tmp_path: Path, ending: str) -> None:
    content, _ = written(step, tmp_path / f"p{ending}", engine="graphviz", size="300")
    assert len(content) > 2000


def test_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "p.svg"
    source = str(DATA / "jittor" / "resnet_train.pkl")
    done = CliRunner().invoke(cli, ["export", source, "-o", str(out), "--phase", "forward", "--theme", "dark"])
    assert done.exit_code == 0, done.output
    assert "modules are closed below level" in done.output
    assert "backward" not in texts(out.read_bytes())


def test_a_png_of_everything_is_refused_where_it_would_take_minutes(
    step: opscope.Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opscope.export.picture import png

    monkeypatch.setattr(png, "_MOST_TEXT", 1000)
    with pytest.raises(opscope.OpscopeError, match=r"too many for a PNG.*\.svg or a \.pdf"):
        step.save(tmp_path / "p.png")


STEP = DATA / "page" / "step.opscope"

# -- a video, without a browser that could record it (tests/browser/test_share.py has one) ----------------


def test_a_video_needs_a_browser_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("opscope.export.video._ELSEWHERE", ())
    with pytest.raises(opscope.OpscopeError, match=r"Chromium, Chrome or Edge, and none is on the PATH"):
        opscope.open(STEP).save(tmp_path / "run.webm")
    monkeypatch.setenv("OPSCOPE_BROWSER", "no-such-program")
    with pytest.raises(opscope.OpscopeError, match="OPSCOPE_BROWSER names 'no-such-program'"):
        opscope.open(STEP).save(tmp_path / "run.webm")
    assert not list(tmp_path.iterdir())


def test_a_browser_that_ends_without_a_video_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCOPE_BROWSER", shutil.which("false") or "false")
    with pytest.raises(opscope.OpscopeError, match=r"no video came back from .*ended with 1"):
        opscope.open(STEP).save(tmp_path / "run.webm", say=lambda _: None)
    assert not list(tmp_path.iterdir())


def test_a_video_has_a_run_to_show_and_no_legend(tmp_path: Path) -> None:
    with pytest.raises(opscope.OpscopeError, match="a video has no legend"):
        opscope.open(STEP).save(tmp_path / "run.webm", legend=True)
    with pytest.raises(opscope.OpscopeError, match="has no forward and backward pass"):
        opscope.open(DATA / "page" / "branches.opscope").save(tmp_path / "run.webm")
