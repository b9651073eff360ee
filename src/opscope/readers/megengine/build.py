"""A decoded model as a graph."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from opscope.ir import NULL, Column, Graph, GraphBuilder, Pools, Table, column
from opscope.ir.columns import frozen
from opscope.readers.neighbours import between

from .flat import Span
from .infer import START, Reach, dtypes, reach
from .kinds import op_name, plain
from .model import Dtype, Model, Operator, Tensor, Variable

_LARGEST = 2**62  # what a figure may be so that it still fits into a column
_BUFFERS = re.compile(r"(?:^|[._])running_(?:mean|var)\b")
# A name that MegEngine gave by the module: `layer1.0.conv1.Convolution`. It makes up others, such as `ADD(a,b)[3]`.
_IN_MODULE = re.compile(r"((?:\w+\.)+)\w+(?:\[\d+\])?(?::\w+)?")
# A name that says where the operator is, if only that it is in no module: `RELU`, `fc.MatrixMul`.
_SPOKEN = re.compile(r"(?:\w+\.)*\w+(?:\[\d+\])?(?::\w+)?")


class Building:
    def __init__(self, model: Model, pools: Pools) -> None:
        self.model = model
        self.b = GraphBuilder(pools)
        self.warnings = list(model.warnings)
        self.values: dict[int, int] = {}  # the file's number of a variable -> value
        self.dtypes: dict[int, Dtype | None] = {}
        self.shapes: dict[int, tuple[int, ...] | None] = {}
        self.reaches: dict[int, Reach] = {}
        self.nodes: list[Operator] = []
        self.weights: list[tuple[int, Tensor]] = []
        self.unknown: dict[str, int] = {}
        self.missing = 0
        self._scopes: list[int] = []  # by node
        self._inferred: dict[int, int] = {}

    def build(self) -> Graph:
        self._take_scopes()
        for operator in self.model.operators:
            if operator.is_input or operator.is_parameter:
                self._provider(operator)
            else:
                self._node(operator)
        for number in self.model.outputs:
            if number in self.values:
                self.b.outputs.append(self.values[number])
            else:
                self.missing += 1
        if self.missing:
            self.warnings.append(f"{self.missing:,} uses name a variable that no operator makes before: shown as null")
        if self.unknown:
            listed = ", ".join(f"{kind} (×{count})" for kind, count in sorted(self.unknown.items())[:5])
            self.warnings.append(f"operators of a type that is not known, named by their id: {listed}")
        return self.b.freeze()

    # -- rows -----------------------------------------------------------------------------------

    def _provider(self, operator: Operator) -> None:
        """An input or a parameter: a value, and no operator."""
        found = dtypes(operator, ())
        for i, (number, dtype) in enumerate(zip(operator.outputs, found, strict=True)):
            tensor = operator.tensors[min(i, len(operator.tensors) - 1)] if operator.tensors else None
            variable = self._variable(number)
            shape = variable.shape if tensor is None or not tensor.shape else tensor.shape
            name = variable.name or (tensor.name if tensor else "") or operator.name
            type_ = self.b.pools.type(dtype.name if dtype else "", shape)
            if operator.is_input:
                value = self.b.input(type_, name=self.model.aliases.get(number, name))
                self.reaches[number] = START
            else:
                value = self.b.value(type_, name=name, role=_role(name, tensor))
            if tensor is not None and tensor.data is not None:
                self.weights.append((value, tensor))
            self._made(number, value, dtype, shape)

    def _node(self, operator: Operator) -> None:
        inputs = [self.values.get(number, NULL) for number in operator.inputs]
        self.missing += inputs.count(NULL)
        read = [self.dtypes.get(number) for number in operator.inputs]
        name = self._name(operator)
        if operator.type.startswith("#"):
            self.unknown[operator.type] = self.unknown.get(operator.type, 0) + 1
        param = operator.param or {}
        attrs = attributes(operator)
        if len(self.nodes) in self._inferred:
            attrs["scope by"] = "neighbours"
        node = self.b.node(
            op_name(operator.type, param.get("mode")),
            inputs,
            name=name,
            scope=self._scopes[len(self.nodes)],
            attrs=attrs,
            phase="forward",
        )
        self.nodes.append(operator)
        seen = reach(
            operator,
            [self.reaches.get(number) for number in operator.inputs],
            [self.shapes.get(number) for number in operator.inputs],
        )
        for number, dtype in zip(operator.outputs, dtypes(operator, read), strict=True):
            variable = self._variable(number)
            dtype = variable.dtype or dtype
            type_ = self.b.pools.type(dtype.name if dtype else "", variable.shape)
            label = self.model.aliases.get(number) or variable.name
            self._made(number, self.b.output(node, type_, name=label), dtype, variable.shape)
            if seen is not None:
                self.reaches[number] = seen

    def _made(self, number: int, value: int, dtype: Dtype | None, shape: tuple[int, ...] | None) -> None:
        self.values.setdefault(number, value)
        self.dtypes[number] = dtype
        self.shapes[number] = shape

    def _variable(self, number: int) -> Variable:
        return self.model.variables.get(number) or Variable("")

    def _name(self, operator: Operator) -> str:
        return operator.name or next((n for i in operator.outputs if (n := self._variable(i).name)), "")

    def _take_scopes(self) -> None:
        """The modules of all operators. A dump without the names of operators keeps those of variables, but MegEngine
        makes up others (`conv(a,b)[3]`) as it optimizes: their modules are those around them."""
        operators = [o for o in self.model.operators if not o.is_input and not o.is_parameter]
        self._scopes = [self._scope(self._name(operator)) for operator in operators]
        lost = [not o.name and not _SPOKEN.fullmatch(self._name(o)) for o in operators]
        if not any(lost):
            return
        makers = {number: i for i, operator in enumerate(operators) for number in operator.outputs}
        given = {number for o in self.model.operators if o.is_input for number in o.outputs}
        following: list[list[int]] = [[] for _ in operators]
        prepares: list[bool] = []
        for i, operator in enumerate(operators):
            sources = [makers[n] for n in operator.inputs if n in makers and makers[n] < i]
            for source in sources:
                following[source].append(i)
            prepares.append(not given & set(operator.inputs) and all(prepares[source] for source in sources))
        found = between(self.b.pools, self._scopes, following, range(len(operators)), prepares)
        self._inferred = {i: scope for i, scope in found.items() if lost[i]}
        for i, scope in self._inferred.items():
            self._scopes[i] = scope
        self.warnings.append(
            f"names are partial: {sum(lost):,} of {len(lost):,} operators have lost that of their module, because the "
            f"model was dumped without them; {len(self._inferred):,} of these are shown in the module around them. To "
            "keep all names: dump(…, keep_opr_name=True, keep_var_name=2, optimize_for_inference=False)"
        )

    def _scope(self, name: str) -> int:
        found = _IN_MODULE.fullmatch(name)
        scope = 0
        for part in found[1].split(".")[:-1] if found else ():
            scope = self.b.pools.scope(scope, part)
        return scope

    # -- tables ---------------------------------------------------------------------------------

    def tables(self) -> dict[str, Table]:
        """Where the weights lie in the file, what quantized numbers mean, and how far each operator sees."""
        made: dict[str, Table] = {}
        spans = [(value, tensor.data) for value, tensor in self.weights if tensor.data is not None]
        if spans:
            made["weights in the file"] = Table(
                0,
                "value",
                frozen([value for value, _ in spans]),
                {
                    "offset": column(np.array([span.at for _, span in spans], dtype=np.int64)),
                    "size": column(np.array([span.size for _, span in spans], dtype=np.int64), "B"),
                },
            )
        quantized = [
            (self.values[number], dtype.scale, dtype.zero_point)
            for number, dtype in self.dtypes.items()
            if dtype is not None and dtype.scale is not None
        ]
        if quantized:
            made["quantization"] = Table(
                0,
                "value",
                frozen([value for value, *_ in quantized]),
                {
                    "scale": column(np.array([scale for _, scale, _ in quantized], dtype=np.float64)),
                    "zero point": Column(
                        np.array([zero or 0 for *_, zero in quantized], dtype=np.int64),
                        np.array([zero is not None for *_, zero in quantized], dtype=bool),
                    ),
                },
            )
        reaches = [
            (node, found)
            for node, operator in enumerate(self.nodes)
            if (found := self.reaches.get(operator.outputs[0]) if operator.outputs else None) is not None
            and max(found) < _LARGEST
        ]
        if reaches:
            made["receptive field"] = Table(
                0,
                "node",
                frozen([node for node, _ in reaches]),
                {
                    label: column(np.array([getattr(found, label) for _, found in reaches], dtype=np.int64))
                    for label in Reach._fields
                },
            )
        return made


def attributes(operator: Operator) -> dict[str, Any]:
    """The parameters of an operator; what the file says beside them under names that no parameter has."""
    attrs = {key: plainly(value) for key, value in (operator.param or {}).items() if key != "_type"}
    policy = next((p for p in operator.more_params if p and p["_type"] == "param.ExecutionPolicy"), None)
    others = [p for p in operator.more_params if p is not None and p is not policy]
    if policy is not None:
        attrs["strategy"] = policy["strategy"]
    if others:
        attrs["more params"] = plainly(others)
    if plain(operator.type) != operator.type:
        attrs["type"] = operator.type
    if operator.type.startswith("#"):
        attrs["type id"] = str(operator.type_id)
    if operator.tensors:
        attrs["tensors"] = [
            f"{t.dtype.name}[{','.join(map(str, t.shape))}]" + (f" of {t.data.size} bytes" if t.data else "")
            for t in operator.tensors
        ]
    if operator.devices:
        attrs["device"] = ", ".join(operator.devices)
    if operator.priority:
        attrs["priority"] = operator.priority
    return attrs


def plainly(value: Any) -> Any:
    """Data that JSON can hold."""
    if isinstance(value, Span):
        return f"{value.size} bytes"
    if isinstance(value, dict):
        return {str(key): plainly(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return [plainly(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _role(name: str, tensor: Tensor | None) -> str:
    """MegEngine writes every tensor as a constant. Indices and shapes are; numbers that were learned are parameters."""
    if _BUFFERS.search(name):
        return "buffer"
    if tensor is None or not tensor.dtype.name.startswith(("float", "bfloat", "q")):
        return "constant"
    is_single = all(size <= 1 for size in tensor.shape)
    return "constant" if is_single and name.startswith("const<") else "parameter"
