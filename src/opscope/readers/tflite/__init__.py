"""TensorFlow Lite models (.tflite, LiteRT), read without TensorFlow: subgraphs, signatures, options, quantization."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np

from opscope.errors import BadInput, of_file
from opscope.ir import NULL, Capture, Column, Graph, GraphBuilder, Origin, Pools, Stage, Table, column
from opscope.ir.capture import named_apart
from opscope.ir.columns import frozen
from opscope.ir.measurements import Figures, figures_table
from opscope.ir.pools import Dim, clean
from opscope.ir.tally import figures_of
from opscope.readers.pages import Pages, Span, Whole, mapped
from opscope.readers.source import Options, Source

from . import flat
from .options import attributes, operators

NAME = "tflite"
_MAGIC = b"TFL3"
_MOST_SUBGRAPHS = 10_000
_MOST_BODIES = 30_000
_DEEPEST = 30
_MOST_PARTS = 40
_PIECE = 1 << 22
_DTYPES = {
    0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 5: "string", 6: "bool", 7: "int16",
    8: "complex64", 9: "int8", 10: "float64", 11: "complex128", 12: "uint64", 13: "resource", 14: "variant",
    15: "uint32", 16: "uint16", 17: "int4", 18: "bfloat16", 19: "int2", 20: "uint4",
}  # fmt: skip
# What operators call their inputs, where a formula asks for them.
_ARGUMENTS = {
    "CONV_2D": ("input", "filter", "bias"), "DEPTHWISE_CONV_2D": ("input", "filter", "bias"),
    "CONV_3D": ("input", "filter", "bias"), "FULLY_CONNECTED": ("input", "weights", "bias"),
    "TRANSPOSE_CONV": ("output_shape", "weights", "input", "bias"), "BATCH_MATMUL": ("lhs", "rhs"),
    "CONV_3D_TRANSPOSE": ("output_shape", "weights", "input", "bias"), "GATHER": ("params", "indices"),
    "EMBEDDING_LOOKUP": ("lookup", "values"), "GATHER_ND": ("params", "indices"),
}  # fmt: skip
_INNER = ("then_subgraph_index", "else_subgraph_index", "cond_subgraph_index", "body_subgraph_index",
          "init_subgraph_index", "decomposition_subgraph_index", "subgraph")  # fmt: skip


class _Weight(NamedTuple):
    value: int
    dtype: str
    elements: int | None
    span: Span


def match(source: Source) -> bool:
    return source.head[4:8] == _MAGIC


def read(source: Source, options: Options) -> Capture:
    with mapped(source) as (data, size):
        try:
            model = _Model(flat.Buffer(data, size).root(), size)
            capture = model.capture()
        except BadInput as error:
            raise of_file(error, source.name, "not a readable TensorFlow Lite model") from None
        if options.weights:
            _add_statistics(capture, data, model.weights)
    return capture


class _Model:
    def __init__(self, root: flat.Table, size: int) -> None:
        self.pools = Pools()
        self.version, self.description = root.get(0, "I"), root.text(3)
        self.codes: list[str] = [_op_name(code) for code in root.tables(1)]
        self.buffers: list[Span | None] = [_data(buffer, size) for buffer in root.tables(4)]
        self.subgraphs = list(root.tables(2))
        if len(self.subgraphs) > _MOST_SUBGRAPHS:
            raise BadInput(f"{len(self.subgraphs):,} subgraphs; {_MOST_SUBGRAPHS:,} are the most")
        self.signatures = [_signature(one) for one in root.tables(7)]
        self.warnings: list[str] = []
        self.weights: list[_Weight] = []  # of the first subgraph
        self.quantized: list[tuple[int, list[float], list[int]]] = []
        self._built: dict[int, Graph | None] = {}
        self._counts: dict[int, int] = {}
        self.taken = 0
        self.used: set[int] = set()  # subgraphs that are bodies

    def capture(self) -> Capture:
        if not self.subgraphs:
            raise BadInput("it has no subgraph. Convert it again")
        graphs = [self.graph(number, 0) for number in range(len(self.subgraphs))]
        tops = [n for n in range(len(graphs)) if n == 0 or n not in self.used]
        stages = [
            Stage(
                self._title(number),
                graph,
                listings={"native": self._metadata()} if number == 0 else {},
                warnings=tuple(self.warnings) if number == 0 else (),
            )
            for number in tops
            if (graph := graphs[number]) is not None
        ]
        origin = Origin(NAME, NAME, clean(f"schema {self.version}"), "file")
        capture = Capture(self.pools, named_apart(stages), origin=origin)
        if self.weights:
            capture.tables["weights in the file"] = Table(
                0,
                "value",
                frozen([weight.value for weight in self.weights]),
                {
                    "offset": column(np.array([weight.span.at for weight in self.weights], dtype=np.int64)),
                    "size": column(np.array([weight.span.size for weight in self.weights], dtype=np.int64), "B"),
                },
            )
        if self.quantized:
            capture.tables["quantization"] = _quantization(self.quantized)
        return capture

    def _title(self, number: int) -> str:
        name = self.subgraphs[number].text(4) or ("main" if not number else f"subgraph {number}")
        keys = [key for key, index, _ in self.signatures if index == number]
        return clean(f"{name} ({', '.join(keys)})" if keys else name)[:200]

    def _metadata(self) -> str:
        lines = [f"version: {self.version}", f"description: {self.description}"]
        for key, index, names in self.signatures:
            lines.append(f"signature {key} of subgraph {index}: {names}")
        return clean("\n".join(lines))[:100_000]

    def graph(self, number: int, depth: int) -> Graph | None:
        """A subgraph, built once; None for one that holds itself."""
        if depth > _DEEPEST:
            raise BadInput(f"subgraphs are nested more than {_DEEPEST} deep")
        if number not in self._built:
            self._built[number] = None
            self._built[number] = _Subgraph(self, number, depth).build()
        return self._built[number]

    def take(self, graph: Graph) -> None:
        count = 1 + sum(self._counts.get(id(body.graph), 0) for body in graph.bodies)
        self._counts[id(graph)] = count
        self.taken += count
        if self.taken > _MOST_BODIES:
            raise BadInput(f"subgraphs in subgraphs: more than {_MOST_BODIES:,} in all")


class _Subgraph:
    def __init__(self, model: _Model, number: int, depth: int) -> None:
        self.model, self.number, self.depth = model, number, depth
        self.table = model.subgraphs[number]
        self.b = GraphBuilder(model.pools)

    def build(self) -> Graph:
        b = self.b
        tensors = list(self.table.tables(0))
        given: list[int] = self.table.numbers(1, "i")
        values: list[int] = []
        names: list[str] = []
        for number, tensor in enumerate(tensors):
            values.append(self._tensor(tensor, number in given))
            names.append(tensor.text(3))
        b.inputs += dict.fromkeys(values[i] for i in given if 0 <= i < len(values))  # a damaged file repeats some
        made: set[int] = set()
        for operator in self.table.tables(3):
            self._operator(operator, values, names, made)
        b.outputs += [values[i] for i in self.table.numbers(2, "i") if 0 <= i < len(values)]
        return b.freeze()

    def _tensor(self, tensor: flat.Table, is_input: bool) -> int:
        model = self.model
        shape = _shape(tensor)
        dtype = _DTYPES.get(tensor.get(1, "b"), "")
        number: int = tensor.get(2, "I")
        span: Span | None = model.buffers[number] if number < len(model.buffers) else None
        role = "input" if is_input else "activation"
        if span is not None and span.size and not is_input:
            role = _role(dtype, shape)
        elif tensor.get(5, "?", False):
            role = "state"
        value = self.b.value(model.pools.type(dtype, shape), name=tensor.text(3), role=role)
        if span is not None and span.size and self.number == 0:
            known = [size for size in shape if isinstance(size, int)] if shape is not None else []
            count = int(np.prod(known, dtype=object)) if shape is not None and len(known) == len(shape) else None
            model.weights.append(_Weight(value, dtype, count, span))
        quantization = tensor.table(4)
        if quantization is not None and self.number == 0:
            scales, points = quantization.numbers(2, "f"), quantization.numbers(3, "q")
            if scales:
                model.quantized.append((value, scales, points))
        return value

    def _operator(self, operator: flat.Table, values: list[int], names: list[str], made: set[int]) -> None:
        b, model = self.b, self.model
        code: int = operator.get(0, "I")
        op = model.codes[code] if code < len(model.codes) else f"operator code {code}"
        read: list[int] = operator.numbers(1, "i")
        inputs: list[int] = [values[i] if 0 <= i < len(values) else NULL for i in read]
        outputs: list[int] = [i for i in operator.numbers(2, "i") if 0 <= i < len(values)]
        called = _ARGUMENTS.get(op, ())[: len(inputs)]
        args = [*called, *(str(i) for i in range(len(called), len(inputs)))]
        name = names[outputs[0]] if outputs else ""
        attrs = attributes(operator)
        node = b.node(
            op, inputs, args=args, name=name, scope=scope_of(model.pools, name), attrs=_plain(attrs), phase="forward"
        )
        for output in outputs:
            if output in made or values[output] in b.inputs:  # written a second time
                values[output] = b.output(node, 0, name=names[output])
            else:
                b.produce(node, values[output])
            made.add(output)
        for key in _INNER:
            index = attrs.get(key)
            if isinstance(index, int) and 0 <= index < len(model.subgraphs):
                inner = model.graph(index, self.depth + 1)
                if inner is None:
                    continue
                model.take(inner)
                model.used.add(index)
                shift = 1 if op == "IF" else 0
                pairs = zip(inner.inputs.tolist(), inputs[shift:], strict=False)
                b.body(node, key.removesuffix("_subgraph_index"), inner, [(i, o) for i, o in pairs if o != NULL])


def scope_of(pools: Pools, name: str) -> int:
    """`net/conv/Relu` lies in net/conv; of operators that were fused, the first names the place."""
    first = re.split(r"[;:]", name)[0]
    parts = [part for part in first.split("/") if part][:-1]
    scope = 0
    for part in parts if len(parts) < _MOST_PARTS else ():
        scope = pools.scope(scope, part)
    return scope


def _op_name(code: flat.Table) -> str:
    number = max(code.get(0, "b"), code.get(3, "i"))
    name = operators().get(number, f"operator {number}")
    return code.text(1) or name if name == "CUSTOM" else name


def _data(buffer: flat.Table, size: int) -> Span | None:
    """What a buffer holds: in the table, or behind it where the file is larger than two gigabytes."""
    at, length = buffer.get(1, "Q"), buffer.get(2, "Q")
    if at > 1 and length and at + length <= size:
        return Span(at, length)
    return buffer.span(0)


def _signature(table: flat.Table) -> tuple[str, int, str]:
    inputs, outputs = (", ".join(one.text(0) for one in table.tables(slot)) for slot in (0, 1))
    return table.text(2), table.get(4, "I"), f"({inputs}) -> ({outputs})"


def _shape(tensor: flat.Table) -> tuple[Dim, ...] | None:
    """The signature says which sizes are open."""
    sizes = tensor.numbers(0, "i")
    signature = tensor.numbers(7, "i")
    if len(signature) == len(sizes):
        sizes = [-1 if told < 0 else size for told, size in zip(signature, sizes, strict=True)]
    if not sizes and not tensor.place(0) and not tensor.get(8, "?", False):
        return None
    return tuple(size if size >= 0 else None for size in sizes)


def _role(dtype: str, shape: tuple[Dim, ...] | None) -> str:
    """Numbers that were learned are parameters; indices and single numbers constants."""
    several = shape is not None and any(size != 1 for size in shape)
    if dtype in ("float32", "float16", "bfloat16", "float64", "int8", "int4", "int2", "uint4") and several:
        return "parameter"
    return "constant"


def _plain(attrs: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _shortened(cast("list[Any]", value)) if isinstance(value, list) else value
        for name, value in attrs.items()
    }


def _shortened(items: list[Any]) -> list[Any]:
    return items if len(items) <= 64 else [*items[:64], f"… {len(items) - 64:,} more"]


def _quantization(found: list[tuple[int, list[float], list[int]]]) -> Table:
    """Scale and zero point; of tensors with one for each channel the first, and how many there are."""
    points = [row[2][0] if row[2] else 0 for row in found]
    return Table(
        0,
        "value",
        frozen([row[0] for row in found]),
        {
            "scale": column(np.array([row[1][0] for row in found], dtype=np.float64)),
            "zero point": Column(np.array(points, dtype=np.int64), np.array([bool(row[2]) for row in found])),
            "scales": column(np.array([len(row[1]) for row in found], dtype=np.int64)),
        },
    )


def _add_statistics(capture: Capture, data: Pages | Whole, weights: list[_Weight]) -> None:
    found: dict[int, Figures] = {}
    for weight in weights:
        figures = figures_of(_pieces(data, weight.span), weight.dtype, weight.elements)
        if figures is not None:
            found[weight.value] = figures
    if found:
        capture.add(figures_table(0, found))


def _pieces(data: Pages | Whole, span: Span) -> Iterator[bytes]:
    for at in range(span.at, span.at + span.size, _PIECE):
        yield data[at : min(at + _PIECE, span.at + span.size)]
