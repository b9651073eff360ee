"""Compilers with a planted fault: a backend that changes one operator of the graph that it was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd

aten = torch.ops.aten
Change = Callable[[fx.Node], None]


def _argument(place: int, value: Any) -> Change:
    def change(node: fx.Node) -> None:
        node.update_arg(place, value)

    return change


def _operator(target: Any, arguments: int | None = None, *more: Any) -> Change:
    def change(node: fx.Node) -> None:
        node.target = target
        node.args, node.kwargs = (*node.args[:arguments], *more), {}

    return change


def _scaled(by: float) -> Change:
    def change(node: fx.Node) -> None:
        with node.graph.inserting_after(node):
            scaled = node.graph.call_function(aten.mul.Tensor, (node, by))
        node.replace_all_uses_with(scaled, delete_user_cb=lambda user: user is not scaled)

    return change


# What is changed: of which operators, the how-manieth of them, and how.
FAULTS: dict[str, tuple[tuple[Any, ...], int, Change]] = {
    "epsilon of a layer norm": ((aten.native_layer_norm.default,), 1, _argument(4, 0.1)),
    "epsilon of a batch norm": ((aten._native_batch_norm_legit_functional.default,), 1, _argument(7, 0.5)),
    "gelu is silu": ((aten.gelu.default,), 1, _operator(aten.silu.default, 1)),
    "silu is gelu": ((aten.silu.default,), 1, _operator(aten.gelu.default)),
    "relu leaks": ((aten.relu.default,), 1, _operator(aten.leaky_relu.default, 1, 0.1)),
    "tanh is a sigmoid": ((aten.tanh.default,), 1, _operator(aten.sigmoid.default)),
    "sigmoid is a tanh": ((aten.sigmoid.default,), 0, _operator(aten.tanh.default)),
    "root without its inverse": ((aten.rsqrt.default,), 1, _operator(aten.sqrt.default)),
    "a product is too large": (
        (aten.mm.default, aten.addmm.default, aten.bmm.default, aten.convolution.default),
        2,
        _scaled(1.03),
    ),
    "minus instead of plus": ((aten.add.Tensor,), 1, _operator(aten.sub.Tensor)),
}


class Faulty:
    """A backend for torch.compile; `hit` says whether the graph had what the fault changes."""

    def __init__(self, fault: str = "", where: str = "forward") -> None:
        self.fault, self.hit = fault, False
        changed, plain = self._changed, self._plain
        self.backend = aot_autograd(
            fw_compiler=changed if where == "forward" else plain, bw_compiler=changed if where == "backward" else plain
        )

    def _plain(self, graph: fx.GraphModule, inputs: Any) -> Any:
        return _boxed(graph)

    def _changed(self, graph: fx.GraphModule, inputs: Any) -> Any:
        if self.fault and not self.hit:
            targets, place, change = FAULTS[self.fault]
            nodes = [node for node in graph.graph.nodes if node.op == "call_function" and node.target in targets]
            found = [node for node in nodes if _makes_fractions(node)]
            if len(found) > place:
                change(found[place])
                graph.recompile()
                self.hit = True
        return _boxed(graph)


def _boxed(graph: fx.GraphModule) -> Any:
    from functorch.compile import make_boxed_func

    return make_boxed_func(graph.forward)


def _makes_fractions(node: fx.Node) -> bool:
    made = node.meta.get("val")
    first = made[0] if isinstance(made, tuple | list) else made
    return isinstance(first, torch.Tensor) and first.is_floating_point()
