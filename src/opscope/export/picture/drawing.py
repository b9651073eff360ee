"""The page's own layout and SVG writer (viewer/src/headless.ts), run in V8 through mini-racer."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opscope import wire
from opscope.analysis.annotate import annotate
from opscope.errors import OpscopeError
from opscope.export import edge_words, page
from opscope.export.registry import Look, Options
from opscope.ir import PHASES, Capture, Stage

if TYPE_CHECKING:
    from py_mini_racer import MiniRacer

# As many boxes as a person still takes in on one sheet; more are drawn only when asked for.
READABLE = 250

# Room for what is young: a large picture is made of millions of short-lived texts.
_FLAGS = ("--min-semi-space-size=64", "--max-semi-space-size=64")

_ADDRESSES = 1_600_000_000_000  # measured: 1.53 TB, nearly all of it for V8's sandbox

# Everything has been done when this returns: nothing in it waits for anything but itself.
_DRAW = """
opscope.draw(bytes, %s).then(
  ({ svg, ...rest }) => { picture = svg; told = JSON.stringify(rest); },
  (error) => { told = JSON.stringify({ error: String(error) }); },
);
0
"""


@dataclass(frozen=True)
class Drawing:
    svg: str
    boxes: int
    all: int  # boxes with everything open
    depths: list[tuple[str, int]]  # of each phase: chosen here, so that the picture can be read
    unknown: list[str]  # scopes asked for that are not there
    closed: int = 0  # modules that stayed closed at the depth asked for: nobody could read what is inside


def draw(stage: Stage, capture: Capture, options: Options, look: Look) -> Drawing:
    wanted = {
        "stage": 0,
        "depth": options.depth,
        "whole": look.whole,
        "open": list(look.open),
        "phases": [PHASES.index(phase) for phase in look.phases],
        "direction": look.direction,
        "theme": look.theme,
        "title": stage.name,
        "most": READABLE,
        "edges": _edge_words(capture, stage, look),
        "parameters": look.parameters,
        "legend": look.legend,
        "play": look.play,
    }
    data = _stage_alone(capture, stage, costs=look.play)
    racer = _racer()
    try:
        with racer() as v8:
            v8.eval(page.asset("engine.js").decode("utf-8"))
            _into(v8, data)
            v8.eval(_DRAW % page.escaped_json(wanted))
            told: dict[str, Any] = json.loads(str(v8.eval("told")))
            if "error" in told:
                raise OpscopeError(f"the picture could not be drawn: {told['error']}")
            return Drawing(svg=str(v8.eval("picture")), **told)
    except OpscopeError:
        raise
    except Exception as error:  # V8's own: out of memory, a script that does not fit
        raise OpscopeError(f"the picture could not be drawn: {error}") from None


def _edge_words(capture: Capture, stage: Stage, look: Look) -> list[str] | None:
    number = next(i for i, other in enumerate(capture.stages) if other is stage)
    suiting = edge_words.suiting(capture, number) if stage.graph.n_nodes <= READABLE else ()
    words = suiting if look.edges is None else look.edges
    return edge_words.by_value(capture, number, words) if words else None


def _racer() -> type[MiniRacer]:
    try:
        from py_mini_racer import DEFAULT_V8_FLAGS, MiniRacer, init_mini_racer
    except ImportError:
        raise missing("V8 (mini-racer)") from None
    _refuse_narrow_memory()
    init_mini_racer(flags=(*DEFAULT_V8_FLAGS, *_FLAGS), ignore_duplicate_init=True)
    return MiniRacer


def _refuse_narrow_memory() -> None:
    """V8 sets aside far more addresses than it will ever use, and ends the process where it cannot."""
    if sys.platform == "win32":
        return
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY and most < _ADDRESSES:
        raise OpscopeError(
            f"pictures need {_ADDRESSES:,} bytes of address space, and this process is limited to {most:,}: lift the "
            "limit (`ulimit -v unlimited`; of memory itself little is used), or write a .dot, .mmd or .html"
        )


def missing(what: str) -> OpscopeError:
    return OpscopeError(f"pictures need {what}: pip install 'opscope[picture]'")


def _into(v8: MiniRacer, data: bytes) -> None:
    """The bytes into V8's memory as they are."""
    v8.eval(f"var picture = '', told = '{{}}', bytes = new Uint8Array({len(data)}); 0")
    room: Any = v8.eval("bytes.buffer")
    memoryview(room)[:] = data


def _stage_alone(capture: Capture, stage: Stage, costs: bool = False) -> bytes:
    """An .opscope file with this stage only and nothing that a picture does not show; not deflated."""
    alone = Capture(
        pools=capture.pools, stages=[dataclasses.replace(stage, after=None, listings={})], origin=capture.origin
    )
    out = io.BytesIO()
    wire.write(annotate(alone, costs=costs), out, packed=False)
    return out.getvalue()
