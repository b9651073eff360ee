"""how="joint": AOTAutograd's graph of forward and backward in one, and the two that it is split into."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from opscope.errors import OpscopeError
from opscope.ir import Capture, GraphBuilder, Pools, Stage, StageLink, add_listings
from opscope.ir.columns import frozen
from opscope.sources import embed, exact
from opscope.tracers.torch import private
from opscope.tracers.torch.kept import modules_in
from opscope.tracers.torch.private import the_torch

from .compiling import Compiled, Owners, add_break, compiled_run, no_graph
from .errors import cannot
from .fxgraph import Built, FxGraph, Named
from .guard import unchanged
from .listings import of_fx
from .origin import origin
from .places import Places


def capture(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, caller: FrameType | None = None) -> Capture:
    torch = the_torch()

    graphs = _Graphs(target)
    backend = private.joint_backend(graphs.partitioned, graphs.inference)
    if backend is None:
        raise OpscopeError("how='joint' needs AOTAutograd, which this torch does not have where it used to be")

    def noting(module: Any, examples: list[Any]) -> Any:
        graphs.begin(module, examples)
        return backend(module, examples)

    with unchanged(target), torch.enable_grad():
        try:
            run = compiled_run(target, args, kwargs, noting)
        except Exception as error:
            raise cannot("joint", error, caller) from error
    if not graphs.capture.stages:
        raise no_graph("joint", run)
    return graphs.finish(run)


class _Graphs:
    """Turns graphs into stages as they come: the partitioner changes the joint one."""

    def __init__(self, target: Any) -> None:
        torch = the_torch()

        pools = Pools()
        self.capture = Capture(pools, origin=origin("joint"))
        self.places = Places(pools, target if isinstance(target, torch.nn.Module) else None)
        self.owners = Owners(modules_in((target,)))
        self.names: list[Named] = []
        self.reasons: list[Any] = []
        self.count = 0

    def begin(self, module: Any, examples: list[Any]) -> None:
        """Names for `primals_1`, `primals_2`, …: AOTAutograd keeps the order of Dynamo's inputs."""
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        self.names = [self.owners.of(node, example) for node, example in zip(inputs, examples, strict=False)]
        self.reasons.append(private.compile_reason(module))
        self.count += 1

    def named(self, node: Any) -> Named | None:
        kind, _, number = node.name.rpartition("_")
        if kind == "primals" and number.isdigit() and int(number) <= len(self.names):
            return self.names[int(number) - 1]
        if kind == "tangents":
            return Named(node.name, "gradient")
        return Named(node.name, "activation") if kind not in ("primals", "arg") else None

    def partitioned(self, joint: Any, split: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
        suffix = "" if self.count == 1 else f" {self.count}"
        whole, built = self.stage(f"joint{suffix}", joint, _phase, None, relate=self.pair, gradients=True)
        forward, backward = split()
        is_forward = {name for name, node in built.sources.items() if _phase(node) == "forward"}
        after, part = self.stage(f"forward{suffix}", forward, lambda node: "forward", whole)
        self.lower(whole, built, after, part)

        def phase(node: Any) -> str:  # what the backward graph computes again, to have less to keep
            return "recompute" if node.name in is_forward else "backward"

        after, part = self.stage(f"backward{suffix}", backward, phase, whole, gradients=True)
        self.lower(whole, built, after, part)
        return forward, backward

    def inference(self, module: Any) -> None:
        suffix = "" if self.count == 1 else f" {self.count}"

        def named(node: Any) -> Named | None:
            kind, _, number = node.name.rpartition("_")
            fits = kind == "arg" and number.isdigit() and int(number) <= len(self.names)
            return self.names[int(number) - 1] if fits else None

        self.stage(f"inference{suffix}", module, lambda node: "forward", None, named=named)
        self.capture.warnings.append(
            f"stage 'inference{suffix}': nothing in this graph requires a gradient, so it has no backward"
        )

    def stage(
        self,
        name: str,
        module: Any,
        phase: Callable[[Any], str],
        after: int | None,
        *,
        relate: Callable[[GraphBuilder, Built], None] | None = None,
        named: Callable[[Any], Named | None] | None = None,
        gradients: bool = False,
    ) -> tuple[int, Built]:
        pools = self.capture.pools

        def related(builder: GraphBuilder, built: Built) -> None:
            if relate is not None:
                relate(builder, built)
            for node in _results(module.graph) if gradients else ():
                if node.name in built.nodes and phase(node) == "backward":
                    builder.set_role(built.values[node.name], "gradient")

        way = FxGraph(pools, self.places, owner=module, named=named or self.named, phase=phase, relate=related)
        built = way.build(module.graph)
        native = module.print_readable(print_output=False)
        listings = of_fx(module.graph, module.code, native, built.nodes)
        self.capture.stages.append(Stage(name, built.graph, after=after))
        add_listings(self.capture, len(self.capture.stages) - 1, listings)
        return len(self.capture.stages) - 1, built

    # -- what belongs together --------------------------------------------------------------------

    def pair(self, builder: GraphBuilder, built: Built) -> None:
        """Backward operators and the forward operator whose gradient they compute: they have its number."""
        forward: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        for name, node in built.sources.items():
            if _phase(node) == "forward" and node.meta.get("seq_nr") is not None:
                forward[node.meta["seq_nr"]].append((built.nodes[name], node))
        backward = [(name, node) for name, node in built.sources.items() if _phase(node) == "backward"]
        unpaired = adding = 0
        for name, node in backward:
            if node.meta.get("is_gradient_acc"):
                adding += 1
                continue
            candidates = forward.get(node.meta.get("seq_nr"), [])
            stack = _path(node.meta.get("fwd_nn_module_stack"))
            # Operators that need no gradient have the number of the one before: the first, or the one of the same
            # module, is the one that was differentiated.
            here = [index for index, other in candidates if stack and _path(other.meta.get("nn_module_stack")) == stack]
            if here or candidates:
                builder.link("grad", here[0] if here else candidates[0][0], built.nodes[name])
            else:
                unpaired += 1
        if adding:
            self.capture.warnings.append(
                f"{adding} of {len(backward)} backward operators have no forward operator: they add up the "
                "gradients of values that are read more than once"
            )
        if unpaired:
            self.capture.warnings.append(
                f"{unpaired} of {len(backward)} backward operators have no forward operator: autograd gave "
                "them the number of none"
            )

    def lower(self, whole: int, joint: Built, after: int, part: Built) -> None:
        pairs = [(joint.nodes[name], index) for name, index in part.nodes.items() if name in joint.nodes]
        new = [name for name in part.sources if name not in joint.nodes]
        if pairs:
            source, target = (frozen(np.array(c, dtype=np.int32)) for c in zip(*sorted(set(pairs)), strict=True))
            self.capture.stage_links.append(StageLink(whole, after, "lowers", source, target, "name"))
        if new:
            shown = ", ".join(new[:5]) + (" …" if len(new) > 5 else "")
            stage = self.capture.stages[after].name
            self.capture.warnings.append(
                f"stage {stage!r}: {len(new)} operators are not in the joint graph: the partitioner made them ({shown})"
            )

    def finish(self, run: Compiled) -> Capture:
        for reason in self.reasons:
            add_break(run, reason)
        capture = self.capture
        capture.warnings += [*map(str, run.breaks), *run.recompiles]
        embed(capture, exact)
        return capture


def _phase(node: Any) -> str:
    return "backward" if node.meta.get("partitioner_tag") == "is_backward" else "forward"


def _path(stack: Any) -> tuple[str, ...]:
    return tuple(stack) if stack else ()


def _results(graph: Any) -> list[Any]:
    """The nodes that a graph returns; its last node is the output."""
    return list(next(reversed(graph.nodes)).all_input_nodes)
