"""Tables of the command line: the user's own lines, and columns that stand under each other whatever the language."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

import opscope
from commands import run
from opscope.ir import Capture, Frame, GraphBuilder, Origin, Pools, Stage
from opscope.ir.places import is_framework, users_frame
from opscope.ir.widths import cut, left, width


def cells(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@pytest.fixture
def chinese(tmp_path: Path) -> Path:
    """Linear layers with Chinese names, called from a user's line inside a framework's."""
    pools = Pools()
    b = GraphBuilder(pools)
    value = b.input(pools.type("float32", (2, 4)), name="图像")
    for name, cls, line in (("编码器", "编码", 7), ("head", "Linear", 9)):
        weight = b.value(pools.type("float32", (4, 4)), name=f"{name}.weight", role="parameter")
        stack = pools.stack(
            [
                Frame("/home/me/train.py", line, "<module>"),
                Frame("/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", 134, "forward"),
            ]
        )
        scope = pools.scope(0, name, cls)
        node = b.node("aten.mm", [value, weight], scope=scope, stack=stack, phase="forward")
        value = b.output(node, pools.type("float32", (2, 4)))
    b.outputs.append(value)
    path = tmp_path / "zh.opscope"
    opscope.Capture.of(Capture(pools, [Stage("模型", b.freeze())], origin=Origin("", "torch", "2", "record"))).save(
        path
    )
    return path


def test_ir_and_find_show_the_users_line(chinese: Path):
    printed = run("ir", str(chinese)).stdout
    assert "me/train.py:7" in printed
    assert "linear.py" not in printed
    found = json.loads(run("find", str(chinese), "--json", "scope:head").stdout)["nodes"]
    assert [(row["file"], row["line"]) for row in found] == [("/home/me/train.py", 9)]


def test_columns_stand_under_each_other(chinese: Path):
    first, second = run("ir", str(chinese)).stdout.splitlines()[1:3]
    assert cells(first.partition("me/train.py")[0]) == cells(second.partition("me/train.py")[0])
    table = run("stats", str(chinese)).stdout.splitlines()
    rows = [line for line in table if "█" in line]
    assert len(rows) == 2
    assert len({cells(line.partition("█")[0].rstrip()) for line in rows}) == 1


def test_where_all_is_the_frameworks_the_innermost_line_is_shown():
    inside = [Frame("/v/site-packages/torch/a.py", 1, "f"), Frame("/v/site-packages/torch/b.py", 2, "g")]
    assert users_frame(inside) == inside[1]
    assert users_frame([]) is None
    assert not is_framework("/v/site-packages/torchvision/models/resnet.py")


def test_width():
    assert [width(text) for text in ("conv", "编码器", "e\u0301", "ｆ")] == [4, 6, 1, 2]
    assert left("编", 4) == "编  "
    assert cut("编码器", 4) == "编…"
    assert cut("编码器", 6) == "编码器"
