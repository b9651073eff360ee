"""Ranks as text, the mesh that their groups make, which of them to record, and which stand out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.analysis.world.choosing import choose
from opscope.analysis.world.mesh import Dimension, Mesh, mesh_of
from opscope.analysis.world.odd import odd_ranks
from opscope.ir.ranks import ranks_of, ranks_text
from opscope.tracers.messages import Mailbox

CUBE = Mesh((Dimension("pp", 4, 64), Dimension("dp", 8, 8), Dimension("tp", 8, 1)))
Work = Callable[[tuple[int, ...]], str]


@given(st.lists(st.integers(0, 300)))
def test_ranks_as_text_and_back(ranks: list[int]) -> None:
    assert ranks_of(ranks_text(ranks)) == ranks


def test_ranks_are_short():
    assert ranks_text(range(1024)) == "0-1023"
    assert ranks_text(range(3, 1024, 8)) == "3-1019:8"
    assert ranks_text([0, 1, 2, 3, 64, 65, 66, 67]) == "0-3,64-67"


@pytest.mark.parametrize("text", ["5-2", "a", "0-99999999999", "1-2-3"])
def test_what_are_no_ranks(text: str):
    with pytest.raises(ValueError):
        ranks_of(text)


def test_the_mesh_is_made_of_the_groups_that_fit_into_each_other():
    groups = [
        ("world", "0-255"),
        ("tp", "0-7"),
        ("dp_tp", "0-63"),
        ("dp", "0-56:8"),
        ("pp", "0-192:64"),
        ("odd", "0-4:2"),
    ]
    assert mesh_of(groups, 256) == CUBE
    assert CUBE.coordinates(77) == (1, 1, 5)
    assert CUBE.rank((1, 1, 5)) == 77
    assert CUBE.line(77, 1) == [69, 77, 85, 93, 101, 109, 117, 125]


def test_what_no_group_names_is_a_dimension_too():
    assert [d.name for d in mesh_of([("tp", "0-3")], 16).dimensions] == ["others", "tp"]
    assert [d.name for d in mesh_of([], 16).dimensions] == ["world"]
    assert mesh_of([("tp", "nonsense")], 16).size == 16


def chosen(mesh: Mesh, work: Work) -> tuple[dict[str, list[int]], set[int]]:
    asking, known = choose(mesh), dict[int, str]()
    wanted: Sequence[int] = next(asking)
    while True:
        assert not set(wanted) & set(known), "a rank is recorded twice"
        known |= {rank: work(mesh.coordinates(rank)) for rank in wanted}
        try:
            wanted = asking.send(known)
        except StopIteration as end:
            return end.value.classes, set(known)


WORKS: dict[str, tuple[Work, int, int]] = {
    # what a rank computes, by its place; how many classes; how many ranks are recorded at most
    "all alike": (lambda place: "", 1, 8),
    "stages": (lambda place: str(place[0]), 4, 14),
    "the ends of a pipeline": (lambda place: {0: "first", 3: "last"}.get(place[0], "middle"), 3, 14),
    "parts of a vocabulary": (lambda place: f"{place[0]} {place[2] if place[0] in (0, 3) else ''}", 18, 40),
    "roots": (lambda place: f"{place[0]} {place[1] == 0}", 8, 60),
    "each its own": (str, 256, 256),
}


@pytest.mark.parametrize("name", WORKS)
def test_every_rank_gets_its_class(name: str):
    work, classes, most = WORKS[name]
    found, recorded = chosen(CUBE, work)
    assert len(found) == classes
    assert sorted(rank for ranks in found.values() for rank in ranks) == list(range(256))
    assert all(work(CUBE.coordinates(rank)) == same for same, ranks in found.items() for rank in ranks)
    assert len(recorded) <= most


def test_a_long_dimension_is_not_recorded_whole():
    line = Mesh((Dimension("dp", 4096, 1),))
    found, recorded = chosen(line, lambda place: "few" if place[0] < 100 else "many")
    assert len(found["few"]) == 100
    assert len(recorded) < 120


def odd(work: Work, mesh: Mesh = CUBE, pipelines: tuple[str, ...] = ("pp",)) -> dict[int, str]:
    classes: dict[str, list[int]] = {}
    for rank in range(mesh.size):
        classes.setdefault(work(mesh.coordinates(rank)), []).append(rank)
    found = odd_ranks({ranks[0]: ranks for ranks in classes.values()}, mesh, pipelines)
    return {rank: dimension for rank, (_, dimension) in found.items()}


@pytest.mark.parametrize("name", WORKS)
def test_what_is_so_by_design_is_not_odd(name: str):
    work, *_ = WORKS[name]
    assert odd(work) == {}


@pytest.mark.parametrize("name", [name for name in WORKS if name != "each its own"])
@pytest.mark.parametrize("rank", [1, 37, 100, 255])
def test_one_that_differs_is_named(name: str, rank: int):
    work, *_ = WORKS[name]
    assert rank in odd(lambda place: "odd" if CUBE.rank(place) == rank else work(place))


def test_one_of_a_few_is_named():
    for size in (2, 3, 4):
        line = Mesh((Dimension("world", size, 1),))
        assert list(odd(lambda place: str(place == (1,)), line, ())) == [1]


def test_the_stages_of_a_lone_pipeline_are_not_odd():
    line = Mesh((Dimension("pp", 8, 1),))
    assert odd(lambda place: {0: "first", 7: "last"}.get(place[0], "middle"), line) == {}


def test_a_message_waits_for_its_reader(tmp_path: Path):
    waited: list[int] = []
    box = Mailbox(tmp_path, lambda peer: (waited.append(peer), Mailbox(tmp_path).put(("pp", 0, 1, 0), [1, "two"]))[0])
    assert box.take(("pp", 0, 1, 0), 3) == [1, "two"]
    assert box.take(("pp", 0, 1, 0), 3) == [1, "two"]  # and for the next one
    assert waited == [3]
