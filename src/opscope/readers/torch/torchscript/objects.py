"""The pickles inside PyTorch's archives, read without unpickling: nothing is imported, nothing is called.

A small machine walks the opcodes. What a pickle would import becomes a `Global`, what it would call a `Call`, an
object a `Thing`: inert records. Only then do we look whether they are what TorchScript writes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from opscope.errors import BadInput
from opscope.readers.torch.names import cpp_dtype

_LONGEST_NUMBER = 9  # bytes; TorchScript has numbers of 64 bits
_PLAIN_KEYS = (str, int, float, bytes, type(None))  # a tuple as a key may take for ever to hash


@dataclass(frozen=True)
class Global:
    """A name that the pickle would import."""

    name: str


@dataclass(eq=False)
class Thing:
    """An object: its class and its state."""

    cls: str
    args: Any = None
    state: Any = None
    items: dict[Any, Any] = field(default_factory=dict[Any, Any])  # of an OrderedDict


@dataclass(eq=False)
class Call:
    """Something that the pickle would call."""

    target: str
    args: Any


@dataclass(frozen=True)
class Storage:
    """Where numbers lie: a file of the archive, which is read for its statistics only."""

    dtype: str
    key: str


@dataclass(eq=False)
class Tensor:
    dtype: str
    shape: tuple[int, ...] | None
    storage: str
    strides: tuple[int, ...] | None = None
    offset: int = 0


class _Mark:
    pass


_MARK = _Mark()


class Pickle:
    """What a pickle builds (`value`), and every name in it (`globals`)."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self.globals: dict[str, None] = {}
        try:
            self.value = self._run(data)
        except (IndexError, struct.error, TypeError, ValueError, KeyError, AttributeError) as error:
            self._damaged(f"{type(error).__name__}: {error}")

    def _damaged(self, why: str) -> NoReturn:
        raise BadInput(f"{self.name} is not a readable pickle ({why}); it may be cut off or damaged: copy it again")

    def _run(self, data: bytes) -> Any:
        stack: list[Any] = []
        memo: dict[int, Any] = {}
        pos, unpack = 0, struct.unpack_from

        def take(size: int) -> bytes:
            nonlocal pos
            if size > len(data) - pos:
                self._damaged(f"{size:,} bytes are announced at byte {pos}, {len(data) - pos:,} are left")
            pos += size
            return data[pos - size : pos]

        def line() -> str:
            nonlocal pos
            end = data.index(b"\n", pos)
            text = data[pos:end].decode("utf-8", "replace")
            pos = end + 1
            return text

        def marked() -> list[Any]:
            for at in range(len(stack) - 1, -1, -1):
                if stack[at] is _MARK:
                    items = stack[at + 1 :]
                    del stack[at:]
                    return items
            raise IndexError("no mark")

        while True:
            op = data[pos]
            pos += 1
            if op == 0x2E:  # STOP
                return stack.pop()
            if op == 0x80:  # PROTO
                take(1)
            elif op == 0x95:  # FRAME
                take(8)
            elif op == 0x28:
                stack.append(_MARK)
            elif op == 0x30:
                stack.pop()
            elif op == 0x31:
                marked()
            elif op == 0x32:
                stack.append(stack[-1])
            elif op == 0x4E:
                stack.append(None)
            elif op in (0x88, 0x89):
                stack.append(op == 0x88)
            elif op == 0x4B:
                stack.append(take(1)[0])
            elif op == 0x4D:
                stack.append(unpack("<H", take(2))[0])
            elif op == 0x4A:
                stack.append(unpack("<i", take(4))[0])
            elif op in (0x8A, 0x8B):
                size = take(1)[0] if op == 0x8A else unpack("<I", take(4))[0]
                if size > _LONGEST_NUMBER:
                    self._damaged(f"a number of {size:,} bytes")
                stack.append(int.from_bytes(take(size), "little", signed=True))
            elif op == 0x47:
                stack.append(unpack(">d", take(8))[0])
            elif op in (0x58, 0x8C, 0x8D):  # text
                stack.append(take(self._size(op, take)).decode("utf-8", "replace"))
            elif op in (0x54, 0x55, 0x42, 0x43, 0x8E):  # bytes, and what Python 2 called strings
                raw = take(self._size(op, take))
                stack.append(raw.decode("latin-1") if op in (0x54, 0x55) else raw)
            elif op == 0x5D:
                stack.append([])
            elif op == 0x7D:
                stack.append({})
            elif op == 0x29:
                stack.append(())
            elif op == 0x8F:
                stack.append([])  # a set: nothing here needs to be one
            elif op in (0x85, 0x86, 0x87):
                count = op - 0x84
                items = stack[-count:]
                if len(items) < count:
                    raise IndexError("the stack is empty")
                del stack[-count:]
                stack.append(tuple(items))
            elif op == 0x74:
                stack.append(tuple(marked()))
            elif op in (0x6C, 0x91):
                stack.append(marked())
            elif op == 0x64:
                items = marked()
                stack.append(self._pairs({}, items))
            elif op == 0x61:
                item = stack.pop()
                self._extend(stack[-1], [item])
            elif op in (0x65, 0x90):
                items = marked()
                self._extend(stack[-1], items)
            elif op == 0x73:
                value, key = stack.pop(), stack.pop()
                self._pairs(_dict_of(stack[-1]), [key, value])
            elif op == 0x75:
                items = marked()
                self._pairs(_dict_of(stack[-1]), items)
            elif op == 0x71:
                memo[take(1)[0]] = stack[-1]
            elif op == 0x72:
                memo[unpack("<I", take(4))[0]] = stack[-1]
            elif op == 0x94:
                memo[len(memo)] = stack[-1]
            elif op == 0x68:
                stack.append(memo[take(1)[0]])
            elif op == 0x6A:
                stack.append(memo[unpack("<I", take(4))[0]])
            elif op == 0x63:  # GLOBAL
                stack.append(self._global(line(), line()))
            elif op == 0x93:  # STACK_GLOBAL
                name, module = stack.pop(), stack.pop()
                stack.append(self._global(str(module)[:500], str(name)[:500]))
            elif op in (0x52, 0x81, 0x92):  # REDUCE, NEWOBJ, NEWOBJ_EX
                if op == 0x92:
                    stack.pop()
                args, target = stack.pop(), stack.pop()
                stack.append(_made(target, args, is_new=op != 0x52))
            elif op == 0x62:  # BUILD
                state = stack.pop()
                if isinstance(stack[-1], Thing):
                    stack[-1].state = state
            elif op == 0x51:  # BINPERSID
                stack.append(_storage(stack.pop(), self.name))
            else:
                self._damaged(f"opcode {op:#04x} at byte {pos - 1} does not occur in PyTorch's files")

    def _size(self, op: int, take: Any) -> int:
        if op in (0x8C, 0x55, 0x43):
            return take(1)[0]
        return struct.unpack("<Q", take(8))[0] if op in (0x8D, 0x8E) else struct.unpack("<I", take(4))[0]

    def _global(self, module: str, name: str) -> Global:
        full = f"{module}.{name}"
        self.globals[full] = None
        return Global(full)

    def _extend(self, target: Any, items: list[Any]) -> None:
        if not isinstance(target, list):
            raise TypeError("items for something that is not a list")
        cast("list[Any]", target).extend(items)

    def _pairs(self, target: dict[Any, Any], items: list[Any]) -> dict[Any, Any]:
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, _PLAIN_KEYS):
                raise TypeError("a key that is no text and no number")
            target[key] = value
        return target


def _dict_of(target: Any) -> dict[Any, Any]:
    if isinstance(target, Thing):
        return target.items
    if not isinstance(target, dict):
        raise TypeError("entries for something that is not a dict")
    return cast("dict[Any, Any]", target)


def _made(target: Any, args: Any, is_new: bool) -> Any:
    """The few calls that mean data become data; everything else stays a record."""
    if not isinstance(target, Global):
        raise TypeError("a call of something that is not a name")
    name = target.name
    given: tuple[Any, ...] = cast("tuple[Any, ...]", args) if isinstance(args, tuple) else ()
    if is_new or name == "collections.OrderedDict":
        return Thing(name, args)
    if name.startswith("torch.jit._pickle.") and given:  # build_intlist, restore_type_tag …: the data and its type
        return given[0]
    if (
        name.startswith("torch._utils._rebuild_")
        and name.endswith(("tensor", "tensor_v2", "tensor_v3"))
        and len(given) > 2
    ):
        return _tensor(given)
    if name == "torch._utils._rebuild_parameter" and given:
        return given[0]
    return Call(name, args)


def _tensor(args: tuple[Any, ...]) -> Tensor:
    storage, offset, shape = args[:3]
    sizes = _sizes(shape)
    if not isinstance(storage, Storage):
        return Tensor("", sizes, "")
    strides = _sizes(args[3]) if len(args) > 3 else None
    return Tensor(storage.dtype, sizes, storage.key, strides, offset if type(offset) is int else -1)


def _sizes(given: Any) -> tuple[int, ...] | None:
    if not isinstance(given, tuple):
        return None
    found = cast("tuple[Any, ...]", given)
    return found if all(type(size) is int and 0 <= size < 1 << 62 for size in found) else None


def _storage(ident: Any, pickle: str) -> Any:
    """`("storage", torch.FloatStorage, "0", "cpu", 4)`."""
    if isinstance(ident, tuple):
        parts = cast("tuple[Any, ...]", ident)
        if len(parts) >= 3 and parts[0] == "storage" and isinstance(parts[2], str):
            kind = parts[1].name.rpartition(".")[2] if isinstance(parts[1], Global) else ""
            dtype = "" if kind == "UntypedStorage" else cpp_dtype(kind.removesuffix("Storage"))
            return Storage(dtype, f"{pickle}/{parts[2]}")  # each pickle numbers its own
    return None


def children(thing: Thing) -> Iterator[tuple[str, Any]]:
    """The attributes of an object, by name."""
    if isinstance(thing.state, dict):
        for name, value in cast("dict[Any, Any]", thing.state).items():
            if isinstance(name, str):
                yield name, value
