"""Facts, enumerations and dtypes: declared once, the same in Python, in files and in the page."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import opscope
from conftest import DATA
from opscope.analysis.costs.sizes import value_bytes
from opscope.export.frames import frame
from opscope.export.megengine.rows import activation_row, param_row
from opscope.ir import Capture, GraphBuilder, InvalidGraph, Pools, Stage, Table, column, dtypes, frozen, verify_capture
from opscope.ir.cut import cut_capture

VIEWER = Path(__file__).parent.parent / "viewer"

# As the frameworks themselves spell their dtypes, with the bits of one element.
SPELLED = {
    "torch": {
        "torch.float32": 32, "torch.float64": 64, "torch.float16": 16, "torch.bfloat16": 16, "torch.float8_e4m3fn": 8,
        "torch.float8_e4m3fnuz": 8, "torch.float8_e5m2": 8, "torch.float8_e5m2fnuz": 8, "torch.float8_e8m0fnu": 8,
        "torch.float4_e2m1fn_x2": 8, "torch.uint8": 8, "torch.uint16": 16, "torch.uint32": 32, "torch.uint64": 64,
        "torch.int8": 8, "torch.int16": 16, "torch.int32": 32, "torch.int64": 64, "torch.bool": 8,
        "torch.complex32": 32, "torch.complex64": 64, "torch.complex128": 128, "torch.qint8": 8, "torch.quint8": 8,
        "torch.qint32": 32, "torch.quint4x2": 4, "torch.quint2x4": 2, "torch.int1": 1, "torch.uint7": 7,
        "torch.bits8": 8, "torch.bits16": 16, "torch.bits1x8": 8,
    },
    "paddle": {
        "paddle.float32": 32, "paddle.bfloat16": 16, "paddle.float8_e4m3fn": 8, "paddle.float8_e5m2": 8,
        "paddle.complex64": 64, "paddle.bool": 8, "paddle.int64": 64, "float16": 16,
    },
    "jittor": {"float32": 32, "float64": 64, "int32": 32, "bool": 8, "uint8": 8, "float16": 16, "int64": 64},
    "hidet": {"float32": 32, "tfloat32": 32, "int4b": 4, "uint1b": 1, "boolean": 8, "float16x2": 32, "int8x4": 32},
    "megengine": {"float32": 32, "qint8": 8, "quint4": 4, "qint4": 4, "qint1": 1, "QuantizedS8": 8},
    "onnx": {
        "tensor(float)": 32, "FLOAT": 32, "DOUBLE": 64, "FLOAT16": 16, "BFLOAT16": 16, "INT4": 4, "UINT4": 4, "BOOL": 8,
        "FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8, "FLOAT8E5M2FNUZ": 8, "FLOAT4E2M1": 4, "COMPLEX64": 64,
        "FLOAT8E8M0": 8, "INT2": 2, "UINT2": 2,
    },
    "jax": {
        "f32": 32, "bf16": 16, "s8": 8, "u4": 4, "pred": 8, "c64": 64, "f8e4m3fn": 8, "f8e4m3b11fnuz": 8,
        "float8_e3m4": 8, "float4_e2m1fn": 4, "int2": 2,
    },
}  # fmt: skip
CASES = [(name, bits) for names in SPELLED.values() for name, bits in names.items()]


@pytest.mark.parametrize(("name", "bits"), CASES)
def test_every_dtype_has_the_same_bits_everywhere(name: str, bits: int) -> None:
    """In stats of both styles, in the tables that Parquet gets, and (below) in the page."""
    assert dtypes.bits_of(name) == bits
    b = GraphBuilder(Pools())
    b.input(b.pools.type(name, (2, 4)))
    graph = b.freeze()
    assert value_bytes(graph).tolist() == [bits]
    values = frame(Capture(pools=b.pools, stages=[Stage("graph", graph)]), "values")
    assert values["bytes"].values.tolist() == [bits]
    assert param_row("x", name, (2, 4), 8, "", "")["nbits"] == activation_row("x", "", name, (2, 4), 8)["nbits"] == bits


def test_unknown_dtypes_are_unknown() -> None:
    assert dtypes.bits_of("posit16") is None
    assert dtypes.bits_of("") is None
    assert dtypes.bits_of("string") is None
    assert dtypes.bytes_of("int4", 3) == 2


def test_no_spelling_means_two_dtypes() -> None:
    spelled = [word for line in dtypes.TABLE.strip().splitlines() for word in [line.split()[0], *line.split()[3:]]]
    assert len(spelled) == len(set(spelled))


def test_the_constants_of_the_page_are_generated_from_these() -> None:
    """`make viewer` writes them."""
    generated = runpy.run_path(str(VIEWER / "facts.py"))["text"]()
    assert (VIEWER / "src" / "wire" / "facts.ts").read_text(encoding="utf-8") == generated


def small(table: Table) -> Capture:
    b = GraphBuilder(Pools())
    x = b.input(b.pools.type("float32", (2,)), name="x")
    for phase in ("forward", "backward"):
        b.output(b.node("relu", [x], phase=phase), b.pools.type("float32", (2,)))
    graph = b.freeze()
    return Capture(b.pools, [Stage("a", graph), Stage("b", graph, after=0)], tables={"t": table})


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (Table(0, "value", frozen([0]), {"time": column(np.ones(1), "s")}, "times"), "times are by node or scope"),
        (Table(0, "node", frozen([0]), {}, "times"), "times have a column 'time', which is missing"),
        (Table(0, "node", frozen([0]), {"time": column(np.ones(1), "h")}, "times"), "has the unit 'h'"),
        (Table(0, "node", frozen([7]), {"time": column(np.ones(1), "s")}, "times"), "is 7, outside"),
        (
            Table(
                1,
                "row",
                frozen([0]),
                {
                    "class": column(np.array([99])),
                    "before": column([[0]]),
                    "after": column([[9]]),
                    "evidence": column(np.array([0])),
                    "detail": column(["x"]),
                },
                "changes",
            ),
            "outside 0 to 7; table 't': column 'after': node 0 is 9",
        ),
    ],
)
def test_a_fact_that_does_not_fit_is_refused_in_words(table: Table, problem: str) -> None:
    with pytest.raises(InvalidGraph) as refused:
        verify_capture(small(table))
    for part in problem.split("; "):
        assert part in str(refused.value)


def test_a_cut_maps_every_number_of_a_fact() -> None:
    changes = {
        "class": column(np.array([0, 1], dtype=np.int8)),
        "before": column([[0, 1], [0]]),
        "after": column([[1], []]),
        "evidence": column(np.array([0, 0], dtype=np.int8)),
        "detail": column(["one", "two"]),
    }
    capture = small(Table(1, "row", frozen([0, 1]), changes, "changes"))
    part = cut_capture(capture, lambda graph: np.array([False, True]))
    verify_capture(part)
    table = part.tables["t"]
    assert (table.columns["before"].values, table.columns["after"].values) == ([[0]], [[0]])
    assert table.columns["detail"].values == ["one"]


@pytest.mark.parametrize("name", ["breaks-v1", "joint-v1"])
def test_files_of_version_1_say_the_same(name: str) -> None:
    older = opscope.open(DATA / "older" / f"{name}.opscope")
    newer = opscope.open(DATA / "page" / f"{name.removesuffix('-v1')}.opscope")
    assert older.text() == newer.text()
    for before, after in zip(older.stages, newer.stages, strict=True):
        assert {kind: one.node.tolist() for kind, one in before.listings.items()} == {
            kind: one.node.tolist() for kind, one in after.listings.items()
        }
    if name == "breaks-v1":
        assert any(table.fact == "breaks" for table in older.tables.values())
