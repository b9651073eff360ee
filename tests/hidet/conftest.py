"""Real Hidet on the CPU. This folder runs in the lane `hidet` only; it has no __init__.py, which would make it a
package of the name `hidet`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hidet
import pytest
from hidet.graph.flow_graph import FlowGraph
from hidet.graph.nn.module import Module
from hidet.graph.operator import Operator
from hidet.graph.transforms.base import GraphPass

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    hidet.option.cache_dir(str(tmp_path_factory.mktemp("hidet-cache")))


@pytest.fixture(autouse=True)
def left_as_it_was() -> Iterator[None]:
    """Whatever a test captures, opscope leaves Hidet as it found it."""

    def state():
        owned = [(Operator, "__init__"), (Operator, "reforward"), (FlowGraph, "__init__"), (GraphPass, "__call__")]
        return [getattr(o, n) for o, n in [*owned, (Module, "__call__"), (Module, "flow_graph_for")]]

    before = state()
    yield
    assert state() == before
