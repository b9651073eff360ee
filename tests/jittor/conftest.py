"""Small models on real Jittor. This folder runs in the lane `jittor` only."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import jittor as jt
import pytest
from small_models import numbers


@pytest.fixture(autouse=True)
def left_as_it_was() -> Iterator[None]:
    """Whatever a test does, opscope puts back every switch it touched."""

    def state():
        flags = {name: getattr(jt.flags, name) for name in ("trace_py_var", "trace_var_data", "profiler_enable")}
        return flags, sys.getprofile(), sys.argv, sys.path, list(sys.meta_path), jt.dump_trace_data, jt.clear_trace_data

    before = state()
    yield
    assert state() == before
    data = jt.dump_trace_data()
    jt.clear_trace_data()
    assert data == {"node_data": {}, "execute_op_info": {}}


@pytest.fixture
def x() -> jt.Var:
    return jt.array(numbers(5, 4)).sync()
