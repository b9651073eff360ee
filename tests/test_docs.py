"""What the README says works: its examples run, in an empty folder, as a reader would type them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from conftest import DATA
from opscope.ir import verify_capture
from opscope.ops.aliases import read as read_table
from opscope.readers.source import Options, Source

ROOT = Path(__file__).parent.parent
EXAMPLES = re.findall(
    r"<!-- tested -->\n```(\w+)\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(DATA / "jittor" / "resnet_train.pkl", tmp_path)
    return tmp_path


@pytest.mark.parametrize(("language", "text"), EXAMPLES, ids=[f"{lang}{i}" for i, (lang, _) in enumerate(EXAMPLES)])
def test_the_examples_of_the_readme_run(language: str, text: str, folder: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = {"sh": ["bash", "-euc", text], "python": [sys.executable, "-c", text]}[language]
    environment = {**os.environ, "PATH": path, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", env=environment)
    assert done.returncode == 0, done.stderr


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "RESULTS.md"]


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What its headings are called in links, as GitHub does it."""
    found = Counter[str]()
    names: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+)$", prose(page), flags=re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names


@pytest.mark.parametrize("page", PAGES, ids=[str(path.relative_to(ROOT)) for path in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        file, _, anchor = link.partition("#")
        if not re.match(r"\w+:", link):
            target = page.parent / file if file else page
            assert target.exists(), f"{page}: {link}"
            assert not anchor or anchor in anchors(target), f"{page}: {link}: no such heading"


def test_pages_that_the_code_names_are_there() -> None:
    for file in [*(ROOT / "src").rglob("*.py"), *(ROOT / "viewer" / "src").rglob("*.ts")]:
        for name in re.findall(r"\bdocs/[\w/-]+\.md", file.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{file}: {name}"


# -- the recipes of CONTRIBUTING -----------------------------------------------------------------------------

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_reader_of_the_recipe_reads() -> None:
    (text,) = re.findall(r"```python\n(.*?)```", CONTRIBUTING, re.DOTALL)
    reader: dict[str, object] = {}
    exec(textwrap.dedent("   " + text.lstrip()), reader)
    source = Source("nameless", data=b"#edges 1\na b\n")
    assert reader["match"](source)  # type: ignore[operator]
    capture = reader["read"](source, Options())  # type: ignore[operator]
    verify_capture(capture)
    assert [node.op for node in capture.graph.nodes] == ["MatMul"]


def test_the_alias_line_of_the_recipe_is_one() -> None:
    (line,) = re.findall(r"`(\S+ [^`]* < \w+)`", CONTRIBUTING)
    ((op, alias),) = read_table(line).items()
    assert (op, alias.kind) == ("DotGeneral", "matmul")


def test_every_file_that_contributing_names_is_there() -> None:
    """Also in the maps: folders and modules of src/opscope and of viewer/src."""
    for name in re.findall(r"`((?:tests|viewer|src|docs|benchmarks|examples)/[\w./-]+|noxfile\.py)`", CONTRIBUTING):
        assert name.endswith("<framework>") or (ROOT / name).exists(), name
    for name in re.findall(r"^\| (`.+?`) \|", CONTRIBUTING, re.MULTILINE):
        for part in re.findall(r"`([^`]+)`", name):
            assert any((ROOT / base / part).exists() for base in ("", "src/opscope", "viewer/src")), part
