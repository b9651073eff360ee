"""What a .mge file says, both formats in the same words. Weights stay in the file: only where they lie is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from opscope.errors import BadInput
from opscope.readers.pages import Pages, Whole

from .flat import Buffer, Span, member
from .kinds import INPUT, PARAMETERS, plain, types_by_id

V2 = (b"mgv2", b"mge2")
V1 = b"mgb1"
TEST_PREFIX = b"mgbtest0"
_MOST_DIMENSIONS = 64  # MegEngine itself has at most 7
_MAGIC = {b"MGBC": 24, b"MGBS": 16}  # the header, which is without feature bits in the older one


class Dtype(NamedTuple):
    """A type of numbers; the scale and the zero point of quantized ones."""

    name: str
    scale: float | None = None
    zero_point: int | None = None


DTYPES = {
    "Float32": "float32", "Uint8": "uint8", "Int8": "int8", "Int16": "int16", "Int32": "int32", "IntB1": "int1",
    "IntB2": "int2", "IntB4": "int4", "Byte": "uint8", "Float16": "float16", "UintB4": "uint4",
    "Quantized8Asymm": "quint8", "QuantizedS32": "qint32", "QuantizedS8": "qint8", "Quantized4Asymm": "quint4",
    "QuantizedS4": "qint4", "QuantizedS16": "qint16", "BFloat16": "bfloat16", "Bool": "bool", "Uint16": "uint16",
    "QuantizedS1": "qint1", "Complex64": "complex64",
}  # fmt: skip
_ASYMMETRIC = ("quint8", "quint4")


@dataclass(frozen=True)
class Tensor:
    """A tensor that the file holds, or describes without its numbers (an input)."""

    name: str
    shape: tuple[int, ...]
    dtype: Dtype
    data: Span | None


@dataclass(frozen=True)
class Operator:
    type: str  # as the file has it, such as BatchNormV1; `#123…` where only an id is known
    type_id: int
    name: str
    param: dict[str, Any] | None  # with the name of its table under `_type`
    more_params: tuple[dict[str, Any] | None, ...]
    inputs: list[int]
    outputs: list[int]
    tensors: tuple[Tensor, ...]
    devices: tuple[str, ...]
    output_dtype: Dtype | None
    priority: int
    version: int = 0

    @property
    def is_parameter(self) -> bool:
        return plain(self.type) in PARAMETERS

    @property
    def is_input(self) -> bool:
        return self.type == INPUT


@dataclass(frozen=True)
class Variable:
    """What an operator makes; a shape or a type of None is not in the file."""

    name: str
    shape: tuple[int, ...] | None = None
    dtype: Dtype | None = None


@dataclass
class Model:
    format: str  # FBS_V2 or FBS
    version: int  # of MegEngine: 101300 is 1.13.0
    operators: list[Operator]
    variables: dict[int, Variable]
    outputs: list[int]
    aliases: dict[int, str]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    shared_tensors: int = 0
    warnings: list[str] = field(default_factory=list[str])


def is_model(head: bytes) -> bool:
    start = _skipped(head)
    return head[start + 8 : start + 12] in V2 or head[start : start + 4] in _MAGIC


def _skipped(head: bytes) -> int:
    """What MegEngine's own tests may put in front: its mark, and four bytes."""
    return len(TEST_PREFIX) + 4 if head.startswith(TEST_PREFIX) else 0


def decode(data: bytes | Pages | Whole, size: int) -> Model:
    """The model in a file."""
    if isinstance(data, bytes):
        data = Whole(data)
    start = _skipped(bytes(data[: len(TEST_PREFIX)]))
    if bytes(data[start + 8 : start + 12]) in V2:
        return _Second(_buffer(data, start, size)).model()
    header = _MAGIC[bytes(data[start : start + 4])]
    if size < start + header:
        raise BadInput(f"it ends after {size:,} bytes, in its header. It may be cut off: dump or copy it again")
    weights = start + header
    offset = int.from_bytes(data[weights - 8 : weights], "little")
    if offset > size - weights - 12:
        raise BadInput(
            f"its graph would begin {offset:,} bytes after its header, and {size - weights:,} are there. "
            "It may be cut off: dump or copy it again"
        )
    buffer = _buffer(data, weights + offset, size)
    if bytes(data[buffer.start + 4 : buffer.start + 8]) != V1:
        raise BadInput("its graph does not begin with mgb1, as that of MegEngine's first format does")
    return _First(buffer, weights, weights + offset).model()


def _buffer(data: Pages | Whole, start: int, size: int) -> Buffer:
    """A FlatBuffer with its size in front."""
    length = int.from_bytes(data[start : start + 4], "little")
    if length > size - start - 4 or length < 8:
        raise BadInput(
            f"{length:,} bytes of graph are announced, {max(0, size - start - 4):,} are there. "
            "It may be cut off: dump or copy it again"
        )
    return Buffer(data, start + 4, start + 4 + length)


class _Decoder:
    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.warnings: list[str] = []

    def params(self, raw: dict[str, Any]) -> tuple[dict[str, Any] | None, ...]:
        places: list[int] = raw["additional_params"]
        kinds: list[int] = raw["additional_params_type"]
        if len(places) != len(kinds):
            self.buffer.damaged(f"an operator has {len(places):,} more parameters, and {len(kinds):,} kinds of them")
        return tuple(
            member(self.buffer, "OperatorParam", self.buffer.follow(place), kind)
            for kind, place in zip(kinds, places, strict=True)
        )

    def dtype(self, raw: dict[str, Any] | None) -> Dtype | None:
        if raw is None:
            return None
        kind = raw["type"]
        name = DTYPES.get(kind) or f"dtype{kind}"
        param = raw["param"]
        if not param or "scale" not in param:
            return Dtype(name)
        return Dtype(name, param["scale"], param["zero_point"] if name in _ASYMMETRIC else None)

    def shape(self, raw: list[int]) -> tuple[int, ...]:
        if len(raw) > _MOST_DIMENSIONS:
            self.buffer.damaged(f"a tensor of {len(raw):,} dimensions")
        return tuple(raw)

    def metadata(self, raw: dict[str, Any] | None) -> dict[str, Any]:
        return {key: value for key, value in raw.items() if value is not None} if raw else {}


class _Second(_Decoder):
    """FBS_V2: operators say what they are, variables have names and shapes."""

    def model(self) -> Model:
        root = self.buffer.root("v2.Model")
        variables = {
            number: Variable(raw["name"], self.shape(raw["shape"]) or None, self.dtype(raw["dtype"]))
            for number, raw in enumerate(root["middle_tensors"])
        }
        operators = [self.operator(raw) for raw in root["oprs"]]
        return Model(
            format="FBS_V2",
            version=root["mge_version"],
            operators=operators,
            variables=variables,
            outputs=[raw["compact_id"] for raw in root["output_vars_idx"]],
            aliases={raw["id"]: raw["name"] for raw in root["output_alias"]},
            metadata=self.metadata(root["metadata"]),
            shared_tensors=root["nr_shared_tensor"],
            warnings=self.warnings,
        )

    def operator(self, raw: dict[str, Any]) -> Operator:
        return Operator(
            type=raw["type"] or types_by_id().get(raw["type_id"]) or f"#{raw['type_id']}",
            type_id=raw["type_id"],
            name=raw["name"],
            param=raw["param"],
            more_params=self.params(raw),
            inputs=raw["inputs"],
            outputs=raw["outputs"],
            tensors=tuple(
                Tensor(t["name"], self.shape(t["shape"]), self.dtype(t["dtype"]) or Dtype(""), t["data"] or None)
                for t in raw["tensors"]
            ),
            devices=tuple(node["logical_locator"] for node in raw["comp_node"]),
            output_dtype=self.dtype(raw["output_dtype"]),
            priority=raw["priority"],
            version=raw["opr_version"],
        )


class _First(_Decoder):
    """FBS: operators by the hash of their names; variables are numbered in the order in which they are made."""

    def __init__(self, buffer: Buffer, weights: int, weights_end: int) -> None:
        super().__init__(buffer)
        self.next_weight = weights
        self.weights_end = weights_end
        self.next_variable = 0
        self.variables: dict[int, Variable] = {}
        self.guessed: set[str] = set()

    def model(self) -> Model:
        root = self.buffer.root("v1.Graph")
        operators = [self.operator(raw) for raw in root["oprs"]]
        if self.guessed:
            self.warnings.append(
                "the file does not say how many results its operators have: one is taken for "
                f"{', '.join(sorted(self.guessed)[:5])}. Dump it with keep_var_name=2, or without dump_format='FBS'"
            )
        return Model(
            format="FBS",
            version=root["mgb_version"],
            operators=operators,
            variables=self.variables,
            outputs=[raw["compact_id"] for raw in root["output_vars_idx"]],
            aliases={},
            metadata=self.metadata(root["metadata"]),
            shared_tensors=root["nr_shared_tensor"],
            warnings=self.warnings,
        )

    def operator(self, raw: dict[str, Any]) -> Operator:
        kind = types_by_id().get(raw["type_id"]) or f"#{raw['type_id']}"
        names: list[str] = raw["output_name"]
        count = len(names) or self.results_of(kind, raw)
        outputs = list(range(self.next_variable, self.next_variable + count))
        self.next_variable += count
        for number, name in zip(outputs, names or [""] * count, strict=True):
            self.variables[number] = Variable(name)
        return Operator(
            type=kind,
            type_id=raw["type_id"],
            name=raw["name"],
            param=raw["param"],
            more_params=self.params(raw),
            inputs=raw["inputs"],
            outputs=outputs,
            tensors=tuple(self.tensor(tensor) for tensor in raw["tensors"]),
            devices=tuple(node["logical_locator"] for node in raw["comp_node"]),
            output_dtype=self.dtype(raw["output_dtype"]),
            priority=raw["priority"],
        )

    def tensor(self, raw: dict[str, Any]) -> Tensor:
        """Their numbers lie one behind the other, before the graph."""
        at, size = self.next_weight, raw["data_size"]
        if at + size > self.weights_end:
            self.buffer.damaged(f"a tensor of {size:,} bytes would end behind the weights, which are before the graph")
        self.next_weight += size
        data = Span(at, size) if size else None
        return Tensor(raw["name"], self.shape(raw["shape"]), self.dtype(raw["dtype"]) or Dtype(""), data)

    def results_of(self, kind: str, raw: dict[str, Any]) -> int:
        name = plain(kind)
        if name in PARAMETERS and len(raw["tensors"]) > 1:
            return len(raw["tensors"])
        if name in _RESULTS:
            return _RESULTS[name]
        if name == "BatchNorm":  # with running statistics among the inputs it makes new ones
            return 4 if len(raw["inputs"]) == 5 else 3
        if kind.startswith("#") or name in ("Split", "Loop", "LoopGrad", "CustomOpNode", "ExternCOprRunner"):
            self.guessed.add(kind)
        return 1


_RESULTS = {
    "TopK": 2, "Argsort": 2, "CondTake": 2, "Dropout": 2, "LayerNorm": 3, "GroupNorm": 3, "InstanceNorm": 3,
    "GeneralNorm": 3, "LSTMForward": 4, "RNNForward": 3, "LSTMCellForward": 3, "SVD": 3, "AdaptivePoolingV1": 1,
}  # fmt: skip
