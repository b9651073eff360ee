"""What JAX and XLA write: HLO as text and as proto, StableHLO, dump folders, profiles."""

from __future__ import annotations

import gzip
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import golden
import opscope
from conftest import DATA
from opscope.errors import BadInput
from opscope.ir import Graph
from opscope.readers.xla import mlir, proto
from opscope.readers.xla import text as hlo_text
from opscope.readers.xla.fields import Malformed, integer, integers, message, messages, raw, signed, text
from opscope.readers.xla.hlo import Module
from opscope.readers.xla.names import taken_apart
from opscope.readers.xla.scanning import unescaped

XLA = DATA / "xla"


@pytest.mark.parametrize("name", ["step.hlo.txt", "step.hlo.pb", "step.stablehlo.mlir"])
def test_files(name: str, overwrite: bool) -> None:
    golden.check(XLA / name, f"xla/{name}.txt", overwrite)


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("xla")
    with tarfile.open(XLA / "dump.tar.gz") as bundle:
        bundle.extractall(folder, filter="data")
    return folder / "dump"


def test_text_and_proto_say_the_same(dumped: Path) -> None:
    """All modules of a dump: every instruction, its attributes, its place, in both forms."""
    compared = 0
    for path in sorted(dumped.glob("*.hlo.pb")):
        written = path.with_name(path.name.replace(".hlo.pb", ".txt"))
        one, two = (
            proto.read_module(path.read_bytes(), path.name),
            hlo_text.read_module(iter(lines(written)), written.name),
        )
        assert set(one.computations) == set(two.computations)
        assert (one.entry, one.aliases) == (two.entry, two.aliases)
        assert opcodes(one) == opcodes(two)
        for name, computation in one.computations.items():
            others = {i.name: i for i in two.computations[name].instructions}
            for instruction in computation.instructions:
                other = others.get(instruction.name)
                if other is None:  # text leaves out the names of get-tuple-element
                    assert instruction.opcode == "get-tuple-element"
                    continue
                for field in ("opcode", "shape", "called", "attrs", "op_name", "place", "number", "control"):
                    assert getattr(instruction, field) == getattr(other, field), (path.name, instruction.name, field)
                compared += 1
    assert compared > 500


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def opcodes(module: Module) -> Counter[str]:
    return Counter(i.opcode for c in module.computations.values() for i in c.instructions)


def test_every_pass_of_a_dump_is_a_stage(dumped: Path) -> None:
    cap = opscope.open(dumped)
    passes = {path.name.split(".after_")[0] for path in dumped.iterdir() if ".after_" in path.name}
    assert len([stage for stage in cap.stages if stage.name[:4].isdigit()]) == len(passes)
    assert cap.stages[0].name == "before optimizations"
    assert cap.stages[-1].name.endswith("after optimizations")
    assert [stage.after for stage in cap.stages] == [None, *range(len(cap.stages) - 1)]
    graphs = {id(stage.graph) for stage in cap.stages}
    contents = {path.read_bytes() for path in dumped.glob("*.hlo.pb")}
    assert len(graphs) == len(contents) < len(cap.stages)
    for stage, path in (
        (cap.stages[0], "*before_optimizations.hlo.pb"),
        (cap.stages[-1], "*cpu_after_optimizations.hlo.pb"),
    ):
        (path,) = dumped.glob(path)
        expected = entry_counts(path.read_bytes())
        assert Counter(node.op for node in stage.graph.nodes) == expected


def entry_counts(data: bytes) -> Counter[str]:
    """The opcodes of the entry computation, read from the bytes alone."""
    module = message(data)
    if 2 not in module:
        module = message(raw(module[1]))
    entry = integer(module[6])
    for computation in map(message, messages(module[3])):
        if integer(computation[5]) == entry:
            found = Counter(text(message(part)[2]) for part in messages(computation[2]))
            return found - Counter({op: found[op] for op in ("parameter", "constant")})
    raise AssertionError("no entry")


def test_kernels_are_known_to_the_first_stage(dumped: Path) -> None:
    cap = opscope.open(dumped)
    first, last = cap.stages[0].graph, cap.stages[-1].graph
    fusions = [node for node in last.nodes if node.op == "fusion"]
    kernels = first.groups["kernel"]
    assert len(kernels) == len(fusions) > 0
    ops = {first.node(int(n)).op for i in range(len(kernels)) for n in kernels.members(i)}
    assert ops
    link = next(link for link in cap.stage_links if (link.before, link.after) == (0, len(cap.stages) - 1))
    assert link.evidence == "name"
    for source, target in zip(link.source.tolist(), link.target.tolist(), strict=True):
        lines_ = {first.node(source).frames[-1].line} if first.node(source).frames else set()
        assert not lines_ or lines_ & set(_lines_in(last, target))


def _lines_in(graph: Graph, node: int) -> Iterator[int]:
    handle = graph.node(node)
    yield from (frame.line for frame in handle.frames[-1:])
    for body in handle.bodies:
        for inner in body.graph.nodes:
            yield from (frame.line for frame in inner.frames[-1:])
            yield from _lines_in(body.graph, inner.index)


def test_buffers_and_lines(dumped: Path) -> None:
    cap = opscope.open(dumped)
    table = cap.tables["buffer assignment"]
    graph = cap.stages[table.stage].graph
    sizes = dict(zip(table.index.tolist(), table.columns["size"].values.tolist(), strict=True))
    for value, size in sizes.items():
        type_ = graph.value(value).type
        assert type_.elements is not None
        assert size == type_.elements * {"float32": 4, "int32": 4, "bool": 1}[type_.dtype]
    assert len(sizes) > 5
    listing = cap.stages[-1].listings["native"].splitlines()
    from opscope.ir.listings import lines_of

    for line, node in lines_of(cap, len(cap.stages) - 1, "native"):
        assert cap.stages[-1].graph.node(node).name in listing[line - 1]


def test_a_training_step_costs_what_it_costs() -> None:
    for name in ("step.hlo.txt", "step.stablehlo.mlir"):
        stats = opscope.open(XLA / name).stats()
        forward = 6 * 8 * 16 + 6 * 16 * 4
        assert stats.total.macs == forward + (6 * 16 * 4 * 2 + 6 * 8 * 16)  # the input needs no gradient
        assert not stats.unknown_ops


def test_a_profile_alone_and_joined() -> None:
    cap = opscope.open(XLA / "h200.xplane.pb.gz")
    assert cap.stages[0].name == "jit_loss(9280)"
    (profile,) = cap.facts("profile", 0)
    assert int(profile.columns["kernels"].values.sum()) == 76
    (times,) = cap.facts("times", 0)
    ops = Counter(cap.graph.node(int(node)).op for node in times.index)
    assert ops == {"fusion": 73, "custom-call": 3}
    assert times.columns["time"].values.sum() == pytest.approx(331_072)
    with pytest.raises(BadInput, match="of another program"):
        opscope.open(XLA / "step.hlo.pb", profile=XLA / "h200.xplane.pb.gz")
    with pytest.raises(BadInput, match="not a profile of JAX"):
        opscope.open(XLA / "step.hlo.pb", profile=XLA / "step.hlo.txt")


@pytest.mark.parametrize(
    ("name", "scopes", "phase"),
    [
        ("jit(loss)/jvp(layer0)/attn/dot_general", ["loss", "layer0", "attn"], "forward"),
        ("jit(loss)/transpose(jvp(layer0))/attn/jit(_var)/sub", ["loss", "layer0", "attn", "_var"], "backward"),
        ("jit(f)/jit(main)/while/body/closed_call/add", ["f"], ""),
        ("jit(f)/transpose(jvp(f))/rematted_computation/block/sin", ["f", "f", "block"], "recompute"),
        ("ps[0]['qkv']", [], ""),
        ("a/b->c,d/einsum", ["a", "b->c,d"], ""),
    ],
)
def test_names(name: str, scopes: list[str], phase: str) -> None:
    found = taken_apart(name)
    assert ([part.name for part in found.scopes], found.phase) == (scopes, phase)


BAD = [
    ("HloModule m\n\nENTRY e {\n  x = f32[2] parameter(0)\n", "cut off"),
    ("HloModule m\n\nENTRY e {\n  ROOT y = f32[2] add(x, x)\n}\n", "reads 'x'"),
    ("HloModule m\n\nENTRY e {\n  what is this\n}\n", "line 4: not an HLO instruction"),
    ("HloModule m\n", "without a computation"),
    ("HloModule m\n\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT c = f32[2] call(x), to_apply=e\n}\n", "calls itself"),
    (
        "HloModule m\n\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT c = f32[2] call(x), to_apply=g\n}\n",
        "not in the module",
    ),
    (
        "HloModule m\n\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT c = f32[2] get-tuple-element(x), index=1\n}\n",
        "a part",
    ),
    (
        "module @m {\n  func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n    return %b : f32\n  }\n}\n",
        "%b",
    ),
    ("module @m {\n  func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n", "cut off"),
    ("module @m {\n  // stablehlo.add\n}\n", "without a function"),
]


@pytest.mark.parametrize(("content", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_text_is_one_line(content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadInput) as error:
        opscope.open(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_bad_protos_are_one_line(tmp_path: Path) -> None:
    whole = (XLA / "step.hlo.pb").read_bytes()
    path = tmp_path / "cut.hlo.pb"
    for size in (40, 500, 5000, len(whole) - 7):
        path.write_bytes(whole[:size])
        with pytest.raises(BadInput) as error:
            opscope.open(path)
        assert "\n" not in str(error.value)
    profile = gzip.decompress((XLA / "h200.xplane.pb.gz").read_bytes())
    path.write_bytes(profile[: len(profile) // 2])
    with pytest.raises(BadInput):
        opscope.open(path)


def test_the_wire_format() -> None:
    assert message(b"\x08\x96\x01\x12\x02hi\x12\x01!") == {1: [150], 2: [b"hi", b"!"]}
    assert signed(integer([(1 << 64) - 3])) == -3
    assert integers([b"\x01\x96\x01", 7]) == [1, 150, 7]
    for bad in (b"\x12\x05hi", b"\x08" + b"\xff" * 11, b"\x0b", b"\x09\x00", b"\x08"):
        with pytest.raises(Malformed):
            message(bad)


def test_names_of_files_may_hold_any_letters() -> None:
    assert unescaped(r"/\E7\A9\BA \E6\A0\BC/a\\b\22.py") == '/空 格/a\\b".py'
    assert unescaped(r"/\347\251\272/ps[0][\'w\'].py", in_c=True) == "/空/ps[0]['w'].py"


def test_stablehlo_of_any_dialect_is_read() -> None:
    source = """
    module @m {
      func.func public @main(%arg0: tensor<2x?xf32>, %arg1: tensor<i32>) -> (tensor<2xf32>) {
        %0:2 = "my.thing"(%arg0) <{a = 1 : i32, s = "x : y -> z"}> ({
        ^bb0(%b: tensor<f32>):
          my.yield %b : tensor<f32>
        }) : (tensor<2x?xf32>) -> (tensor<2xf32>, tensor<?x!quant.uniform<i8:f32, 0.5>>)
        %1 = "stablehlo.case"(%arg1) ({
          stablehlo.return %0#0 : tensor<2xf32>
        }, {
          %2 = stablehlo.negate %0#0 : tensor<2xf32>
          stablehlo.return %2 : tensor<2xf32>
        }) : (tensor<i32>) -> tensor<2xf32>
        return %1, %0#1 : tensor<2xf32>, tensor<?x!quant.uniform<i8:f32, 0.5>>
      }
    }"""
    module = mlir.read_module(iter(source.splitlines()), "m.mlir")
    ops = Counter(i.opcode for i in module.computations["main"].instructions if i.number < 0)
    assert ops == {"my.thing": 1, "stablehlo.case": 1}
    from opscope.ir import Pools
    from opscope.readers.xla.build import Builder

    graph = Builder(Pools()).graph(module, "m")
    case = next(node for node in graph.nodes if node.op == "stablehlo.case")
    assert [body.label for body in case.bodies] == ["branch 0", "branch 1"]
    assert str(graph.value(int(graph.outputs[1])).type) == "qint8[?]"
