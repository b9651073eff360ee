"""Pickles that hold weights, followed without unpickling: nothing is imported, nothing is called.

What a pickle would import becomes a `Name`, what it would call or build a `Made`, what it would ask its archive for a
`Held`: inert records. Long byte strings are passed over: the result says where they lie.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from opscope.errors import BadInput
from opscope.readers.pages import Pages, Span, Whole

_MOST = 5_000_000  # opcodes; a checkpoint has about fifty for each tensor
_LONG = 1024  # bytes that are read; more are numbers
_LONGEST_NUMBER = 64
_KEYS = (str, int, float, bytes, type(None))


@dataclass(frozen=True)
class Name:
    text: str


@dataclass(eq=False)
class Made:
    """Something that the pickle would call or build: what, with which arguments, and what it would put into it."""

    name: str
    args: tuple[Any, ...] = ()
    state: Any = None
    items: dict[Any, Any] = field(default_factory=dict[Any, Any])
    listed: list[Any] = field(default_factory=list[Any])


@dataclass(eq=False)
class Held:
    """What a pickle asks its archive for."""

    ident: Any


class _Mark:
    pass


_MARK = _Mark()
# opcode -> struct code of the length before a text or bytes
_TEXTS = {0x58: "<I", 0x8C: "<B", 0x8D: "<Q", 0x54: "<i", 0x55: "<B"}
_BYTES = {0x42: "<I", 0x43: "<B", 0x8E: "<Q", 0x96: "<Q"}


class Follower:
    """Follows one pickle from a place on; `end` is where it stops."""

    def __init__(self, data: Pages | Whole, at: int, size: int) -> None:
        self._view, self._need = data.view, data.need
        self._at, self._size = at, size
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        try:
            self.value = self._run()
        except (IndexError, struct.error, TypeError, ValueError, KeyError, OverflowError) as error:
            self._damaged(f"{type(error).__name__}: {error}")
        self.end = self._at

    def _damaged(self, why: str) -> NoReturn:
        raise BadInput(
            f"not a readable pickle, at byte {self._at:,}: {why}. It may be cut off or damaged: copy it again"
        )

    # -- bytes ------------------------------------------------------------------------------------

    def _pass(self, size: int) -> int:
        """Where the next bytes begin, which are there but may not be read."""
        if size < 0 or size > self._size - self._at:
            self._damaged(f"{size:,} bytes are announced, {self._size - self._at:,} are left")
        at, self._at = self._at, self._at + size
        return at

    def _take(self, size: int) -> bytes:
        at = self._pass(size)
        if size:
            self._need(at, size)
        return bytes(self._view[at : at + size])

    def _number(self, code: str) -> Any:
        return struct.unpack(code, self._take(struct.calcsize(code)))[0]

    def _line(self) -> str:
        begin = self._at
        while self._at < self._size and self._at - begin < _LONG:
            if self._take(1) == b"\n":
                self._need(begin, self._at - begin)
                return bytes(self._view[begin : self._at - 1]).decode("utf-8", "replace")
        self._damaged("a line without an end")

    def _marked(self) -> list[Any]:
        for at in range(len(self._stack) - 1, -1, -1):
            if self._stack[at] is _MARK:
                items = self._stack[at + 1 :]
                del self._stack[at:]
                return items
        raise IndexError("no mark")

    # -- opcodes ----------------------------------------------------------------------------------

    def _run(self) -> Any:
        stack, memo = self._stack, self._memo
        for _ in range(_MOST):
            op = self._take(1)[0]
            if op == 0x2E:  # STOP
                return stack.pop()
            if op in _TEXTS:
                size = self._number(_TEXTS[op])
                if op in (0x54, 0x55) and size > _LONG:  # what Python 2 called a string may be numbers
                    stack.append(Span(self._pass(size), size))
                else:
                    coding = "latin-1" if op in (0x54, 0x55) else "utf-8"
                    stack.append(self._take(size).decode(coding, "replace"))
            elif op in _BYTES:
                size = self._number(_BYTES[op])
                stack.append(Span(self._pass(size), size) if size > _LONG else self._take(size))
            elif op in (0x71, 0x72, 0x94):  # BINPUT, LONG_BINPUT, MEMOIZE
                index = len(memo) if op == 0x94 else self._number("<B" if op == 0x71 else "<I")
                memo[index] = stack[-1]
            elif op in (0x68, 0x6A):
                stack.append(memo[self._number("<B" if op == 0x68 else "<I")])
            elif op in (0x70, 0x67):  # PUT, GET
                index = int(self._line())
                if op == 0x70:
                    memo[index] = stack[-1]
                else:
                    stack.append(memo[index])
            elif op in (0x80, 0x95):  # PROTO, FRAME
                self._take(1 if op == 0x80 else 8)
            elif op in _PLAIN:
                stack.append(_PLAIN[op])
            elif op in _FRESH:
                stack.append(_FRESH[op]())
            elif op in _NUMBERS:
                stack.append(self._number(_NUMBERS[op]))
            elif not (self._value(op) or self._container(op) or self._call(op)):
                self._damaged(f"{op:#04x} is no opcode")
        self._damaged(f"more than {_MOST:,} opcodes")

    def _value(self, op: int) -> bool:
        stack = self._stack
        if op in (0x8A, 0x8B):  # LONG1, LONG4
            size = self._number("<B" if op == 0x8A else "<i")
            if not 0 <= size <= _LONGEST_NUMBER:
                self._damaged(f"a number of {size:,} bytes")
            stack.append(int.from_bytes(self._take(size), "little", signed=True))
        elif op in (0x49, 0x4C):  # INT, LONG
            text = self._line().rstrip("L")
            stack.append({"00": False, "01": True}[text] if text in ("00", "01") else int(text[:_LONGEST_NUMBER]))
        elif op == 0x46:
            stack.append(float(self._line()))
        elif op in (0x53, 0x56):  # STRING, UNICODE
            stack.append(self._line().strip("'\""))
        elif op in (0x30, 0x31):  # POP, POP_MARK
            if op == 0x31 or stack[-1] is _MARK:
                self._marked()
            else:
                stack.pop()
        elif op == 0x32:
            stack.append(stack[-1])
        elif op not in (0x97, 0x98):  # NEXT_BUFFER and READONLY_BUFFER belong to other transports
            return False
        return True

    def _container(self, op: int) -> bool:
        stack = self._stack
        if op in (0x85, 0x86, 0x87):
            count = op - 0x84
            items = tuple(stack[-count:])
            if len(items) < count or _MARK in items:
                raise IndexError("the stack is empty")
            del stack[-count:]
            stack.append(items)
        elif op == 0x74:
            stack.append(tuple(self._marked()))
        elif op in (0x6C, 0x91):  # LIST, FROZENSET
            stack.append(self._marked())
        elif op == 0x64:
            stack.append(_filled({}, self._marked()))
        elif op in (0x61, 0x65, 0x90):  # APPEND, APPENDS, ADDITEMS
            items = [stack.pop()] if op == 0x61 else self._marked()
            target = stack[-1]
            if isinstance(target, Made):
                target.listed.extend(items)
            elif isinstance(target, list):
                cast("list[Any]", target).extend(items)
        elif op in (0x73, 0x75):  # SETITEM, SETITEMS
            items = [stack.pop(), stack.pop()][::-1] if op == 0x73 else self._marked()
            target = stack[-1]
            if isinstance(target, Made):
                _filled(target.items, items)
            elif isinstance(target, dict):
                _filled(cast("dict[Any, Any]", target), items)
        else:
            return False
        return True

    def _call(self, op: int) -> bool:
        stack = self._stack
        if op == 0x63:  # GLOBAL
            stack.append(Name(f"{self._line()}.{self._line()}"))
        elif op == 0x93:  # STACK_GLOBAL
            name, module = stack.pop(), stack.pop()
            stack.append(Name(f"{str(module)[:500]}.{str(name)[:500]}"))
        elif op in (0x52, 0x81):  # REDUCE, NEWOBJ
            args, target = stack.pop(), stack.pop()
            stack.append(_made(target, args))
        elif op == 0x92:  # NEWOBJ_EX
            named, args, target = stack.pop(), stack.pop(), stack.pop()
            stack.append(_made(target, args))
            stack[-1].state = named
        elif op in (0x6F, 0x69):  # OBJ, INST
            if op == 0x69:
                name = f"{self._line()}.{self._line()}"
                stack.append(Made(name, tuple(self._marked())))
            else:
                target, *args = self._marked()
                stack.append(_made(target, tuple(args)))
        elif op == 0x62:  # BUILD
            state = stack.pop()
            if isinstance(stack[-1], Made):
                stack[-1].state = state
        elif op in (0x51, 0x50):  # BINPERSID, PERSID
            stack.append(Held(stack.pop() if op == 0x51 else self._line()))
        elif op in (0x82, 0x83, 0x84):  # EXT1, EXT2, EXT4
            stack.append(Name(f"extension {self._number({0x82: '<B', 0x83: '<H', 0x84: '<i'}[op])}"))
        else:
            return False
        return True


_PLAIN: dict[int, Any] = {0x4E: None, 0x88: True, 0x89: False, 0x28: _MARK, 0x29: ()}
_FRESH: dict[int, Any] = {0x5D: list, 0x7D: dict, 0x8F: list}
_NUMBERS = {0x4B: "<B", 0x4D: "<H", 0x4A: "<i", 0x47: ">d"}


def _made(target: Any, args: Any) -> Made:
    name = target.text if isinstance(target, Name) else target.name if isinstance(target, Made) else "?"
    return Made(name, cast("tuple[Any, ...]", args) if isinstance(args, tuple) else ())


def _filled(target: dict[Any, Any], items: list[Any]) -> dict[Any, Any]:
    for key, value in zip(items[::2], items[1::2], strict=False):
        if isinstance(key, _KEYS):  # others may take for ever to be hashed
            target[key] = value
    return target
