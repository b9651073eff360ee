"""Writes tests/data/onnx: real files of the real exporters, small, with nothing of the machine that made them.

python tests/formats/make_onnx.py        (in the lane "formats")
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper, parser
from onnxruntime import quantization

sys.path.insert(0, str(Path(__file__).parent))
from models import MODELS, Made, small_attention

OUT = Path(__file__).parents[1] / "data" / "onnx"
# Folders of this machine, up to what is the same everywhere.
_PATHS = re.compile(r'File "[^"]*?((?:torch|transformers)/[^"]*|[^"/]*)"')


def exported(make: Callable[[], Made], **more: Any) -> onnx.ModelProto:
    torch.manual_seed(0)
    model, inputs = make()
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        program = torch.onnx.export(model.eval(), inputs, dynamo=True, **more)
    assert program is not None
    return cleaned(program.model_proto)


def cleaned(model: onnx.ModelProto) -> onnx.ModelProto:
    for node in model.graph.node:
        for entry in node.metadata_props:
            entry.value = _PATHS.sub(r'File "\1"', entry.value)
    return model


def old(make: Callable[[], Made]) -> onnx.ModelProto:
    torch.manual_seed(0)
    model, inputs = make()
    out = io.BytesIO()
    with torch.no_grad():
        torch.onnx.export(model.eval(), inputs, out, dynamo=False, opset_version=17)
    return onnx.shape_inference.infer_shapes(onnx.load_model_from_string(out.getvalue()))


def bodies() -> onnx.ModelProto:
    """If, Loop, Scan, a function that calls another, a domain of its own."""
    return parser.parse_model("""
    <ir_version: 10, opset_import: ["" : 21, "local" : 1, "vendor.ops" : 2]>
    agraph (float[4, N] x, int64 trips, bool flag, float[4, N] start)
    => (float[4, N] y, float[K, 4, N] all, float[N] last)
    <float[4, N] scaled, float[4, N] chosen, float[4, N] looped>
    {
        weight = Constant <value = float[4, 1] {1.0, 2.0, 3.0, 4.0}> ()
        scaled = local.twice <factor = 0.5> (x, weight)
        chosen = If (flag) <
            then_branch = yes () => (float[4, N] a) { a = Relu (scaled) },
            else_branch = no () => (float[4, N] b) { c = vendor.ops.Special <level = 3> (scaled) b = Neg (c) }
        >
        looped, all = Loop (trips, flag, chosen) <
            body = step (int64 i, bool go, float[4, N] h) => (bool go_on, float[4, N] next, float[4, N] out) {
                go_on = Identity (go)
                next = Add (h, scaled)
                out = Mul (next, weight)
            }
        >
        last0, states = Scan <num_scan_inputs = 1, body = row (float[N] s, float[N] r) => (float[N] t, float[N] u) {
                t = Add (s, r)
                u = Identity (t)
            }> (first, looped)
        zero = Constant <value_ints = [0]> ()
        axes = Constant <value_ints = [0]> ()
        first = ReduceSum <keepdims = 0> (start, axes)
        y = Add (looped, scaled)
        last = Identity (last0)
    }
    <domain: "local", opset_import: ["" : 21, "local" : 1]>
    twice <factor> (v, w) => (r)
    {
        p = local.product (v, w)
        f = Constant <value_float : float = @factor> ()
        r = Mul (p, f)
    }
    <domain: "local", opset_import: ["" : 21]>
    product (left, right) => (out) { out = Mul (left, right) }
    """)


def kinds() -> onnx.ModelProto:
    """Every dtype as a weight, sparse weights, sequences, optionals, maps, training info, symbols, external data."""
    numbers = [kind for kind in TensorProto.DataType.values() if kind]
    weights = []
    for kind in numbers:
        name = f"w_{TensorProto.DataType.Name(kind).lower()}"
        if kind == TensorProto.STRING:
            weights.append(helper.make_tensor(name, kind, [2], [b"a", b"b"]))
        elif kind in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
            weights.append(helper.make_tensor(name, kind, [2], [1 + 2j, 3j]))
        else:
            weights.append(helper.make_tensor(name, kind, [4], [0, 1, 1, 0]))
    away = TensorProto(name="away", data_type=TensorProto.FLOAT, dims=[8, 4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "kinds.data"), ("offset", "64"), ("length", "128")):
        away.external_data.add(key=key, value=value)
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("few", TensorProto.FLOAT, [2], [1.0, 2.0]),
        helper.make_tensor("places", TensorProto.INT64, [2], [3, 9]),
        [4, 4],
    )
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, ["batch", 4])
    sequence = helper.make_sequence_type_proto(tensor)
    nodes = [
        helper.make_node("MatMul", ["x", "few"], ["y"], "product"),
        helper.make_node("SequenceConstruct", ["x", "y"], ["s"], "both"),
        helper.make_node("Optional", ["s"], ["o"], "perhaps"),
        helper.make_node("OptionalHasElement", ["o"], ["there"]),
        helper.make_node("MatMul", ["y", "t"], ["z"], "later"),
        helper.make_node("Transpose", ["away"], ["t"], "before", perm=[1, 0]),
        helper.make_node("Cast", ["w_bfloat16"], ["c"], "cast", to=TensorProto.FLOAT),
    ]
    infos = [
        helper.make_value_info("s", sequence),
        helper.make_value_info("o", helper.make_optional_type_proto(sequence)),
        helper.make_value_info("y", tensor),
        helper.make_value_info("t", helper.make_tensor_type_proto(TensorProto.FLOAT, [4, 8])),
    ]
    outputs = [
        helper.make_value_info("z", helper.make_tensor_type_proto(TensorProto.FLOAT, ["batch", 8])),
        helper.make_value_info("there", helper.make_tensor_type_proto(TensorProto.BOOL, [])),
        helper.make_value_info("c", helper.make_tensor_type_proto(TensorProto.FLOAT, [4])),
    ]
    graph = helper.make_graph(
        nodes, "kinds", [helper.make_value_info("x", tensor)], outputs, [*weights, away], value_info=infos,
        sparse_initializer=[sparse], doc_string="one of each",
    )  # fmt: skip
    model = helper.make_model(graph, producer_name="opscope", producer_version="tests", ir_version=13)
    step = helper.make_graph(
        [
            helper.make_node(
                "Adam", ["r", "t", "w", "g", "v", "h"], ["w2", "v2", "h2"], domain="ai.onnx.preview.training"
            )
        ],
        "step",
        [],
        [],
    )
    model.training_info.append(onnx.TrainingInfoProto(algorithm=step))
    helper.set_model_props(model, {"made for": "tests"})
    return model


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Zeros in place of learned numbers, so that the files are small when packed."""
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.size > 64:
            tensor.CopyFrom(numpy_helper.from_array(np.zeros_like(array), tensor.name))
    return model


def save(name: str, model: onnx.ModelProto) -> Path:
    path = OUT / f"{name}.onnx"
    path.write_bytes(model.SerializeToString(deterministic=True))
    return path


def run(path: Path, optimized: Path, level: Any, feed: dict[str, Any]) -> Path:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.optimized_model_filepath = level, str(optimized)
    options.enable_profiling, options.profile_file_prefix = True, str(OUT / "profile")
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    for _ in range(2):
        session.run(None, feed)
    return Path(session.end_profiling())


class Reader(quantization.CalibrationDataReader):
    def __init__(self, feed: dict[str, Any]) -> None:
        self._left = [feed]

    def get_next(self) -> dict[str, Any] | None:
        return self._left.pop() if self._left else None


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    save("mobile", exported(MODELS["mobile"]))
    save("attention-old", without_weights(old(small_attention)))
    batch = torch.export.Dim("batch")
    causal = save("attention", exported(small_attention, dynamic_shapes=({0: batch},)))
    save("bodies", bodies())
    save("kinds", kinds())
    feed = {"ids": random.integers(0, 50, (2, 7))}
    level = onnxruntime.GraphOptimizationLevel
    made = run(causal, OUT / "attention-fused.onnx", level.ORT_ENABLE_EXTENDED, feed)
    made.replace(OUT / "attention-fused.profile.json")
    picture = {"x": random.normal(size=(1, 4, 20, 20)).astype(np.float32)}
    quantization.quantize_static(OUT / "mobile.onnx", OUT / "mobile-qdq.onnx", Reader(picture))
    made = run(OUT / "mobile-qdq.onnx", OUT / "mobile-quantized.onnx", level.ORT_ENABLE_EXTENDED, picture)
    made.unlink()


if __name__ == "__main__":
    main()
