"""Captures in which one structure is enormous: nothing recurses, and nothing is written out for every level of a chain.

Work is counted, not timed: bytes that come out, lines of opscope's Python that run, memory that is taken.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

import opscope
from effort import lines_run
from opscope import wire
from opscope.analysis.search.find import find
from opscope.cli import main
from opscope.export import registry
from opscope.ir import Capture, GraphBuilder, Pools, Stage
from opscope.ir.chains import ENDS, LONGEST_LABEL
from opscope.ir.text import dump

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from structures import STRUCTURES, make

SMALL, LARGE = 100, 1_000
MARGIN = 20  # for ten times the structure: ten, and paths that get longer up to 32 scopes; quadratic would be 100

# What commands do, short of starting one: a text, or what it is written to.
WORK: dict[str, list[str]] = {
    "info": ["info", "{x}"],
    "info json": ["info", "{x}", "--json"],
    "stats": ["stats", "{x}"],
    "whole tree": ["stats", "{x}", "--depth", "100000", "--no-fold"],
    "by node": ["stats", "{x}", "--by", "node", "--json"],
    "find": ["find", "{x}", "relu"],
    "find json": ["find", "{x}", "--json", "scope:/layer|block/"],
    "ir": ["ir", "{x}"],
    "ir text": ["ir", "{x}", "--style", "text"],
    "diff": ["diff", "{x}", "{x}"],
}
EXPORTS = (".opscope", ".dot", ".mmd", ".json", ".tensorboard", ".parquet", ".html")


def stored(name: str, count: int, folder: Path) -> Path:
    path = folder / f"{name}-{count}.opscope"
    with path.open("wb") as file:
        wire.write(make(name, count), file)
    return path


def run(words: list[str], path: Path) -> None:
    with pytest.raises(SystemExit) as stop:
        main([word.format(x=path) for word in words])
    assert stop.value.code == 0


@pytest.fixture
def little_stack():
    """Python's limit of 1000 frames is for programs that recurse a little; here it is hardly more than pytest needs."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("work", WORK)
def test_work_and_output_grow_no_faster_than_the_structure(work: str, name: str, tmp_path: Path, capsys):
    figures: list[tuple[int, int]] = []
    for count in (SMALL, LARGE):
        path = stored(name, count, tmp_path)
        run(WORK[work], path)  # imports and caches first
        capsys.readouterr()
        lines = lines_run(lambda path=path: run(WORK[work], path))
        figures.append((lines, len(capsys.readouterr().out)))
    (lines, size), (more_lines, more_size) = figures
    assert more_lines <= MARGIN * lines + 20_000  # what runs once is most of the small one
    assert more_size <= MARGIN * size + 20_000


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("ending", EXPORTS)
def test_exports_grow_no_faster_than_the_structure(ending: str, name: str, tmp_path: Path):
    sizes: list[int] = []
    for count in (SMALL, LARGE):
        out = tmp_path / f"{count}{ending}"
        registry.export(make(name, count), out)
        sizes.append(
            sum(file.stat().st_size for file in ([out] if out.is_file() else out.rglob("*")) if file.is_file())
        )
    assert sizes[1] <= MARGIN * sizes[0] + 20_000


@pytest.mark.parametrize("name", ["deep", "recursion"])
@pytest.mark.parametrize("work", ["info", "stats", "find", "ir text", "diff", ".dot", ".mmd", ".html"])
def test_a_chain_of_100000_takes_no_recursion_and_little_memory(
    work: str, name: str, tmp_path: Path, little_stack: None, capsys
):
    path = stored(name, 100_000, tmp_path)
    if work in EXPORTS:
        registry.export(opscope.open(path), tmp_path / f"out{work}")
    else:
        run(WORK[work], path)
        assert len(capsys.readouterr().out) < 120_000_000


def test_memory_grows_no_faster_than_a_chain():
    def taken(count: int) -> int:
        capture = make("deep", count)
        tracemalloc.start()
        dump(capture)
        str(opscope.stats(capture))
        find(capture.graph, "scope:layer7 relu")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak

    taken(SMALL)
    assert taken(20 * SMALL) <= 26 * taken(SMALL) + (4 << 20)


# -- what a long chain looks like ------------------------------------------------------------------------


def chain(count: int, *, name: Callable[[int], str] = "m{}".format) -> Capture:
    pools = Pools()
    scope = 0
    for i in range(count):
        scope = pools.scope(scope, name(i))
    b = GraphBuilder(pools)
    b.node("relu", scope=scope)
    return Capture(pools, [Stage("chain", b.freeze())])


def test_a_path_of_32_is_whole_and_a_longer_one_says_what_is_left_out():
    whole = "/".join(f"m{i}" for i in range(2 * ENDS))
    assert chain(2 * ENDS).graph.node(0).path == whole
    path = chain(100).graph.node(0).path.split("/")
    assert path[:ENDS] == [f"m{i}" for i in range(ENDS)]
    assert path[ENDS] == "…68…"
    assert path[ENDS + 1 :] == [f"m{i}" for i in range(84, 100)]
    assert len(chain(100).graph.node(0).scopes) == 100  # nothing is lost for who asks


@pytest.mark.parametrize("count", [1, 5, 2 * ENDS, 2 * ENDS + 1, 80])
def test_all_paths_at_once_are_those_of_each(count: int):
    pools = chain(count).pools
    assert pools.scope_paths() == [pools.scope_path(i) for i in range(len(pools.scopes))]


def test_a_pool_that_grows_has_the_paths_of_what_came_later():
    pools = Pools()
    first = pools.scope(0, "a")
    assert pools.scope_path(first) == "a"
    assert pools.scope_path(pools.scope(first, "b")) == "a/b"


def test_an_endless_name_is_cut_in_a_path():
    path = chain(1, name=lambda _: "x" * 10_000).graph.node(0).path
    assert len(path) == LONGEST_LABEL
    assert path.endswith("…")


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        ("scope:m50", True),  # left out of what is printed, and found all the same
        ("scope:m50/m51", True),
        ("scope:m50/m52", False),
        ("scope:/m99$/", True),
        ("scope:m0*m99", True),
        ("scope:/m50/", False),  # a pattern sees what is printed
        ("m50 relu", True),
        ("-scope:m50", False),
    ],
)
def test_find_looks_for_text_in_the_whole_of_a_long_path(query: str, is_found: bool):
    assert (len(find(chain(100).graph, query)) == 1) is is_found
