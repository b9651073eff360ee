"""One backward pass: the gradient nodes behind some tensors, and what a hook on each sees go by.

The hooks only look. Handing back `None` means "keep what the node made", which undoes what a hook of the user's changed
before; handing back the tensors keeps it. (For a list of tensors there is only `None`.) Paddle 3.3.1 never lets go of
the list it is handed, so it is always the same one, and empty in the end.

A gradient that a node makes is paired with the edge it goes along by order, and only where the two counts agree;
otherwise what arrives at the other end, or the parameter that it is added into, says what it is. Each edge carries
which of these it was.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from opscope.ir.measurements import Figures, Measured, first_of, statistics_of
from opscope.ir.tally import figures_of
from opscope.readers.paddle.backward import FIGURES, Edge, GradNode, types_from_leaves
from opscope.tracers.contract import STATISTICS

from . import private
from .measuring import numbers_of

_LEFT_BEHIND: list[Any] = []


def register(node: Any, hook: Any) -> Any:
    """A hook on a node; what `remove()` takes away again is given back."""
    return node._register_post_hook(hook)


class Pass:
    """The backward pass from some tensors. It walks at once; `watch()` registers the hooks, `close()` removes them and
    lets go of Paddle's nodes."""

    def __init__(
        self,
        tensors: Iterable[Any],
        *,
        statistics: bool = False,
        values: bool | str = False,
        clock: Callable[[], float] | None = None,
        tick: Callable[[], int] | None = None,
        others: Container[int] | None = None,
    ) -> None:
        """`statistics` measures the gradients, `values` also keeps their numbers, `clock` times the nodes.

        `others`: pointers of the nodes that others have hooks on, where that is known: only there tensors
        are handed back."""
        self._statistics = statistics or bool(values)
        self._values = values
        self._clock = clock
        self._resumed = 0.0  # when the engine last went on
        self.seconds: dict[int, float] = {}  # node -> the time since the engine went on until it had run
        self.measured: dict[int, Measured] = {}  # by id of an edge
        self.figures: dict[int, Figures] = {}  # the same with values="stats"
        self._others = others
        self._back: list[Any] = []
        self.nodes: list[GradNode] = []
        self.index: dict[int, int] = {}  # pointer -> node
        self.times: dict[int, float] = {}  # node -> when it ran
        self.second: list[tuple[int, int]] = []  # (node, pointer of a node that its own running made): create_graph
        self.ran = False
        self.failed = False
        self.register = register
        self.numbers_of: Callable[[Any], Any] = numbers_of
        self._tick = tick or self._count
        self._alive: list[Any] = []  # an address only means something while its node lives
        self._handles: list[Any] = []
        self._hooks: list[Any] = []
        self.started = 0  # the tick before the first node
        self._buffers: dict[int, list[tuple[Edge, int]]] = {}  # target -> edges on their way, with their memory
        self._words: dict[Any, str] = {}
        self._counted = 0
        self._expanded = 0
        self._asked: set[int] = set()  # nodes that are handed something by a node without hook
        self._arrivals: dict[int, Edge] = {}
        self.roots: list[int] = []  # the node of each tensor that has one
        for tensor in tensors:
            node = private.gradient_node(tensor)
            if node is not None:
                self.roots.append(self._walk(node))
                # The gradient that the pass begins with is like the tensor.
                start = self._word(tensor.dtype).removeprefix("paddle."), tuple(tensor.shape)
                self.nodes[self.roots[-1]].starts.append(start)

    def _count(self) -> int:
        self._counted += 1
        return self._counted

    # -- walking ----------------------------------------------------------------------------------

    def _walk(self, root: Any) -> int:
        """Breadth first and without recursion: a chain is as deep as it is long."""
        start = self._know(root)
        while self._expanded < len(self.nodes):
            i = self._expanded
            following = self._alive[i].next_functions
            self.nodes[i].edges = [Edge(None if node is None else self._know(node)) for node in following]
            self._expanded += 1
        return start

    def _know(self, node: Any) -> int:
        pointer = int(node.node_ptr())
        found = self.index.get(pointer)
        if found is None:
            found = self.index[pointer] = len(self.nodes)
            self.nodes.append(GradNode(str(node.name()), hex(pointer)))
            self._alive.append(node)
        return found

    def held(self) -> list[Any]:
        """Paddle's own nodes, for callers that must keep them alive."""
        return list(self._alive)

    # -- watching ---------------------------------------------------------------------------------

    def watch(self) -> None:
        if self._clock is not None:
            self._resumed = self._clock()
        for i, node in enumerate(self._alive):
            if private.can_hook(self.nodes[i].name):
                self._register(i, node)
            else:
                self._asked.update(edge.target for edge in self.nodes[i].edges if edge.target is not None)

    def _register(self, i: int, node: Any) -> None:
        hook = self._hook(i)
        self._hooks.append(hook)
        self._handles.append(self.register(node, hook))

    def _hook(self, i: int) -> Callable[[Any, Any], list[Any]]:
        pointer = int(self.nodes[i].ptr, 16)

        def look(outputs: Any, inputs: Any) -> list[Any]:
            if self._clock is not None:
                self.seconds.setdefault(i, self._clock() - self._resumed)
            try:
                if self._handles:
                    self._see(i, outputs, inputs)
            except Exception as error:  # it would go on into the user's backward pass
                self.nodes[i].attrs.setdefault("not seen", f"{type(error).__name__}: {error}"[:200])
            keep = self._others is not None and pointer not in self._others
            self._back[:] = [None if keep or not _is_tensor(held) else held for held in outputs]
            if self._clock is not None:
                self._resumed = self._clock()
            return self._back

        return look

    def _see(self, i: int, outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
        self.ran = True
        again = i in self.times
        self.times.setdefault(i, float(self._tick()))
        if again:
            return
        node = self.nodes[i]
        self._arrived(i, inputs)
        flat = [(slot, rank, tensor) for slot, held in enumerate(outputs) for rank, tensor in enumerate(_each(held))]
        made = [entry for entry in flat if entry[2] is not None and entry[2]._is_initialized()]
        edges = [edge for edge in node.edges if edge.target is not None]
        if len(made) != len(edges):
            node.attrs["pairing"] = f"{len(made)} gradients for {len(edges)} edges"
            by_place = len(flat) == len(node.edges)
            made = [flat[k] for k, edge in enumerate(node.edges) if edge.target is not None] if by_place else []
        for edge, (slot, rank, tensor) in zip(edges, made, strict=False):
            edge.out_slot, edge.out_rank = slot, rank
            if tensor is None or not tensor._is_initialized():
                continue
            self._describe(edge, tensor, "hook")
            assert edge.target is not None
            self._buffers.setdefault(edge.target, []).append((edge, _memory(tensor)))
            if (made_by := private.gradient_node(tensor)) is not None:
                self.second.append((i, int(made_by.node_ptr())))
            if self._statistics:
                self._measure(edge, tensor)

    def _measure(self, edge: Edge, tensor: Any) -> None:
        numbers = self.numbers_of(tensor)
        if numbers is None:
            return
        if self._values == STATISTICS:
            figures = figures_of([numbers], edge.dtype)
            if figures is not None:
                self.figures[id(edge)] = figures
            return
        statistics = statistics_of(numbers)
        edge.figures = tuple(float(getattr(statistics, name)) for name in FIGURES)
        if self._values:
            self.measured[id(edge)] = Measured(statistics, first_of(numbers))

    def _describe(self, edge: Edge, tensor: Any, evidence: str) -> None:
        edge.dtype = self._word(tensor.dtype).removeprefix("paddle.")
        edge.shape = tuple(tensor.shape)
        edge.place = str(tensor.place)
        edge.evidence = evidence

    def _word(self, dtype: Any) -> str:
        found = self._words.get(dtype)
        if found is None:
            found = self._words[dtype] = str(dtype)
        return found

    def _arrived(self, i: int, inputs: Sequence[Any]) -> None:
        """Into which slot each gradient went: the only one, or the one that holds its memory."""
        slots = [
            (slot, rank, tensor)
            for slot, held in enumerate(inputs)
            for rank, tensor in enumerate(_each(held))
            if tensor is not None and tensor._is_initialized()
        ]
        waiting = self._buffers.pop(i, [])
        if len(inputs) == 1 and not isinstance(inputs[0], list | tuple):
            for edge, _ in waiting:
                edge.in_slot, edge.in_rank = 0, 0
        elif slots:
            places = {_memory(tensor): (slot, rank) for slot, rank, tensor in slots}
            for edge, memory in waiting:
                edge.in_slot, edge.in_rank = places.get(memory, (-1, -1))
            taken = {(edge.in_slot, edge.in_rank) for edge, _ in waiting}
            left = [entry for entry in slots if entry[:2] not in taken]
            for edge, _ in waiting:  # several were added up, so their memory is gone: is there only one place left?
                if edge.in_slot < 0:
                    fits = [entry for entry in left if tuple(entry[2].shape) == edge.shape]
                    if len(fits) == 1:
                        edge.in_slot, edge.in_rank = fits[0][:2]
        if i in self._asked and len(slots) == 1:
            slot, rank, tensor = slots[0]
            self._arrivals[i] = Edge(None, in_slot=slot, in_rank=rank)
            self._describe(self._arrivals[i], tensor, "next node")

    # -- the end ----------------------------------------------------------------------------------

    def close(self, failed: bool = False) -> None:
        """`failed`: the pass ended with an exception. Then paddle.grad leaves copies of its nodes behind, hooks and
        all, which the next paddle.grad frees without holding Python's lock: with the last reference to a hook, the
        process would abort. So such hooks, which do nothing any more, are kept."""
        self._back.clear()
        if failed:
            _LEFT_BEHIND.extend(self._hooks)
        self._hooks.clear()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._buffers.clear()
        self._from_arrivals()
        self._alive.clear()

    def _from_arrivals(self) -> None:
        """What a node without hook (PyLayer, to_static) hands on is known by who takes it."""
        for node in self.nodes:
            for edge in node.edges:
                seen = None if edge.target is None or edge.evidence else self._arrivals.get(edge.target)
                if seen is not None:
                    edge.dtype, edge.shape, edge.place, edge.evidence = (
                        seen.dtype,
                        seen.shape,
                        seen.place,
                        seen.evidence,
                    )
                    edge.in_slot, edge.in_rank = seen.in_slot, seen.in_rank

    def name_leaves(self, names: dict[int, tuple[str, Any]]) -> None:
        """`names`: pointer of an accumulation node -> the name of its tensor, and the tensor."""
        for pointer, i in self.index.items():
            known = names.get(pointer) if self.nodes[i].is_leaf else None
            if known is not None:
                node = self.nodes[i]
                node.leaf = known[0]
                node.leaf_dtype, node.leaf_shape = str(known[1].dtype).removeprefix("paddle."), tuple(known[1].shape)
        types_from_leaves(self.nodes)

    def problems(self) -> Iterable[str]:
        """What could not be seen, in words."""
        edges = [edge for node in self.nodes for edge in node.edges if edge.target is not None]
        unknown = [edge for edge in edges if not edge.evidence]
        if unknown and self.ran:
            yield f"the gradients on {len(unknown)} of {len(edges)} edges were not seen"
        blind = sorted({node.name for node in self.nodes if not node.is_leaf and not private.can_hook(node.name)})
        if blind:
            yield (
                f"Paddle does not show the inside of {', '.join(blind)[:200]}: what they pass on is known from its "
                "receivers, and is not measured"
            )


def _is_tensor(held: Any) -> bool:
    return held is not None and not isinstance(held, list | tuple) and held._is_initialized()


def _each(held: Any) -> Sequence[Any]:
    return held if isinstance(held, list | tuple) else (held,)  # pyright: ignore[reportUnknownVariableType]


def _memory(tensor: Any) -> int:
    try:
        return int(tensor.data_ptr())
    except Exception:
        return 0
