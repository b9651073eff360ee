"""Where an operator stands: its modules, its source lines, and the phase that its stack tells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from opscope.ir import Frame

from .dump import Op, StackEntry

# The classes of jittor.optim. A user's own optimizer is recognised by what it does: see phases.py.
OPTIMIZERS = frozenset({"Optimizer", "SGD", "RMSprop", "Adam", "AdamW", "Adan", "AdaGrad", "LRScheduler"})

Module = tuple[str, str]  # (name, class)


class Place(NamedTuple):
    modules: tuple[Module, ...]  # outermost first
    frames: tuple[Frame, ...]  # outermost first
    order: int  # how many times it is a gradient: 2 for the gradient of a gradient, 0 for no gradient
    level: int  # 2: modules; 3: full Python stacks, without modules
    kinds: frozenset[str] = frozenset()  # module, optimizer, init: of a live capture, which knows
    calls: tuple[int, ...] = ()  # the call number of each module
    around: Module = ("", "")  # a scope that is no module: `step 2`, `before recording`

    @property
    def is_init(self) -> bool:
        if self.kinds:
            return "init" in self.kinds
        if self.level == 3:
            return any(frame.function == "__init__" for frame in self.frames)
        return any(name == f"{cls}_init" for name, cls in self.modules)

    @property
    def in_optimizer(self) -> bool:
        """By the class names of jittor.optim, or, in full stacks, by its file."""
        if self.kinds:
            return "optimizer" in self.kinds
        if self.level == 3:
            return any(frame.file.replace("\\", "/").endswith("jittor/optim.py") for frame in self.frames)
        return bool(self.modules) and self.modules[-1][1] in OPTIMIZERS

    @property
    def in_module(self) -> bool:
        if self.level == 3:
            return any(frame.function in ("execute", "__call__") for frame in self.frames)
        return bool(self.modules)


def place_of(op: Op) -> Place:
    """A backward operator carries the stack of its forward operator behind one or more `grad` entries."""
    entries = list(op.stack)
    order = 0
    while entries and entries[0][:3] == ("grad", "Grad", ""):
        order += 1
        del entries[0]
    raw = [entry for entry in entries if entry.is_raw]
    level = 3 if any(entry.type for entry in raw) else 2
    inside = [entry for entry in entries if not entry.is_raw]
    return Place(
        tuple((entry.name, entry.type) for entry in inside),
        tuple(_frames(entries)),
        order,
        level,
        frozenset(entry.kind for entry in inside if entry.kind),
        tuple(entry.call for entry in inside),
        ("before recording", "") if op.pending else (f"step {op.step}", "") if op.step else ("", ""),
    )


def _frames(entries: Iterable[StackEntry]) -> Iterable[Frame]:
    """At level 2 an entry holds the line that called the module, and no function name."""
    for entry in entries:
        if entry.file:
            yield Frame(entry.file, entry.line, entry.function or (entry.type if entry.is_raw else ""))


def without_repeats(modules: tuple[Module, ...], reads: Iterable[str]) -> tuple[Module, ...]:
    """`ln1/ln1` as `ln1`: Jittor lists a module twice when its call passes through a function that takes
    something else first. A Sequential in a Sequential looks the same (`0/0`), so a repeat is only dropped
    where the names of the parameters read there (`ln1.weight`) say that there is one level, not two."""
    short = tuple(m for i, m in enumerate(modules) if i == 0 or m != modules[i - 1])
    if len(short) == len(modules):
        return modules
    owners = {owner for name in reads if (owner := name.rpartition(".")[0])}
    once = any(_ends(_dotted(short), owner) for owner in owners)
    twice = any(_ends(_dotted(modules), owner) and not _ends(_dotted(short), owner) for owner in owners)
    return short if once and not twice else modules


def _dotted(modules: tuple[Module, ...]) -> str:
    return ".".join(name for name, _ in modules)


def _ends(path: str, owner: str) -> bool:
    return path == owner or path.endswith(f".{owner}")
