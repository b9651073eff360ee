"""Changes of real files that know their formats: parts that are whole, in places and with contents that are not so."""

from __future__ import annotations

import contextlib
import copy
import gzip
import importlib
import io
import json
import pickle
import pickletools
import random
import re
import sqlite3
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mutations_files import mutate_header, mutate_protobuf
from opscope.wire import arrow, ipc


def mutate(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """A few changes: flipped bytes, cut or doubled pieces, numbers at their limits, pieces of other files."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(8)
        if kind == 0 and out:
            out[at % len(out)] = rng.randrange(256)
        elif kind == 1 and out:
            out[at % len(out)] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del out[at : at + rng.choice([1, 2, 4, 100, 5000])]
        elif kind == 3:
            out[at:at] = out[at : at + rng.choice([1, 4, 64, 3000])]
        elif kind == 4:
            out[at : at + 4] = rng.choice([b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", bytes(4)])
        elif kind == 5:
            out[at:at] = rng.choice(
                [b"\x93", b"R", b"c", b"(", b"}", b"]", b"u", b"s", b".", b"r\xff\xff\xff\x7f", b"\x8d"]
            )
        elif kind == 6:
            other = rng.choice(others)
            start = rng.randrange(len(other))
            out[at : at + 32] = other[start : start + rng.choice([8, 64, 1000])]
        else:
            del out[at:]
    return bytes(out)


def mutate_member(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """An archive that is whole, with changes inside of one member, or to which members there are."""
    is_zip = data.startswith(b"PK")
    members = members_of(data)
    # Weights and version files teach little.
    wanted = (".json", ".py", ".pkl", "_pkl", ".arrow", ".txt", ".dot", ".log", ".gz")
    name = rng.choice([name for name in members if name.endswith(wanted)] or list(members))
    kind = rng.random()
    if kind < 0.04:
        del members[name]
    elif kind < 0.08:
        members[name] = rng.choice(list(members.values()))
    elif kind < 0.1:
        members[rng.choice([*members, "../x", "/x", "a\0b", "x" * 300, "a/b/../c", "\udcff", name + "/x"])] = b"x"
    else:
        members[name] = changed(name, members[name], rng, others)
    return zipped(members) if is_zip else tarred(members, rng if rng.random() < 0.2 else None)


def members_of(data: bytes) -> dict[str, bytes]:
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {info.filename: archive.read(info.filename) for info in archive.infolist()}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {info.name: file.read() for info in archive if (file := archive.extractfile(info)) is not None}


def zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.encode("utf-8", "replace").decode(), content)
    return out.getvalue()


def tarred(members: dict[str, bytes], rng: random.Random | None = None) -> bytes:
    """With `rng`, the headers of some members say that they are something else, or of another size."""
    parts: list[bytes] = []
    for name, content in members.items():
        info = tarfile.TarInfo(name)
        info.size = len(content)
        if rng is not None and rng.random() < 0.3:
            info.type = rng.choice([tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, b"S", b"L"])
            info.linkname = rng.choice(["/etc/passwd", "../..", name])
            info.size = rng.choice([0, len(content), 2**40])
        parts += [info.tobuf(errors="replace"), content, bytes(-len(content) % tarfile.BLOCKSIZE)]
    return b"".join([*parts, bytes(2 * tarfile.BLOCKSIZE)])


def mutate_arrow(data: bytes, rng: random.Random) -> bytes:
    """An Arrow file with other offsets, lengths, counts, kinds, cells."""
    # What describes the table stands in front; behind it come the cells.
    return mutate_numbers(data, rng, len(data) if rng.random() < 0.3 else 1500)


def mutate_numbers(data: bytes, rng: random.Random, end: int) -> bytes:
    """Numbers of 2, 4 and 8 bytes among the first bytes of a file at their limits."""
    out = bytearray(data)
    width, code = rng.choice([(2, "<H"), (4, "<I"), (4, "<I"), (8, "<Q")])
    end = min(len(out), end)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(max(1, end // width)) * width
        if at + width > len(out):
            continue
        number = struct.unpack_from(code, out, at)[0]
        most = (1 << 8 * width) - 1
        odd = [
            0,
            1,
            7,
            8,
            number + 1,
            number - 1,
            number * 2,
            number + 8,
            1 << 31,
            (1 << 31) - 1,
            most,
            most - 7,
            len(out),
        ]
        struct.pack_into(code, out, at, rng.choice(odd) & most)
    return bytes(out)


def mutate_table(data: bytes, rng: random.Random) -> bytes:
    """A table that is whole: other numbers and texts in its cells, columns of other types, lengths and names."""
    table = ipc.Table(data)
    columns: dict[str, Any] = {}
    for name in table.names:
        column = table.column(name)
        assert column is not None
        if column.kind.startswith("list") or column.has_nulls:
            return mutate_arrow(data, rng)
        columns[name] = column.rows() if column.kind == "text" else column.numbers().copy()
    name = rng.choice(list(columns))
    values = columns[name]
    kind = rng.randrange(8)
    if kind == 0:
        del columns[name]
    elif kind == 1:
        columns[name] = columns[rng.choice(list(columns))]
    elif kind == 2:
        columns["new"] = columns.pop(name)
    elif kind == 3:  # all columns: rows left out, doubled, in another order
        count = len(values)
        rows = rng.choices(range(count), k=rng.choice([0, 1, count, 2 * count])) if count else []
        columns = {
            key: [v[i] for i in rows] if isinstance(v, list) else v[np.array(rows, np.int64)]
            for key, v in columns.items()
        }
    elif isinstance(values, list):
        for _ in range(rng.choice([1, 1, 5])):
            if values:
                values[rng.randrange(len(values))] = rng.choice(_ODD_TEXTS)
        if kind == 7:
            columns[name] = np.arange(len(values), dtype=np.int32)
    elif kind == 7:
        columns[name] = values.astype(rng.choice(["int8", "int32", "int64", "float64", "bool"]))
    elif len(values) and values.dtype != bool:
        most = np.finfo(values.dtype).max if values.dtype.kind == "f" else np.iinfo(values.dtype).max
        for _ in range(rng.choice([1, 1, 2, 20])):
            odd = [-1, 0, 1, len(values), len(values) - 1, int(values[rng.randrange(len(values))]), most, -most, -2]
            values[rng.randrange(len(values))] = np.array(rng.choice(odd)).astype(values.dtype)
    return arrow.to_bytes(arrow.to_table(columns)) if columns else b""


_ODD_TEXTS = [
    "", "\0", "[" * 3000, "a\nb\x1b[31m", "x" * 20_000, '{"a": 1e999}', "../../x", "</script>", "\u202e中文", "{}",
    '{"kernel": [3, 3], "stride": -1}', "[1, [2, [3]]]", "9" * 5000, "null", '"', "forward", "float32",
]  # fmt: skip


def mutate_log(data: bytes, rng: random.Random) -> bytes:
    """A log of entries, each a line of JSON with what belongs to it indented below: entries, their JSON, their text."""
    blocks = re.split(rb"(?m)^(?=[^\t\n])", data)
    blocks = [block for block in blocks if block]
    for _ in range(rng.choice([1, 2, 5, 20])):
        at = rng.randrange(len(blocks))
        kind = rng.randrange(7)
        line, end, text = blocks[at].partition(b"\n")
        brace = line.find(b"{")
        if kind == 0:
            del blocks[at]
            blocks = blocks or [b"{}\n"]
        elif kind == 1:
            blocks.insert(rng.randrange(len(blocks)), blocks[at])
        elif kind == 2:
            other = rng.randrange(len(blocks))
            blocks[at], blocks[other] = blocks[other], blocks[at]
        elif kind == 3 and brace >= 0:
            blocks[at] = line[:brace] + mutate_inside("x.json", line[brace:], rng) + end + text
        elif kind == 4:  # the text of another entry
            blocks[at] = line + end + rng.choice(blocks).partition(b"\n")[2]
        elif text:
            words = mutate_code(text.decode("utf-8", "replace"), rng).replace("\n", "\n\t")
            blocks[at] = line + end + words.removesuffix("\t").encode("utf-8", "surrogatepass")
    return b"".join(blocks)


def mutate_directory(data: bytes, rng: random.Random) -> bytes:
    """The list of members at the end of a zip file: sizes, offsets, methods and names that are not so."""
    out = bytearray(data)
    start = out.rfind(b"PK\x05\x06")
    first = out.find(b"PK\x01\x02")
    if start < 0 or first < 0:
        return bytes(out)
    for _ in range(rng.choice([1, 2, 5])):
        width = rng.choice([1, 2, 4])
        at = rng.randrange(first, len(out) - width)
        out[at : at + width] = rng.choice([b"\xff" * width, bytes(width), rng.randbytes(width)])
    return bytes(out)


def mutate_opcodes(data: bytes, rng: random.Random) -> bytes:
    """Opcodes of a pickle left out, doubled, or put elsewhere: each whole, with its argument."""
    places = [place for *_, place in pickletools.genops(data)] + [len(data)]
    parts = [data[a:b] for a, b in pairwise(places)]
    extra = [
        b"(",
        b"t",
        b"\x86",
        b"2",
        b"\x94",
        b"h\x00",
        b"d",
        b"s",
        b"u",
        b"0",
        b"\x8f",
        b"\x91",
        b"I" + b"9" * 30 + b"\n",
    ]
    for _ in range(rng.choice([1, 2, 5, 30])):
        at = rng.randrange(len(parts))
        kind = rng.randrange(4)
        if kind == 0:
            del parts[at]
        elif kind == 1:
            parts[at:at] = parts[at : at + rng.choice([1, 3, 40])]
        elif kind == 2:
            parts[at:at] = [rng.choice(extra)] * rng.choice([1, 1, 2, 60])
        else:
            other = rng.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        parts = parts or [b"."]
    return b"".join(parts)


def mutate_code(text: str, rng: random.Random) -> str:
    """Words and lines of code changed for others of the same code, so that most of it still parses."""
    for _ in range(rng.choice([1, 2, 5, 20])):
        words = re.split(r"(\w+|\n)", text)
        at = rng.randrange(len(words))
        kind = rng.randrange(5)
        if kind == 0:
            lines = text.split("\n")
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            text = "\n".join(lines)
            continue
        if kind == 1:
            lines = text.split("\n")
            del lines[rng.randrange(len(lines))]
            text = "\n".join(lines) or "x"
            continue
        if kind == 2:
            words[at] = rng.choice(
                [
                    "self",
                    "torch",
                    "None",
                    "-1",
                    "[]",
                    "()",
                    "x" * 50,
                    "if",
                    "while",
                    "1e999",
                    "0x1",
                    "9" * 30,
                    "-9223372036854775809",
                    "\0",
                    "中",
                    "\x1b[31m",
                    "(" * 500,
                ]
            )
        elif kind == 3:
            words[at] = rng.choice(words)
        else:
            words[at] = words[at] * 2
        text = "".join(words) or "x"
    return text


ODD: list[Any] = [
    2**61,
    10**30,
    10**400,
    -(2**63),
    "[" * 3000,
    "1e999",
    "a\nb\x1b[31m",
    None,
    -1,
    0,
    2**31,
    2**40,
    1.5,
    float("nan"),
    float("-inf"),
    True,
    "",
    "x" * 1000,
    "\ud800",
    [],
    {},
    [[]],
    {"": {}},
    (1, 2),
    b"x",
]


def mutate_inside(name: str, data: bytes, rng: random.Random) -> bytes:
    """A pickle or JSON that is whole, but says odd things: this reaches the reader itself."""
    try:
        root = json.loads(data) if name.endswith(".json") else pickle.loads(data)
    except (ImportError, AttributeError):  # a pickle of objects whose classes are not there
        return mutate_opcodes(data, rng)
    if not isinstance(root, dict | list):
        return mutate(data, rng, [data])
    for _ in range(rng.choice([1, 2, 5, 20])):
        place: Any = root
        for _ in range(rng.randrange(1, 6)):  # walk down into some container
            inside = list(place.values()) if isinstance(place, dict) else list(place)
            deeper = [item for item in inside if isinstance(item, dict | list) and item]
            if not deeper:
                break
            place = rng.choice(deeper)
        if not place:
            continue
        key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
        kind = rng.randrange(4)
        if kind == 0:
            place[key] = copy.deepcopy(rng.choice(ODD))  # its own: the next change may go into it
        elif kind == 1:
            del place[key]
        elif kind == 2 and isinstance(place[key], int):
            place[key] += rng.choice([1, -1, 7, 10**6])
        elif isinstance(place, dict):
            place[rng.choice([key, "new", 5, 10**9])] = place[rng.choice(list(place))]
        else:
            place.append(rng.choice(place))
    if name.endswith(".json"):
        return json.dumps(root, default=str, skipkeys=True).encode()  # with Infinity and NaN
    return pickle.dumps(root, rng.randrange(2, 6))


def mutate_database(data: bytes, rng: random.Random) -> bytes:
    """A database that is whole, in which cells say odd things, or a table is gone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.sqlite")
        path.write_bytes(data)
        with contextlib.closing(sqlite3.connect(path)) as database:
            tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for _ in range(rng.choice([1, 2, 5])):
                table = rng.choice(tables)
                columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
                cell = rng.choice([None, -1, 0, 2**62, 1e300, "x" * 100, "aten::mm, seq = 99999999999999999999", b"x"])
                database.execute(f'UPDATE {table} SET "{rng.choice(columns)}" = ?', (cell,))
            if rng.random() < 0.1:
                database.execute(f"DROP TABLE {rng.choice(tables)}")
            database.commit()
        return path.read_bytes()


Change = Callable[[bytes, random.Random, "list[bytes]"], bytes]


def known_changes(name: str, data: bytes) -> list[tuple[float, Change]]:
    """The changes that know what this file is, and how often each is made of those that are left; none: only bytes."""
    inner = name.rpartition(".")[0]
    if name.endswith(".gz"):
        return [(0.8, lambda data, rng, others: gzip.compress(changed(inner, gzip.decompress(data), rng, others), 1))]
    if name.endswith(".zst"):
        return [(0.8, lambda data, rng, others: _zst(changed(inner, _unzst(data), rng, others)))]
    if zipfile.is_zipfile(io.BytesIO(data)):
        return [(0.15, lambda data, rng, _: mutate_directory(data, rng)), (0.8, mutate_member)]
    if name.endswith(".tar"):
        return [(0.8, mutate_member)]
    if name.endswith(".trace.log"):
        return [(0.8, lambda data, rng, _: mutate_log(data, rng))]
    if name.endswith(".mge"):  # offsets, counts and kinds of its tables
        return [(0.6, lambda data, rng, _: mutate_numbers(data, rng, len(data)))]
    if name.endswith((".onnx", ".pb")):
        return [(0.8, lambda data, rng, _: mutate_protobuf(data, rng))]
    if name.endswith((".tflite", ".gguf")):
        return [(0.7, lambda data, rng, _: mutate_numbers(data, rng, len(data)))]
    if name.endswith(".safetensors"):
        return [(0.8, lambda data, rng, _: mutate_header(data, rng))]
    if name.endswith(".pdparams"):
        return [(0.6, lambda data, rng, _: mutate_opcodes(data, rng))]
    if name.endswith(".arrow"):
        return [
            (0.45, lambda data, rng, _: mutate_table(data, rng)),
            (0.8, lambda data, rng, _: mutate_arrow(data, rng)),
        ]
    if name.endswith(".sqlite"):
        return [(0.6, lambda data, rng, _: mutate_database(data, rng))]
    inside: tuple[float, Change] = (0.6, lambda data, rng, _: mutate_inside(name, data, rng))
    if name.endswith(".pkl"):
        return [(0.3, lambda data, rng, _: mutate_opcodes(data, rng)), inside]
    if name.endswith(".json"):
        return [inside]
    if name.endswith((".log", ".dot", ".txt", ".py", ".pbtxt", ".mlir")):
        return [(0.6, lambda data, rng, _: mutate_text(data, rng))]
    return []


def changed(name: str, data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """One mutation, mostly one that knows the format."""
    for share, change in known_changes(name, data):
        if rng.random() < share:
            return change(data, rng, others)
    return mutate(data, rng, others)


def mutate_text(data: bytes, rng: random.Random) -> bytes:
    return mutate_code(data.decode("utf-8", "replace"), rng).encode("utf-8", "surrogatepass")


def _zst(data: bytes) -> bytes:
    return importlib.import_module("zstandard").ZstdCompressor().compress(data)


def _unzst(data: bytes) -> bytes:
    return importlib.import_module("zstandard").ZstdDecompressor().decompress(data)
