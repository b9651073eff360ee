"""HLO modules as XLA's dumps write them (`*.hlo.pb`): HloModuleProto, or the HloProto around one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from opscope.errors import BadInput
from opscope.ir import Frame

from .fields import Malformed, Value, integer, integers, message, messages, raw, text, texts
from .hlo import Array, Computation, Instruction, Module, Place, Shape
from .written import dim_labels, padding, shardings, slices, window

Fields = dict[int, list[Value]]

# PrimitiveType, by number.
DTYPES = (
    *("invalid", "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "tuple", "opaque"),
    *("c64", "bf16", "token", "c128", "f8e5m2", "f8e4m3fn", "s4", "u4", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz"),
    *("s2", "u2", "f8e4m3", "f8e3m4", "s1", "u1", "f4e2m1fn", "f8e8m0fnu"),
)
_TUPLE = DTYPES.index("tuple")
_DEEPEST = 100  # tuples in tuples
_LONGEST_CONFIG = 4096

# Fields of HloInstructionProto that are plain numbers and lists, under the names that the text form has.
_LISTS = {14: "dimensions", 20: "dynamic_slice_sizes", 32: "fft_length", 34: "slice_sizes"}
_NUMBERS = {50: "feature_group_count", 58: "batch_group_count", 26: "channel_id"}
_TEXTS = {11: "kind", 28: "custom_call_target", 63: "direction"}
_DIMENSION_IN_TEXT = {"iota": "iota_dimension"}
# How each opcode calls its computations, in the order in which it lists them.
_CALLS = {"fusion": ("calls",), "call": ("to_apply",), "while": ("body", "condition"), "conditional": ()}
_FFT = ("FFT", "IFFT", "RFFT", "IRFFT")


def read_module(data: bytes, name: str, cache: Decoder | None = None) -> Module:
    try:
        return (cache or Decoder()).module(data)
    except (Malformed, RecursionError, ValueError, IndexError, KeyError) as error:
        raise BadInput(f"{name}: not a whole HLO module ({error})") from None


def looks_like_module(data: bytes) -> bool:
    """Whether a file begins as an HloModuleProto (its name, that of its entry, and a computation, which begins with its
    name), or as an HloProto around one."""
    return _begins_module(data) or _begins_module(_inside_hlo_proto(data))


def _begins_module(start: bytes) -> bool:
    at = 0
    for mark in (b"\x0a", b"\x12"):
        size = start[at + 1 : at + 2]
        if (
            start[at : at + 1] != mark
            or not size
            or not 0 < size[0] < 0x80
            or not _is_name(start[at + 2 : at + 2 + size[0]])
        ):
            return False
        at += 2 + size[0]
    return start[at : at + 1] == b"\x1a" and _payload(start[at:])[:1] == b"\x0a"


def _inside_hlo_proto(data: bytes) -> bytes:
    """What the first field of a message holds: the module of an HloProto."""
    return _payload(data) if data[:1] == b"\x0a" else b""


def _payload(data: bytes) -> bytes:
    """What a field holds, behind its key and its size."""
    at = 1
    while at < min(len(data), 11) and data[at] >= 0x80:
        at += 1
    return data[at + 1 :]


def _is_name(name: bytes) -> bool:
    return all(byte < 0x80 and (chr(byte).isalnum() or byte in b"_.-<>:$ ") for byte in name)


# Its number, itself, and the numbers of its operands, of the computations it calls, and of what must come before.
Row: TypeAlias = tuple[int, Instruction, list[int], list[int], list[int]]


class Decoder:
    """Reads modules of one dump. Most instructions of one pass are, byte for byte, those of the pass before."""

    def __init__(self) -> None:
        self._instructions: dict[bytes, Row] = {}
        self._shapes: dict[bytes, Shape] = {}
        self._sources: bytes = b""
        self._place: Callable[[Fields], Place] = _no_place

    def module(self, data: bytes) -> Module:
        found = message(data)
        if 2 not in found and 1 in found:  # HloProto: the module is inside, and what memory it was given beside it
            found = message(raw(found[1]))
        sources = raw(found.get(17))
        if sources != self._sources or self._place is _no_place:
            # Places are numbers into this table: with another table, they mean other lines.
            self._instructions.clear()
            self._sources, self._place = sources, _places(sources)
        order = _schedule(raw(found.get(7)))
        computations = [self._computation(part, order) for part in messages(found.get(3))]
        if not computations:
            raise Malformed("no computation in it")
        names = {number: computation.name for number, computation, _ in computations}
        entry = names.get(integer(found.get(6))) or text(found.get(2))
        for _, computation, calls in computations:
            for instruction, called in calls:
                instruction.called = _called(instruction, [names[number] for number in called])
            computation.is_entry = computation.name == entry
        module = Module(text(found.get(1)), {c.name: c for _, c, _ in computations}, entry)
        module.aliases = _aliases(raw(found.get(8)))
        if entry not in module.computations:
            raise Malformed(f"the entry computation {entry!r} is not in it")
        return module

    def _computation(
        self, data: bytes, order: dict[int, list[int]]
    ) -> tuple[int, Computation, list[tuple[Instruction, list[int]]]]:
        found = message(data)
        rows = [self._instruction(part) for part in messages(found.get(2))]
        if sequence := order.get(integer(found.get(5))):
            place = {number: i for i, number in enumerate(sequence)}
            rows.sort(key=lambda row: place.get(row[0], len(place)))
        names = {number: instruction.name for number, instruction, *_ in rows}
        made: list[Instruction] = []
        calls: list[tuple[Instruction, list[int]]] = []
        for _, base, operands, called, control in rows:
            # Fresh for every module: what it calls is named there.
            own = Instruction(
                base.name,
                base.opcode,
                base.shape,
                [names[number] for number in operands],
                [],
                base.attrs,
                base.op_name,
                base.place,
                base.number,
                control=[names[number] for number in control if number in names],
            )
            made.append(own)
            if called:
                calls.append((own, called))
        root = names.get(integer(found.get(6)))
        if root is None:
            raise Malformed(f"computation {text(found.get(1))!r} has no root")
        return integer(found.get(5)), Computation(text(found.get(1)), made, root), calls

    def _instruction(self, data: bytes) -> Row:
        known = self._instructions.get(data)
        if known is None:
            known = self._instructions[data] = self._decoded(data)
        return known

    def _decoded(self, data: bytes) -> Row:
        found = message(data)
        metadata = message(raw(found[7])) if 7 in found else {}
        opcode = text(found.get(2))
        instruction = Instruction(
            text(found.get(1)),
            opcode,
            self._shape(raw(found.get(3))),
            attrs=_attrs(opcode, found),
            op_name=text(metadata.get(2)),
            place=self._place(metadata),
            number=integer(found.get(9)) if opcode == "parameter" else -1,
        )
        return (
            integer(found.get(35)),
            instruction,
            integers(found.get(36, [])),
            integers(found.get(38, [])),
            integers(found.get(37, [])),
        )

    def _shape(self, data: bytes, depth: int = 0) -> Shape:
        known = self._shapes.get(data)
        if known is None:
            found = message(data)
            kind = integer(found.get(2))
            if depth > _DEEPEST:
                raise Malformed(f"tuples {_DEEPEST} deep")
            if kind == _TUPLE:
                known = tuple(self._shape(part, depth + 1) for part in messages(found.get(4)))
            else:
                name = DTYPES[kind] if 0 <= kind < len(DTYPES) else f"type {kind}"
                known = Array(name, tuple(integers(found.get(3, []))))
            self._shapes[data] = known
        return known


def _called(instruction: Instruction, names: list[str]) -> list[tuple[str, str]]:
    ways = _CALLS.get(instruction.opcode, ("to_apply",))
    if instruction.opcode == "conditional":
        ways = tuple(f"branch {i}" for i in range(len(names)))
    elif instruction.opcode.startswith("async"):
        ways = ("calls",)
    elif instruction.opcode == "select-and-scatter":
        ways = ("select", "scatter")
    found = [(ways[min(i, len(ways) - 1)], name) for i, name in enumerate(names)]
    return found[::-1] if instruction.opcode == "while" else found  # as text has them: first the condition


def _attrs(opcode: str, found: Fields) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    for number, name in _TEXTS.items():
        if number in found:
            attrs[name] = text(found[number])
    for number, name in _LISTS.items():
        if number in found:
            listed = integers(found[number])
            name = _DIMENSION_IN_TEXT.get(opcode, name)
            attrs[name] = listed[0] if name == "iota_dimension" and listed else listed
    for number, name in _NUMBERS.items():
        value = integer(found.get(number))
        if number in found and (value > 1 or number == 26):
            attrs[name] = value
    if opcode in ("broadcast", "reduce", "transpose", "reverse") and "dimensions" not in attrs:
        attrs["dimensions"] = []
    if opcode == "get-tuple-element":
        attrs["index"] = integer(found.get(13))
    if 15 in found:
        attrs |= window(
            [
                [
                    integer(dim.get(1)),
                    *(integer(dim.get(n), d) for n, d in ((2, 1), (3, 0), (4, 0), (5, 1), (6, 1), (7, 0))),
                ]
                for dim in map(message, messages(message(raw(found[15])).get(1)))
            ]
        )
    if 16 in found and opcode == "convolution":
        attrs["dim_labels"] = _labels(message(raw(found[16])))
    if 17 in found:
        parts = [message(part) for part in messages(found[17])]
        attrs["slice"] = slices([(integer(p.get(1)), integer(p.get(2)), integer(p.get(3), 1)) for p in parts])
    if 21 in found:
        parts = [message(part) for part in messages(message(raw(found[21])).get(1))]
        attrs["padding"] = padding([(integer(p.get(1)), integer(p.get(2)), integer(p.get(3))) for p in parts])
    if 30 in found and opcode in ("dot", "scaled-dot", "ragged-dot"):
        dims = message(raw(found[30]))
        named = ("lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims")
        for number, name in enumerate(named, 1):
            if number in dims:
                attrs[name] = integers(dims[number])
    if opcode == "fft":
        kind = integer(found.get(31))
        attrs["fft_type"] = _FFT[kind] if kind < len(_FFT) else str(kind)
    if 49 in found:
        attrs["replica_groups"] = [integers(message(part).get(1, [])) for part in messages(found[49])]
    if 52 in found:
        pairs = [message(part) for part in messages(found[52])]
        attrs["source_target_pairs"] = [[integer(p.get(1)), integer(p.get(2))] for p in pairs]
    if 40 in found:
        attrs["sharding"] = shardings(raw(found[40]))
    attrs |= _config(raw(found.get(43)))
    return attrs


def _config(data: bytes) -> dict[str, Any]:
    if not data or len(data) > _LONGEST_CONFIG:
        return {}
    return config(data.decode("utf-8", "replace"))


def config(written: str) -> dict[str, Any]:
    """XLA's own settings of an instruction: JSON. How often a loop runs is in there."""
    try:
        settings: Any = json.loads(written)
    except (ValueError, RecursionError):
        return {"backend_config": written}
    attrs: dict[str, Any] = {"backend_config": settings}
    trips: Any = cast("dict[str, Any]", settings).get("known_trip_count") if isinstance(settings, dict) else None
    count = str(cast("dict[str, Any]", trips).get("n", "")) if isinstance(trips, dict) else ""
    if count.isdecimal():
        attrs["trip_count"] = int(count)
    return attrs


def _labels(found: Fields) -> str:
    """`b01f_01io->b01f`: batch, feature and spatial dimensions of input, kernel and result."""
    return dim_labels(
        (integer(found.get(7)), integer(found.get(8)), integers(found.get(11, []))),
        (integer(found.get(3)), integer(found.get(4)), integers(found.get(6, []))),
        (integer(found.get(9)), integer(found.get(10)), integers(found.get(12, []))),
    )


def _schedule(data: bytes) -> dict[int, list[int]]:
    """The order in which instructions run, by computation, where XLA has decided on one."""
    found: dict[int, list[int]] = {}
    for part in messages(message(data).get(1)) if data else ():
        entry = message(part)
        found[integer(entry.get(1))] = integers(message(raw(entry.get(2))).get(1, []))
    return found


def _aliases(data: bytes) -> dict[int, int]:
    """Which result takes the memory of which parameter, where both are one array."""
    found: dict[int, int] = {}
    for part in messages(message(data).get(1)) if data else ():
        entry = message(part)
        result, inside = integers(entry.get(1, [])), integers(entry.get(3, []))
        if len(result) <= 1 and not inside:
            found[result[0] if result else 0] = integer(entry.get(2))
    return found


def _no_place(metadata: Fields) -> Place:
    return Place()


def _places(data: bytes) -> Callable[[Fields], Place]:
    """Looks up where an instruction comes from: by a frame of the module's own table, or by file and line."""
    index = message(data) if data else {}
    files, functions = texts(index.get(1)), texts(index.get(2))
    locations: list[tuple[Frame, int]] = []
    for part in messages(index.get(3)):
        found = message(part)
        file, function = integer(found.get(1)), integer(found.get(2))
        locations.append(
            (
                Frame(
                    files[file - 1] if 0 < file <= len(files) else "",
                    integer(found.get(3)),
                    functions[function - 1] if 0 < function <= len(functions) else "",
                ),
                integer(found.get(4)),
            )
        )
    frames = [(integer(f.get(1)), integer(f.get(2))) for f in map(message, messages(index.get(4)))]
    stacks = Stacks(frames, locations)

    def place(metadata: Fields) -> Place:
        number = integer(metadata.get(15))
        if number:
            return stacks.at(number)
        file = text(metadata.get(3))
        return Place((Frame(file, integer(metadata.get(4)), ""),)) if file else Place()

    return place


class Stacks:
    """Call stacks as XLA stores them: each frame is a location and the frame that called it, numbered from 1."""

    def __init__(self, frames: list[tuple[int, int]], locations: list[tuple[Frame, int]]) -> None:
        self._frames, self._locations = frames, locations
        self._known: dict[int, Place] = {}

    def at(self, number: int) -> Place:
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = self._walk(number)
        return known

    def _walk(self, number: int) -> Place:
        inside_out: list[Frame] = []
        column, seen = 0, set[int]()
        while 0 < number <= len(self._frames) and number not in seen:
            seen.add(number)
            location, above = self._frames[number - 1]
            if 0 < location <= len(self._locations):
                frame, at = self._locations[location - 1]
                inside_out.append(frame)
                column = column or at
            # Newer modules count the frames above from 1 as well, so that 1 is "none"; older ones from 0.
            number = above
        return Place(tuple(reversed(inside_out)), column)
