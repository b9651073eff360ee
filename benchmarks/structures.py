"""Captures in which one structure is enormous: a million scopes, kernels, links, readers … and chains that are deep.

`STRUCTURES` has a maker for each, `make(name, count)` calls it. All are made through the public GraphBuilder, the same
every time, and are as plain as can be apart from what they are about. `bench_structure.py` measures every command on
them; `tests/test_structure.py` counts the work that they cause at two sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opscope.ir import Capture, Frame, GraphBuilder, Origin, Pools, Stage, StageLink, frozen

OPS = ("aten.mm.default", "aten.relu.default", "aten.add.Tensor")
_FAN = 10  # modules in each module of the nested tree


def make(name: str, count: int) -> Capture:
    return STRUCTURES[name](count)


def _chain(
    pools: Pools, scopes: Iterable[int], *, stacks: Iterable[int] | None = None, phase: str = "forward"
) -> GraphBuilder:
    """A node in each of these scopes, every one reading the value before and a parameter that all share."""
    b = GraphBuilder(pools)
    kind = pools.type("float32", (8, 8))
    b.input(kind, name="x")
    weight = b.value(kind, name="weight", role="parameter")
    scopes = list(scopes)
    count = len(scopes)
    first = b.n_values
    before = [0, *range(first, first + count - 1)][:count]
    operators = [OPS[i % len(OPS)] for i in range(count)]
    inputs = [(value,) if i % len(OPS) == 1 else (value, weight) for i, value in enumerate(before)]
    b.nodes(
        operators,
        inputs,
        [kind] * count,
        scopes=scopes,
        stacks=None if stacks is None else list(stacks),
        phases=[phase] * count,
    )
    b.outputs.append(b.n_values - 1)
    return b


def _capture(*builders: GraphBuilder) -> Capture:
    stages = [
        Stage(f"stage{i}" if i else "structure", b.freeze(), i - 1 if i else None) for i, b in enumerate(builders)
    ]
    return Capture(pools=builders[0].pools, stages=stages, origin=Origin("structure", "torch", how="made"))


def nested(count: int) -> Capture:
    """Scopes in scopes, ten in each, with an operator in every one."""
    pools = Pools()
    scopes = [pools.scope(0, "model", "Model")]
    while len(scopes) < count:
        number = len(scopes) - 1
        scopes.append(pools.scope(scopes[number // _FAN], f"block{number % _FAN}", "Block"))
    return _capture(_chain(pools, scopes))


def flat(count: int) -> Capture:
    """Scopes side by side in one, with an operator in every one."""
    pools = Pools()
    model = pools.scope(0, "model", "Model")
    return _capture(_chain(pools, [pools.scope(model, f"block{i}", "Block") for i in range(count)]))


def tops(count: int) -> Capture:
    """Scopes side by side and in nothing."""
    pools = Pools()
    return _capture(_chain(pools, [pools.scope(0, f"block{i}", "Block") for i in range(count)]))


def classes(count: int) -> Capture:
    """Scopes of as many classes, each called twice."""
    pools = Pools()
    model = pools.scope(0, "model", "Model")
    return _capture(
        _chain(pools, [pools.scope(model, f"m{i // 2}", f"Class{i // 2}", call=i % 2) for i in range(count)])
    )


def deep(count: int) -> Capture:
    """A chain of scopes, each in the one before, with an operator in every one."""
    pools = Pools()
    scopes: list[int] = [0]
    for i in range(count):
        scopes.append(pools.scope(scopes[-1], f"layer{i}", "Layer"))
    return _capture(_chain(pools, scopes[1:]))


def deepest(count: int) -> Capture:
    """The same chain with its operators in the innermost scope only."""
    pools = Pools()
    scope = 0
    for i in range(count):
        scope = pools.scope(scope, f"layer{i}", "Layer")
    return _capture(_chain(pools, [scope] * 10))


def wide(count: int) -> Capture:
    """One scope with that many operators."""
    pools = Pools()
    return _capture(_chain(pools, [pools.scope(0, "model", "Model")] * count))


def kernels(count: int) -> Capture:
    """A kernel for every operator, each with a name of its own."""
    pools = Pools()
    b = _chain(pools, [pools.scope(0, "model", "Model")] * count)
    for i in range(count):
        b.group("kernel", (i,), name=f"kernel_{i}", attrs={"grid": i % 100})
    return _capture(b)


def links(count: int) -> Capture:
    """As many gradient links as operators: half of these are forward, half backward, two links each."""
    pools = Pools()
    half = max(count // 2, 1)
    model = pools.scope(0, "model", "Model")
    blocks = [pools.scope(model, f"block{i}", "Block") for i in range(max(half // 100, 1))]
    b = _chain(pools, [blocks[i * len(blocks) // half] for i in range(half)])
    kind = pools.type("float32", (8, 8))
    value = b.n_values - 1
    for i in range(half):
        scope = blocks[(half - 1 - i) * len(blocks) // half]
        value = b.output(b.node("aten.mm.default", [value, half + 1 - i], scope=scope, phase="backward"), kind)
    for i in range(half):
        for source in (half - 1 - i, max(half - 2 - i, 0)):
            b.link("grad", source, half + i)
    return _capture(b)


def stacks(count: int) -> Capture:
    """A call stack of its own for every operator, each with a line of its own."""
    pools = Pools()
    main = Frame("train.py", 1, "main")
    made = [pools.stack([main, Frame(f"model/part{i // 1000}.py", i % 1000 + 1, "forward")]) for i in range(count)]
    return _capture(_chain(pools, [pools.scope(0, "model", "Model")] * count, stacks=made))


def recursion(count: int) -> Capture:
    """A call stack as deep as that: every operator is called from where the one before was."""
    pools = Pools()
    frame = pools.stack([Frame("walk.py", 7, "walk")])
    inner = pools.stacks[frame].frame
    made = [frame]
    for _ in range(count - 1):
        made.append(pools.stacks.add(pools.stacks[made[-1]]._replace(parent=made[-1], frame=inner)))
    return _capture(_chain(pools, [pools.scope(0, "model", "Model")] * count, stacks=made))


def readers(count: int) -> Capture:
    """One value that all operators read."""
    pools = Pools()
    b = GraphBuilder(pools)
    kind = pools.type("float32", (8, 8))
    x = b.input(kind, name="x")
    model = pools.scope(0, "model", "Model")
    shared = b.output(b.node("aten.relu.default", [x], scope=model, phase="forward"), kind)
    b.nodes(
        ["aten.relu.default"] * count, [(shared,)] * count, [kind] * count, scopes=[model] * count,
        phases=["forward"] * count,
    )  # fmt: skip
    return _capture(b)


def arguments(count: int) -> Capture:
    """One operator that reads as many values, and one that makes as many."""
    pools = Pools()
    b = GraphBuilder(pools)
    kind = pools.type("float32", (8, 8))
    model = pools.scope(0, "model", "Model")
    x = b.input(kind, name="x")
    split = b.node("aten.split.Tensor", [x], scope=model, phase="forward")
    made = [b.output(split, kind) for _ in range(count)]
    b.outputs.append(b.output(b.node("aten.cat.default", made, scope=model, phase="forward"), kind))
    return _capture(b)


def parameters(count: int) -> Capture:
    """As many parameters, each with a name and read once."""
    pools = Pools()
    b = GraphBuilder(pools)
    kind = pools.type("float32", (8, 8))
    model = pools.scope(0, "model", "Model")
    x = b.input(kind, name="x")
    first = b.n_values
    for i in range(count):
        b.value(kind, name=f"layer{i}.weight", role="parameter")
    after = b.n_values
    b.nodes(
        ["aten.mm.default"] * count, [(after + i - 1 if i else x, first + i) for i in range(count)], [kind] * count,
        scopes=[model] * count, phases=["forward"] * count,
    )  # fmt: skip
    b.outputs.append(b.n_values - 1)
    return _capture(b)


def operators(count: int) -> Capture:
    """As many operators with names, op names, types and attributes that are all different."""
    pools = Pools()
    b = GraphBuilder(pools)
    model = pools.scope(0, "model", "Model")
    value = b.input(pools.type("float32", (1,)), name="x")
    for i in range(count):
        node = b.node(f"custom.op{i}", [value], name=f"name{i}", scope=model, attrs={"index": i}, phase="forward")
        value = b.output(node, pools.type("float32", (i + 1,)))
    b.outputs.append(value)
    return _capture(b)


_IN_A_STAGE = 200  # operators


def stages(count: int) -> Capture:
    """A line of stages with 200 operators each, joined by stage links: `count` operators in all."""
    pools = Pools()
    model = pools.scope(0, "model", "Model")
    scopes = [pools.scope(model, f"block{i}", "Block") for i in range(10)]
    builders = [
        _chain(pools, [scopes[i * 10 // _IN_A_STAGE] for i in range(_IN_A_STAGE)])
        for _ in range(max(count // _IN_A_STAGE, 2))
    ]
    capture = _capture(*builders)
    same = frozen(range(_IN_A_STAGE))
    for i in range(len(builders) - 1):
        capture.stage_links.append(StageLink(i, i + 1, "lowers", same, same, "reported"))
    return capture


STRUCTURES: dict[str, Callable[[int], Capture]] = {
    maker.__name__: maker
    for maker in (
        nested, flat, tops, classes, deep, deepest, wide, kernels, links, stacks, recursion, readers, arguments,
        parameters, operators, stages,
    )
}  # fmt: skip
