"""Reading pickles that may come from anywhere, without running anything in them.

A pickle is a program. `scan` walks its opcodes first and refuses every one that could name or call
something, and every length or index that the file cannot hold (nine bytes can make the C unpickler
take gigabytes). What remains can only build dicts, lists, tuples, strings, bytes and numbers.
"""

from __future__ import annotations

import io
import pickle
import re
import struct
from typing import Any, NoReturn

from opscope.errors import BadInput

_LONGEST_NUMBER = 4300  # digits or bytes; more is no id and takes quadratic time to parse

# What may make a key that takes for ever to hash: tuples and frozen sets (they hold each other), and numbers beyond 64
# bits, of which as many as one likes fall into the same place of a dict. Traces have none of them.
_COMPOUND = frozenset(b")t\x85\x86\x87\x8f\x90\x91")
_LONGEST_KEY = 18  # digits, or bytes

# What builds plain data and cannot ask for more memory than the file has: opcodes without an argument,
# with one of fixed size, and short strings. A run of them is skipped by one regular expression, in C;
# each alternative takes an opcode with exactly its argument.
_SHORT = b"|".join(re.escape(bytes([size])) + b".{%d}" % size for size in range(256))
_PLAIN = re.compile(
    rb"(?:[\x94N(\]}\x88\x89lesuad012]|\x8c(?:" + _SHORT + rb")|[Khq\x80].|M..|[Jj].{4}|G.{8})+", re.DOTALL
)

_SIZES: dict[int, tuple[str, int]] = {  # opcodes followed by a length and that many bytes
    ord("X"): ("<I", 4),
    0x8C: ("<B", 1),  # comes here only where the file ends inside the string
    0x8D: ("<Q", 8),
    ord("T"): ("<I", 4),
    ord("U"): ("<B", 1),
    ord("B"): ("<I", 4),
    ord("C"): ("<B", 1),
    0x8E: ("<Q", 8),
}
_NUMBERS = {0x8A: ("<B", 1), 0x8B: ("<I", 4)}  # LONG1, LONG4
_LINES = {ord(c) for c in "ILFSVgp"}  # protocol 0: an argument up to the end of the line

_CALLS = {
    ord("c"): "GLOBAL",
    ord("i"): "INST",
    0x93: "STACK_GLOBAL",
    ord("R"): "REDUCE",
    ord("b"): "BUILD",
    ord("o"): "OBJ",
    0x81: "NEWOBJ",
    0x92: "NEWOBJ_EX",
    ord("P"): "PERSID",
    ord("Q"): "BINPERSID",
    0x82: "EXT1",
    0x83: "EXT2",
    0x84: "EXT4",
    0x96: "BYTEARRAY8",
    0x97: "NEXT_BUFFER",
    0x98: "READONLY_BUFFER",
}


class UnsafePickle(BadInput):
    """The pickle names something to call. `target` is what, such as `os.system`."""

    def __init__(self, message: str, target: str) -> None:
        super().__init__(message)
        self.target = target


def looks_like_pickle(head: bytes, name: str) -> bool:
    """By its first bytes: protocol 2 and later say so; older ones begin with one of a few opcodes."""
    if head[:1] == b"\x80":
        return len(head) > 1 and 2 <= head[1] <= 5
    old = head[:1] in (b"(", b"c", b"]", b"}", b"i") and b"\n" in head
    return old and (
        name.lower().endswith((".pkl", ".pickle")) or bool(re.match(rb"(?:c[\w.]+\n[\w.]+\n|\(d|\(l|[\]}])", head))
    )


def load_plain(data: bytes, name: str) -> Any:
    """The plain data in a pickle, or a BadInput that says why not."""
    scan(data, name)
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except BadInput:
        raise
    except Exception as error:  # whatever a damaged pickle makes the unpickler say
        _damaged(name, f"{type(error).__name__}: {error}")


class _PlainUnpickler(pickle.Unpickler):
    """The second lock: the scan has refused every opcode that would come here."""

    def find_class(self, module: str, name: str, /) -> Any:
        raise _unsafe("", f"{module}.{name}")


def scan(data: bytes, name: str) -> None:
    """Refuse a pickle that could do anything but build plain data within the size of its file."""
    pos, end = 0, len(data)
    has_odd_keys = False
    skip = _PLAIN.match
    while True:
        run = skip(data, pos)
        if run is not None:
            pos = run.end()
        if pos >= end:
            _damaged(name, f"it ends after {end:,} bytes without its STOP mark")
        op = data[pos]
        pos += 1
        if op == ord("."):
            if has_odd_keys:
                _refuse_odd_keys(data[:pos], name)
            return
        if op in _COMPOUND:
            has_odd_keys = True
            continue
        if op in _SIZES or op in _NUMBERS:
            code, width = _SIZES.get(op) or _NUMBERS[op]
            size = _number(data, pos, code, width, name)
            left = end - pos - width
            if size > left or (op in _NUMBERS and size > _LONGEST_NUMBER):
                _damaged(name, f"at byte {pos}: {size:,} bytes are announced, {left:,} are left")
            has_odd_keys |= op in _NUMBERS and size > 8
            pos += width + size
        elif op == ord("r"):  # LONG_BINPUT: the unpickler makes its memo as long as the index says
            index = _number(data, pos, "<I", 4, name)
            if index > end:
                _damaged(name, f"at byte {pos}: memo index {index:,} in a file of {end:,} bytes")
            pos += 4
        elif op == 0x95:  # FRAME
            if _number(data, pos, "<Q", 8, name) > end - pos:
                _damaged(name, f"at byte {pos}: a frame that is longer than the file")
            pos += 8
        elif op in _LINES:
            start, pos = pos, _line(data, pos, op, name)
            has_odd_keys |= op in b"ILF" and pos - start > _LONGEST_KEY
        elif op in _CALLS:
            raise _unsafe(name, _target(data, pos - 1))
        else:
            _damaged(name, f"at byte {pos - 1}: {op:#04x} is no pickle opcode")


def _refuse_odd_keys(data: bytes, name: str) -> None:
    """Follow what each opcode leaves on the stack, as far as it tells whether a key is plain: a number or a text."""
    import pickletools

    stack: list[bool | None] = []  # whether it is plain; None is a mark
    memo: dict[int, bool] = {}

    def above_mark() -> list[bool | None]:
        at = len(stack) - 1 - stack[::-1].index(None)
        found = stack[at + 1 :]
        del stack[at:]
        return found

    def check(keys: list[bool | None], where: int) -> None:
        if not all(keys):
            _damaged(name, f"at byte {where}: a key of a dict or set that is neither a text nor a number of 64 bits")

    try:
        for opcode, argument, where in pickletools.genops(data):
            kind = opcode.name
            if kind == "MARK":
                stack.append(None)
            elif kind in ("TUPLE", "LIST", "DICT", "FROZENSET"):
                inside = above_mark()
                check(inside[::2] if kind == "DICT" else inside if kind == "FROZENSET" else [], where or 0)
                stack.append(False)
            elif kind in ("TUPLE1", "TUPLE2", "TUPLE3"):
                del stack[-int(kind[-1]) :]
                stack.append(False)
            elif kind in ("SETITEMS", "ADDITEMS", "APPENDS"):
                inside = above_mark()
                check(inside[::2] if kind == "SETITEMS" else inside if kind == "ADDITEMS" else [], where or 0)
            elif kind == "SETITEM":
                check(stack[-2:-1], where or 0)
                del stack[-2:]
            elif kind in ("APPEND", "POP"):
                stack.pop()
            elif kind == "POP_MARK":
                above_mark()
            elif kind == "DUP":
                stack.append(stack[-1])
            elif kind in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
                memo[len(memo) if kind == "MEMOIZE" else int(argument or 0)] = bool(stack[-1])
            elif kind in ("GET", "BINGET", "LONG_BINGET"):
                stack.append(memo[int(argument or 0)])
            elif kind not in ("PROTO", "FRAME", "STOP"):
                is_large = isinstance(argument, int) and argument.bit_length() > 64
                stack.append(not is_large and not kind.startswith("EMPTY_"))
    except (IndexError, KeyError, ValueError) as error:
        _damaged(name, f"{type(error).__name__}: {error}")


def _target(data: bytes, at: int) -> str:
    """What the opcode at this place would call. The rest of the file is not looked at."""
    import pickletools

    texts: list[str] = []  # a STACK_GLOBAL takes its module and name from the strings before it
    memo: dict[int, str] = {}
    try:
        for opcode, argument, where in pickletools.genops(data[: at + 1000]):
            if where == at:
                if opcode.name in ("GLOBAL", "INST"):
                    return str(argument).replace(" ", ".")
                if opcode.name == "STACK_GLOBAL":
                    return ".".join(texts[-2:])
                return f"the opcode {opcode.name}"
            if "UNICODE" in opcode.name or opcode.name.endswith("STRING"):
                texts.append(str(argument))
            elif opcode.name in ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT") and texts:
                memo[len(memo) if argument is None else argument] = texts[-1]
            elif opcode.name in ("BINGET", "LONG_BINGET", "GET"):
                texts.append(memo.get(int(argument or 0), "?"))
    except Exception:  # a damaged pickle: it is refused all the same
        pass
    return f"the opcode {_CALLS[data[at]]}"


def _number(data: bytes, pos: int, code: str, width: int, name: str) -> int:
    if pos + width > len(data):
        _damaged(name, f"it ends in the middle of an opcode, after {len(data):,} bytes")
    return struct.unpack_from(code, data, pos)[0]


def _line(data: bytes, pos: int, op: int, name: str) -> int:
    stop = data.find(b"\n", pos)
    if stop < 0:
        _damaged(name, f"it ends in the middle of a line, after {len(data):,} bytes")
    text = data[pos:stop]
    if op in (ord("I"), ord("L"), ord("F")) and len(text) > _LONGEST_NUMBER:
        _damaged(name, f"at byte {pos}: a number of {len(text):,} digits")
    if op == ord("p") and (not text.isdigit() or int(text[:12]) > len(data)):
        _damaged(
            name, f"at byte {pos}: memo index {text[:20].decode('ascii', 'replace')} in a file of {len(data):,} bytes"
        )
    return stop + 1


def _damaged(name: str, why: str) -> NoReturn:
    raise BadInput(f"{name}: not a readable pickle: {why}. It may be cut off or damaged: make or copy it again.")


def _unsafe(name: str, target: str) -> UnsafePickle:
    return UnsafePickle(
        f"{name}: refused: this pickle asks to call {target}. A trace holds only plain data; nothing was run.", target
    )
