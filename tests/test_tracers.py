"""The contract of tracers, on the real ones (their frameworks are not needed for it) and on one made up."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

import pytest

import opscope
from opscope.ir import Capture, GraphBuilder, Pools, Stage
from opscope.tracers import frames, operators_so_far, registry, start_passes
from opscope.tracers.arguments import tensors_in
from opscope.tracers.contract import Options, Tracer
from opscope.tracers.session import Session

LOAD_ALL = """
import sys
from opscope.tracers import registry
for name in registry.FRAMEWORKS:
    registry.load(name)
print(*sys.modules.keys() & registry.FRAMEWORKS.keys())
"""


class Recording(Session):
    def __init__(self) -> None:
        self.restored = 0
        self.open()

    @property
    def count(self) -> int:
        return 3

    def finish(self) -> Capture:
        self.close()
        builder = GraphBuilder(Pools())
        builder.node("made_up", [])
        return Capture(builder.pools, [Stage("recorded", builder.freeze())])

    def restore(self) -> None:
        self.restored += 1


class MadeUp:
    """A tracer that keeps what it was asked for."""

    def __init__(self, **declared: Any) -> None:
        self.asked: list[Options] = []
        self.sessions: list[Recording] = []
        self.TRACER = Tracer("Made Up", ("auto", "record", "read"), self.trace, self.start, **declared)

    def trace(self, *given: Any, **options: Any) -> Capture:
        raise NotImplementedError

    def start(self, options: Options) -> Recording:
        self.asked.append(options)
        self.sessions.append(Recording())
        return self.sessions[-1]


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(**declared: Any) -> MadeUp:
        module = MadeUp(**declared)
        monkeypatch.setitem(sys.modules, "made_up_tracer", module)
        monkeypatch.setitem(registry.FRAMEWORKS, "made_up", registry.Framework("made_up_tracer", ("made_up",)))
        return module

    return install


def test_tracers_load_without_their_frameworks() -> None:
    assert subprocess.check_output([sys.executable, "-c", LOAD_ALL], text=True).split() == []


@pytest.mark.parametrize("name", registry.FRAMEWORKS)
def test_what_is_refused_is_an_option(name: str) -> None:
    tracer = registry.load(name)
    assert tracer.how[0] == "auto"
    assert ("record" in tracer.how) == bool(tracer.records)  # what is compiled whole has nothing to record
    assert set(tracer.refuses) <= {"values", "times", "steps"}
    assert set(tracer.runs_on) <= set(registry.FRAMEWORKS)


def test_the_options_arrive(made_up: Any) -> None:
    module, model = made_up(), object()
    with opscope.record(model, framework="made_up", values=True) as capture:
        assert operators_so_far() == 3
    (options,) = module.asked
    assert options.model is model
    assert (options.values, options.times, options.steps) == (True, False, None)
    assert options.caller.f_code.co_name == "test_the_options_arrive"
    assert [node.op for node in capture.graph.nodes] == ["made_up"]
    assert operators_so_far() == 0


def test_a_session_is_restored_once(made_up: Any) -> None:
    module = made_up()
    with pytest.raises(KeyError), opscope.record(framework="made_up"):
        raise KeyError
    (session,) = module.sessions
    session.abort()
    assert session.restored == 1


def test_what_a_framework_cannot_do_is_refused_before_anything_runs(made_up: Any) -> None:
    module = made_up(refuses={"values": "it has none"})
    with pytest.raises(opscope.OpscopeError, match=r"^values=True is not supported for Made Up: it has none$"):
        opscope.record(framework="made_up", values=True)
    with pytest.raises(opscope.OpscopeError, match=r"^how='read' captures a model, not a block of code"):
        opscope.record(framework="made_up", how="read")
    with pytest.raises(opscope.OpscopeError, match=r"^how='jit' is not a way to capture Made Up"):
        opscope.record(framework="made_up", how="jit")
    with pytest.raises(opscope.OpscopeError, match=r"cannot watch the passes of made_up \(it can for hidet\)"):
        start_passes("made_up")
    assert not module.asked


def test_megengine_has_no_values() -> None:
    message = "values=True is not supported for MegEngine: it computes tensors asynchronously"
    with pytest.raises(opscope.OpscopeError, match=message):
        opscope.record(framework="megengine", values=True)


def test_tensors_in_containers() -> None:
    given = {"a": 1, "b": [2, (3, {"c": 4})], "d": "text"}
    assert dict(tensors_in(int, given, "x")) == {"x.a": 1, "x.b[0]": 2, "x.b[1][0]": 3, "x.b[1][1].c": 4}
    assert dict(tensors_in(int, given, depth=1)) == {"a": 1}
    assert list(tensors_in(int, [1] * 5, "x", most=4)) == []


def test_no_garbage_is_collected_while_the_frames_of_threads_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 waits for itself if a collection begins in `sys._current_frames` and takes a threading.local."""
    seen: list[bool] = []
    monkeypatch.setattr(frames, "_current_frames", lambda: seen.append(gc.isenabled()) or {})
    frames.frames_by_thread()
    assert gc.isenabled()
    gc.disable()
    try:
        frames.frames_by_thread()
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert seen == [False, False]
