"""What many nodes share, stored once: strings, types, scopes, frames, stacks and attribute sets.

A pool only grows: an id, once given, means the same for ever. So graphs can be frozen while the
pools of their capture still take in the next stage. Entry 0 of every pool is "nothing" (the empty
string, the unknown type, the root scope, the empty stack, no attributes): a column needs no nulls.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from opscope.errors import BadInput

from .chains import ENDS, LONGEST_LABEL, Chains
from .columns import Int32

Row = TypeVar("Row")
Pool = TypeVar("Pool", bound="Interned[Any]")

Dim = int | str | None  # a size, a symbol such as "s0", or unknown


class Interned(Generic[Row]):
    """An append-only list without repeats. Rows read from a file are only made when asked for."""

    def __init__(self, nothing: Row) -> None:
        self._rows: list[Row] = [nothing]
        self._ids: dict[Row, int] | None = None  # made when something is added
        self._load: Callable[[], list[Row]] | None = None
        self._unloaded = 0

    @classmethod
    def loaded(cls: type[Pool], count: int, load: Callable[[], list[Any]]) -> Pool:
        """A pool from a file: `load` is called when the first row is looked at."""
        pool = cls.__new__(cls)
        pool._rows, pool._ids, pool._load, pool._unloaded = [], None, load, count
        return pool

    def add(self, row: Row) -> int:
        return self.ids()[row]

    def add_many(self, rows: Sequence[Row]) -> Int32:
        """The ids of many rows at once."""
        return np.fromiter(map(self.ids().__getitem__, rows), np.int32, len(rows))

    def ids(self) -> dict[Row, int]:
        """Row -> id. Asking for a row that is not there adds it: the dict counts up by itself, in C."""
        if self._ids is None:
            rows = self.rows()
            self._ids = defaultdict(count(len(rows)).__next__, zip(rows, range(len(rows)), strict=True))
        return self._ids

    def rows(self) -> list[Row]:
        if self._load is not None:
            self._rows, self._load, self._unloaded = self._load(), None, 0
        if self._ids is not None and len(self._rows) < len(self._ids):
            # From the end, where the new ones are: who asks after every addition would else walk over all of them.
            new = list(islice(reversed(self._ids), len(self._ids) - len(self._rows)))
            self._rows.extend(reversed(new))
        return self._rows

    def __getitem__(self, index: int) -> Row:
        return self._rows[index] if index < len(self._rows) else self.rows()[index]

    def __len__(self) -> int:
        return self._unloaded or len(self._ids or self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())


class Strings(Interned[str]):
    """Interned text. What UTF-8 cannot hold (a lone surrogate) is written out as \\udc80."""

    def __init__(self) -> None:
        super().__init__("")

    def add(self, row: str) -> int:
        return self.ids()[row if row.isascii() else clean(row)]

    def add_many(self, rows: Sequence[str]) -> Int32:
        return super().add_many(rows if all(map(str.isascii, rows)) else [clean(row) for row in rows])


def clean(text: str) -> str:
    """The text as UTF-8 can hold it."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


class Type(NamedTuple):
    """The type of a tensor. `dtype` "" and `shape` None mean: not known."""

    dtype: str
    shape: tuple[Dim, ...] | None

    def __str__(self) -> str:
        if self == UNKNOWN:
            return "?"
        if self.shape is None:
            return f"{self.dtype or '?'}[…]"
        return f"{self.dtype or '?'}[{','.join('?' if d is None else str(d) for d in self.shape)}]"

    @property
    def elements(self) -> int | None:
        """How many numbers it holds; None when a dimension is not known, or they are more than anything can hold."""
        if self.shape is None:
            return None
        count = 1
        for dim in self.shape:
            if not isinstance(dim, int) or not 0 <= dim < MOST_ELEMENTS:
                return None
            count *= dim
        return count if count < MOST_ELEMENTS else None


UNKNOWN = Type("", None)
MOST_ELEMENTS = 1 << 60  # a size above is not believed


class Scope(NamedTuple):
    """One place in the tree of modules. `call` numbers the calls of one module, from 0."""

    parent: int
    name: str
    cls: str
    call: int


class Frame(NamedTuple):
    """A line of source. `line` 0 and an empty function mean: not known."""

    file: str
    line: int
    function: str


class Stack(NamedTuple):
    """A call stack as a prefix tree: the stack of the callers, and one more frame inside."""

    parent: int
    frame: int


_NEAR = 256  # paths that are kept at a time


class Pools:
    """The pools of one capture, shared by all its stages."""

    def __init__(self) -> None:
        self.strings: Strings = Strings()
        self.types: Interned[Type] = Interned(UNKNOWN)
        self.scopes: Interned[Scope] = Interned(Scope(-1, "", "", 0))
        self.frames: Interned[Frame] = Interned(Frame("", 0, ""))
        self.stacks: Interned[Stack] = Interned(Stack(-1, 0))
        self.attr_texts: Interned[str] = Interned("{}")
        self._chains: dict[int, Chains] = {}  # of the trees among them, by pool
        self._paths_near: dict[int, str] = {}  # of scopes whose parts were asked for last

    # -- adding ---------------------------------------------------------------------------------

    def string(self, text: str) -> int:
        return self.strings.add(text)

    def type(self, dtype: str, shape: Sequence[Dim] | None) -> int:
        return self.types.add(
            Type(
                clean(dtype),
                None if shape is None else tuple(clean(d) if isinstance(d, str) else d for d in shape),
            )
        )

    def scope(self, parent: int, name: str, cls: str = "", call: int = 0) -> int:
        return self.scopes.add(Scope(parent, clean(name), clean(cls), call))

    def stack(self, frames: Sequence[Frame]) -> int:
        """The id of a call stack, outermost frame first."""
        stack = 0
        for frame in frames:
            frame = Frame(clean(frame.file), frame.line, clean(frame.function))
            stack = self.stacks.add(Stack(stack, self.frames.add(frame)))
        return stack

    def attrs(self, attrs: Mapping[str, Any]) -> int:
        return self.attr_texts.add(attrs_to_text(attrs)) if attrs else 0

    # -- looking up -----------------------------------------------------------------------------

    def scope_chain(self, scope: int) -> list[Scope]:
        """From the outermost module to this one, without the root."""
        return [self.scopes[i] for i in _up(self.scopes, scope)][::-1]

    def scope_path(self, scope: int, label: Callable[[Scope], str] | None = None) -> str:
        """A readable path such as `model/layer1/0`; the second call of a module is `0#2`. One of more than 32 modules
        names the 16 outermost and the 16 innermost: `a/b/…99968…/y/z`, with how many are left out."""
        scopes = self.scopes
        return "/".join(self.scope_chains.shown(scope, lambda i: _bounded((label or scope_label)(scopes[i]))))

    def scope_path_near(self, scope: int) -> str:
        """`scope_path`, for scopes that are asked for one after the other in the order of their tree."""
        around, level = self.scopes[scope].parent, self.scope_chains.level[scope]
        if not scope or level > 2 * ENDS:
            return self.scope_path(scope)
        above = self._paths_near.get(around)
        if above is None:
            if len(self._paths_near) > _NEAR:
                self._paths_near.clear()
            above = self._paths_near[around] = self.scope_path(around)
        text = _bounded(scope_label(self.scopes[scope]))
        return f"{above}/{text}" if above else text

    def scope_paths(self, label: Callable[[Scope], str] | None = None) -> list[str]:
        """`scope_path` of every scope; the root's is empty."""
        label, rows, level = label or scope_label, self.scopes.rows(), self.scope_chains.level
        paths = [""]
        for i in range(1, len(rows)):  # parents come first
            if level[i] <= 2 * ENDS:
                above, text = paths[rows[i].parent], _bounded(label(rows[i]))
                paths.append(f"{above}/{text}" if level[i] > 1 else text)
            else:
                paths.append(self.scope_path(i, label))
        return paths

    def frames_of(self, stack: int) -> list[Frame]:
        """The frames of a stack, outermost first."""
        return [self.frames[self.stacks[i].frame] for i in _up(self.stacks, stack)][::-1]

    def innermost(self, stack: int) -> Frame | None:
        """The line itself that a stack leads to."""
        return self.frames[self.stacks[stack].frame] if stack else None

    def stack_lines(self, stack: int, text: Callable[[Frame], str]) -> list[str]:
        """The frames of a stack as text, outermost first; of more than 32 the 16 at each end, as in a path."""
        frames, stacks = self.frames, self.stacks
        return self.stack_chains.shown(stack, lambda i: _bounded(text(frames[stacks[i].frame]), 4 * LONGEST_LABEL))

    @property
    def scope_chains(self) -> Chains:
        return self._chains_of(self.scopes)

    @property
    def stack_chains(self) -> Chains:
        return self._chains_of(self.stacks)

    def _chains_of(self, pool: Interned[Any]) -> Chains:
        """How deep the entries of a tree are. A pool only grows, and so does this."""
        chains = self._chains.get(id(pool))
        if chains is None or chains.pool is not pool:
            chains = self._chains[id(pool)] = Chains(pool)
        chains.grow()
        return chains

    def attrs_of(self, attrs: int) -> dict[str, Any]:
        return text_to_attrs(self.attr_texts[attrs])


def _up(pool: Interned[Any], entry: int) -> Iterator[int]:
    """This entry of a tree and those around it, without the root."""
    while entry > 0:
        yield entry
        entry = pool[entry].parent


def _bounded(text: str, most: int = LONGEST_LABEL) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def scope_label(scope: Scope) -> str:
    """What the scope is called: its name, or its class in brackets where it has none."""
    name = scope.name or f"({scope.cls})"
    return f"{name}#{scope.call + 1}" if scope.call else name


# Attribute sets are kept as JSON text: one string column in the file, read by the page, by DuckDB and
# by Python alike, and parsed only for the node that is looked at. JSON has no NaN: it is spelled out.


def attrs_to_text(attrs: Mapping[str, Any]) -> str:
    try:
        return clean(json.dumps(attrs, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    except ValueError:
        spelled = _spell_floats(attrs)
        return clean(json.dumps(spelled, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def text_to_attrs(text: str) -> dict[str, Any]:
    try:
        attrs = json.loads(text, object_hook=_unspell_float)
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise BadInput(f"the attributes {text[:60]!r} are not JSON ({error}): the file is damaged") from None
    if not isinstance(attrs, dict):
        raise BadInput(f"the attributes {text[:60]!r} are not a JSON object: the file is damaged")
    return cast("dict[str, Any]", attrs)


def _spell_floats(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"$float": repr(value)}
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value)
        return {key: _spell_floats(item) for key, item in entries.items()}
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        return [_spell_floats(item) for item in items]
    return value


def _unspell_float(value: dict[str, Any]) -> Any:
    return float(value["$float"]) if value.keys() == {"$float"} else value
