"""Changes that know protocol buffers and safetensors: lengths around what they change stay right."""

from __future__ import annotations

import json
import random
import struct

Field = tuple[int, int, bytes]  # number, wire type, content

_LARGE = (0, 1, 127, 128, 1 << 31, (1 << 63) - 1, (1 << 64) - 1)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
    raise ValueError("too long")


def encoded(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def fields_of(data: bytes) -> list[Field]:
    """The fields of a message; ValueError where it is none."""
    found: list[Field] = []
    at = 0
    try:
        while at < len(data):
            key, begin = _varint(data, at)
            wire = key & 7
            if wire == 0:
                at = _varint(data, begin)[1]
            elif wire in (1, 5):
                at = begin + (8 if wire == 1 else 4)
            elif wire == 2:
                size, begin = _varint(data, begin)
                at = begin + size
            else:
                raise ValueError("no such wire type")
            if at > len(data) or not key >> 3:
                raise ValueError("cut off")
            found.append((key >> 3, wire, data[begin:at]))
    except IndexError:
        raise ValueError("cut off") from None
    return found


def message_of(fields: list[Field]) -> bytes:
    return b"".join(
        encoded(number << 3 | wire) + (encoded(len(content)) if wire == 2 else b"") + content
        for number, wire, content in fields
    )


def mutate_protobuf(data: bytes, rng: random.Random, depth: int = 0) -> bytes:
    """One field somewhere inside: gone, twice, elsewhere, of another number, with another content."""
    try:
        fields = fields_of(data)
    except ValueError:
        fields = []
    if not fields:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(8))) if rng.random() < 0.5 else data[:-1]
    at = rng.randrange(len(fields))
    number, wire, content = fields[at]
    if wire == 2 and depth < 8 and rng.random() < 0.8:
        fields[at] = (number, wire, mutate_protobuf(content, rng, depth + 1))
        return message_of(fields)
    what = rng.randrange(6)
    if what == 0:
        del fields[at]
    elif what == 1:
        fields[at:at] = [fields[at]] * rng.choice((1, 2, 50))
    elif what == 2:
        fields.insert(rng.randrange(len(fields)), fields.pop(at))
    elif what == 3:
        fields[at] = (rng.randrange(1, 30), wire, content)
    elif wire == 0:
        fields[at] = (number, 0, encoded(rng.choice(_LARGE)))
    elif wire == 2:
        fields[at] = (number, 2, rng.choice((b"", content[: len(content) // 2], content * 2, fields[0][2])))
    else:
        fields[at] = (number, 0, encoded(rng.choice(_LARGE)))
    return message_of(fields)


def mutate_header(data: bytes, rng: random.Random) -> bytes:
    """One entry of a safetensors header."""
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8 : 8 + size])
    name = rng.choice(list(header))
    values = [None, [], [1 << 62], [-1], "F4", "?", 3, {}, [[1]], [0, 0], [1 << 40, 1 << 50]]
    if isinstance(header[name], dict) and header[name] and rng.random() < 0.8:
        header[name][rng.choice(list(header[name]))] = rng.choice(values)
    else:
        header[name] = rng.choice(values)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size :]
