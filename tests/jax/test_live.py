"""Live capture on real JAX, compared with what JAX itself says of the same programs."""

from __future__ import annotations

from collections import Counter
from inspect import isfunction
from math import prod

import jax
import numpy as np
import pytest
from flax import linen
from programs import PROGRAMS

import opscope

BY_NAME = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)


def nodes_of(graph):
    for node in graph.nodes:
        yield node
        for body in node.bodies:
            yield from nodes_of(body.graph)


def equations_of(jaxpr):
    """Every equation of a program, also those inside of others."""

    def walk(jaxpr):
        jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
        for equation in jaxpr.eqns:
            yield equation
            if equation.primitive.name == "pallas_call":
                continue
            for name, value in equation.params.items():
                if name == "update_jaxpr":  # how two numbers become one: no operators of the program
                    continue
                for inner in value if isinstance(value, tuple) else (value,):
                    if hasattr(inner, "eqns") or hasattr(getattr(inner, "jaxpr", None), "eqns"):
                        yield from walk(inner)

    yield from walk(jaxpr)


def jaxpr_of(function, args):
    if hasattr(function, "trace"):
        return function.trace(*args).jaxpr
    arrays = [leaf for leaf in jax.tree.leaves(args) if isinstance(leaf, jax.Array)]
    tree = jax.tree.structure(args)
    others = jax.tree.leaves(args)

    def run(*given):
        given = iter(given)
        return function(*jax.tree.unflatten(tree, [next(given) if isinstance(x, jax.Array) else x for x in others]))

    return jax.make_jaxpr(run)(*arrays)


@BY_NAME
def test_a_jaxpr_has_every_equation(program):
    function, args = program()
    cap = opscope.trace(function, *args, how="jaxpr")
    assert [stage.name for stage in cap.stages] == ["jaxpr"]
    expected = Counter(e.primitive.name for e in equations_of(jaxpr_of(function, args)))
    assert Counter(node.op for node in nodes_of(cap.graph)) == expected


def macs_of(jaxpr):
    """MACs of all dot_general and convolutions, each loop as often as it runs; None where that is not known."""
    total = 0
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    for equation in jaxpr.eqns:
        params, name = equation.params, equation.primitive.name
        if name == "dot_general":
            (left, _), _ = params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            total += equation.outvars[0].aval.size * prod(shape[dim] for dim in left)
        elif name == "conv_general_dilated" or name == "while":
            return None
        elif name == "cond":
            branches = [macs_of(branch) for branch in params["branches"]]
            total += max(branches)
        else:
            for value in params.values():
                if hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns"):
                    inside = macs_of(value)
                    if inside is None:
                        return None
                    total += inside * (params["length"] if name == "scan" else 1)
    return total


@BY_NAME
def test_products_are_counted_exactly(program):
    function, args = program()
    expected = macs_of(jaxpr_of(function, args))
    total = opscope.trace(function, *args, how="jaxpr").stats().total
    if expected is not None:
        assert total.macs == expected


def test_convolutions_are_counted_as_their_definition_says():
    """Forward, and both gradients, of a convolution with stride 2 as naive loops count them."""
    x, k = np.ones((1, 9, 9, 3), np.float32), np.ones((3, 3, 3, 5), np.float32)

    def conv(k, x):
        return jax.lax.conv_general_dilated(x, k, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    forward = 4 * 4 * 5 * 3 * 3 * 3
    assert opscope.trace(conv, k, x, how="jaxpr").stats().total.macs == forward
    of_kernel = opscope.trace(jax.grad(lambda k, x: conv(k, x).sum()), k, x, how="jaxpr").stats().total.macs
    assert of_kernel in (forward, 2 * forward)  # newer versions leave out the forward product, which nobody needs
    of_input = opscope.trace(jax.grad(lambda x, k: conv(k, x).sum()), x, k, how="jaxpr").stats().total.macs
    naive = sum(
        (i + a - 2) % 2 == 0 and (j + b - 2) % 2 == 0
        for i in range(9)
        for j in range(9)
        for a in range(3)
        for b in range(3)
    )
    assert of_input - of_kernel + forward == naive * 5 * 3


@BY_NAME
def test_all_stages_down_to_the_kernels(program):
    function, args = program()
    cap = opscope.trace(function, *args)
    assert not cap.all_warnings()
    names = [stage.name for stage in cap.stages]
    assert names[:3] == ["jaxpr", "StableHLO", "before optimizations"]
    assert names[-1].endswith("after optimizations")
    assert cap.stages[1].after == 0
    # Every operation of StableHLO that MLIR knows of is there.
    lowered = (
        (function if hasattr(function, "lower") else jax.jit(function)).lower(*args)
        if _is_plain(args) and isfunction(getattr(function, "__wrapped__", function))
        else None
    )
    if lowered is not None:
        told = Counter(_operations(lowered.compiler_ir("stablehlo").operation))
        ours = Counter(op for op in _written(cap.stages[1].graph) if op not in ("func.call", "call"))
        assert ours == {op: n for op, n in told.items() if op in ours}
        assert set(told) - set(ours) <= _NOT_NODES


_NOT_NODES = {
    *("builtin.module", "func.func", "func.return", "stablehlo.return", "stablehlo.constant", "func.call", "call"),
    *("sdy.mesh", "sdy.return"),
}


def _is_plain(args):
    return all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(args))


def _operations(operation, depth=0):
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation.name
                if inner.operation.name in ("func.func", "stablehlo.while", "stablehlo.case", "sdy.manual_computation"):
                    yield from _operations(inner.operation, depth + 1)


def _written(graph):
    seen = set()

    def walk(graph):
        if id(graph) in seen:
            return
        seen.add(id(graph))
        for node in graph.nodes:
            yield node.op
            for body in node.bodies:
                yield from walk(body.graph)

    yield from walk(graph)


def test_gradients_belong_to_their_own_turn_of_a_loop():
    function, args = next(p for p in PROGRAMS if p.__name__ == "loop_without_names")()
    graph = opscope.trace(function, *args, how="jaxpr").graph
    links = graph.links["grad"]
    forward = [n.index for n in graph.nodes if n.op == "dot_general" and n.phase == "forward"]
    pairs = {(s, t) for s, t in zip(links.source.tolist(), links.target.tolist(), strict=True)}
    last = [n.index for n in graph.nodes if n.op == "dot_general" and n.phase == "backward"]
    assert len(forward) == 5
    # The first products of the backward pass are gradients of the last product of the forward pass.
    assert (forward[-1], last[0]) in pairs
    assert (forward[0], last[-1]) in pairs
    sources = [next(s for s, t in pairs if t == node) for node in last]
    assert sources == sorted(sources, reverse=True)


def test_modules_and_lines():
    function, args = next(p for p in PROGRAMS if p.__name__ == "transformer")()
    cap = opscope.trace(function, *args)
    for stage in (cap.stages[0], cap.stages[1], cap.stages[-1]):
        paths = {node.path for node in stage.graph.nodes}
        assert any(path.endswith("layer0/attn") for path in paths), stage.name
        named = [node for node in stage.graph.nodes if node.op in ("dot_general", "stablehlo.dot_general", "fusion")]
        assert all(node.frames and node.frames[-1].file.endswith("programs.py") for node in named if node.path), (
            stage.name
        )
    link = next(link for link in cap.stage_links if (link.before, link.after) == (0, 1))
    ops = [
        (cap.stages[0].graph.node(int(a)).op, cap.stages[1].graph.node(int(b)).op)
        for a, b in zip(link.source, link.target, strict=True)
    ]
    assert ops.count(("dot_general", "stablehlo.dot_general")) >= sum(n.op == "dot_general" for n in cap.graph.nodes)


def test_kernels_say_what_they_compute():
    function, args = next(p for p in PROGRAMS if p.__name__ == "transformer")()
    cap = opscope.trace(function, *args)
    kernels = cap.graph.groups["kernel"]
    assert len(kernels) == sum(node.op == "fusion" for node in cap.stages[-1].graph.nodes)
    computed = {int(node) for i in range(len(kernels)) for node in kernels.members(i)}
    assert len(computed) > 0.5 * cap.graph.n_nodes


def test_flax_and_equinox_parameters_are_named():
    for name, expected in (("flax_module", "conv.kernel"), ("equinox_module", "layers[0].weight")):
        function, args = next(p for p in PROGRAMS if p.__name__ == name)()
        graph = opscope.trace(function, *args, how="jaxpr").graph
        parameters = {value.name for value in graph.values if value.role == "parameter"}
        assert any(expected in parameter for parameter in parameters), parameters


def test_results_and_caches_are_as_before():
    function, args = next(p for p in PROGRAMS if p.__name__ == "mlp")()
    before = jax.jit(function)(*args)
    opscope.trace(function, *args)
    after = jax.jit(function)(*args)
    assert all((a == b).all() for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True))
    assert jax.config.jax_enable_compilation_cache


def test_what_cannot_be_captured_says_why():
    with pytest.raises(opscope.OpscopeError, match=r"opscope\.trace"), opscope.record(framework="jax"):
        pass
    with pytest.raises(opscope.OpscopeError, match=r"model\.apply"):
        opscope.trace(linen.Dense(3), jax.numpy.ones((2, 2)))
