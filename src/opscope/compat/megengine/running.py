"""What only MegEngine itself can say of a dumped model: shapes for another input, and the numbers it computes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError

from .operators import Listed, Shape

Arrays = Mapping[str, npt.NDArray[Any]]


def is_there() -> bool:
    try:
        importlib.import_module("megengine.utils.network")
    except ImportError:
        return False
    return True


class Running:
    """The model, loaded by MegEngine; with `inputs`, for arrays of their shapes.

    The inputs stay inputs: MegEngine's visualizer makes constants of them, which it then counts as parameters.
    """

    def __init__(self, path: str, inputs: Arrays | None) -> None:
        network: Any = importlib.import_module("megengine.utils.network").Network.load(path)
        self._inputs = inputs
        if inputs is not None:
            self._reshape(network, inputs)
        self._network = network

    def _reshape(self, network: Any, inputs: Arrays) -> None:
        providers = list(network.data_providers_filter)
        names = [provider.name for provider in providers]
        if set(names) != set(inputs):
            raise OpscopeError(f"the model has the inputs {', '.join(names)}; data is given for {', '.join(inputs)}")
        for provider in providers:
            provider.shape = inputs[provider.name].shape
        network._compile()

    def listed(self) -> list[Listed]:
        rows: list[Listed] = []
        makers: dict[int, Listed] = {}
        for node in self._network.all_oprs:
            output = node.outputs[getattr(node, "output_idx", 0)]
            row = Listed(
                name=node.name,
                type=node.type,
                params=dict(node.params),
                inputs=[makers[id(var.owner)] for var in node.inputs if id(var.owner) in makers],
                input_shapes=[_shape(var) for var in node.inputs],
                output_shapes=[_shape(var) for var in node.outputs],
                dtype=_dtype(output),
                outputs=[output],
            )
            makers[id(node)] = row
            rows.append(row)
        return rows

    def compute(self, rows: list[Listed], figures: Callable[[npt.NDArray[Any]], tuple[str, str]]) -> None:
        """Mean and standard deviation of every result, and of parameters, for the inputs given."""
        graph: Any = importlib.import_module("megengine.core.tensor.megbrain_graph")
        tools: Any = importlib.import_module("megengine.utils.comp_graph_tools")
        tensor: Any = importlib.import_module("megengine").Tensor
        wanted = [row for row in rows if row.dtype is not None]
        given = {row.name: row for row in rows if row.type == "Host2DeviceCopy"}
        variables = [row.outputs[0].var for row in wanted]
        nodes: dict[str, Any] = {}
        for name, row in given.items():
            old = row.outputs[0].var
            nodes[name] = graph.InputNode(device="xpux", dtype=old.dtype, graph=old.graph)
        replaced = tools.replace_vars(
            variables, {row.outputs[0].var: _raw(nodes[name].outputs[0]) for name, row in given.items()}
        )
        outputs = [graph.OutputNode(variable) for variable in replaced]
        function = replaced[0].graph.compile([_raw(output.outputs[0]) for output in outputs])
        for name, node in nodes.items():
            array = (self._inputs or {})[name]
            node.set_value(tensor(np.ascontiguousarray(array))._dev_tensor())
        function.execute()
        function.wait()
        for row, output in zip(wanted, outputs, strict=True):
            row.mean, row.std = figures(output.get_value().numpy())


def _raw(variable: Any) -> Any:
    """MegEngine's C++ variable, which its Python graph may wrap."""
    return getattr(variable, "_node", variable)


def _shape(variable: Any) -> Shape | None:
    shape = variable.shape
    return None if shape is None else tuple(int(size) for size in shape)


def _dtype(variable: Any) -> str | None:
    try:
        make: Any = np.dtype
        return cast("str", make(variable.dtype).name)
    except Exception:  # numpy has no such type
        return None
