"""The two formats under a TensorBoard log: protobuf's wire format, as far as it is needed, and checksummed records.

https://protobuf.dev/programming-guides/encoding and the TFRecord format of TensorFlow.
"""

from __future__ import annotations

import struct
from functools import cache

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def number(field: int, value: int) -> bytes:
    """An integer, a bool or an enum; negative ones take ten bytes, as protobuf has it."""
    return _varint(field << 3 | _VARINT) + _varint(value & (2**64 - 1))


def double(field: int, value: float) -> bytes:
    return _varint(field << 3 | _FIXED64) + struct.pack("<d", value)


def single(field: int, value: float) -> bytes:
    return _varint(field << 3 | _FIXED32) + struct.pack("<f", value)


def text(field: int, value: str) -> bytes:
    return message(field, value.encode("utf-8", "backslashreplace"))


def message(field: int, *parts: bytes) -> bytes:
    """A message, bytes, or anything that has its length in front."""
    content = b"".join(parts)
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def record(data: bytes) -> bytes:
    """One record of an event file: its length, the data, and a checksum of each."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@cache
def _tables() -> list[list[int]]:
    """For eight bytes at a time (slicing-by-8)."""
    first: list[int] = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        first.append(byte)
    tables = [first]
    for _ in range(7):
        tables.append([first[value & 0xFF] ^ value >> 8 for value in tables[-1]])
    return tables


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), which zlib does not have.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    t0, t1, t2, t3, t4, t5, t6, t7 = _tables()
    crc = 0xFFFFFFFF
    whole = len(data) - len(data) % 8
    for low, high in struct.iter_unpack("<II", memoryview(data)[:whole]):
        low ^= crc
        crc = (
            t7[low & 0xFF] ^ t6[low >> 8 & 0xFF] ^ t5[low >> 16 & 0xFF] ^ t4[low >> 24]
            ^ t3[high & 0xFF] ^ t2[high >> 8 & 0xFF] ^ t1[high >> 16 & 0xFF] ^ t0[high >> 24]
        )  # fmt: skip
    for byte in data[whole:]:
        crc = t0[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
