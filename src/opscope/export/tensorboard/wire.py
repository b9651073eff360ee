"""The two formats under a TensorBoard log: protobuf's wire format, as far as it is needed, and checksummed records.

https://protobuf.dev/programming-guides/encoding and the TFRecord format of TensorFlow.
"""

from __future__ import annotations

import struct
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def number(field: int, value: int) -> bytes:
    """An integer, a bool or an enum; negative ones take ten bytes, as protobuf has it."""
    return _varint(field << 3 | _VARINT) + _varint(value & (2**64 - 1))


def double(field: int, value: float) -> bytes:
    return _varint(field << 3 | _FIXED64) + struct.pack("<d", value)


def single(field: int, value: float) -> bytes:
    return _varint(field << 3 | _FIXED32) + struct.pack("<f", value)


def text(field: int, value: str) -> bytes:
    content = value.encode("utf-8", "backslashreplace")
    return head(field, len(content)) + content


def message(field: int, *parts: bytes) -> bytes:
    """A message, bytes, or anything that has its length in front."""
    content = b"".join(parts)
    return head(field, len(content)) + content


@lru_cache(1 << 14)
def head(field: int, length: int) -> bytes:
    """What stands before a message of this length."""
    return _varint(field << 3 | _BYTES) + _varint(length)


@lru_cache(1 << 14)
def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def record(data: bytes) -> tuple[bytes, ...]:
    """One record of an event file, in pieces: its length, the data, and a checksum of each."""
    length = struct.pack("<Q", len(data))
    return length, _masked(length), data, _masked(data)


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


@cache
def _columns() -> npt.NDArray[np.uint32]:
    return np.array(_tables(), dtype=np.uint32)


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), which zlib does not have.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    whole = len(data) // _LANE * _LANE
    if whole < _FEWEST * _LANE:
        return _one_by_one(0xFFFFFFFF, data) ^ 0xFFFFFFFF
    return _one_by_one(_in_lanes(memoryview(data)[:whole]), data[whole:]) ^ 0xFFFFFFFF


def _one_by_one(crc: int, data: bytes) -> int:
    t0, t1, t2, t3, t4, t5, t6, t7 = _tables()
    whole = len(data) - len(data) % 8
    for low, high in struct.iter_unpack("<II", memoryview(data)[:whole]):
        low ^= crc
        crc = (
            t7[low & 0xFF] ^ t6[low >> 8 & 0xFF] ^ t5[low >> 16 & 0xFF] ^ t4[low >> 24]
            ^ t3[high & 0xFF] ^ t2[high >> 8 & 0xFF] ^ t1[high >> 16 & 0xFF] ^ t0[high >> 24]
        )  # fmt: skip
    for byte in data[whole:]:
        crc = t0[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


# A long message is cut into lanes, which are summed side by side. Checksums are linear: that of two parts is that of
# the first, carried on over as many zeros as the second is long, XOR that of the second.
_LANE = 64  # bytes
_FEWEST = 32


def _in_lanes(data: memoryview) -> int:
    words = np.frombuffer(data, dtype="<u4").reshape(-1, _LANE // 4)
    tables = _columns()
    # Lanes of zeros in front, which change nothing, make their number a power of two.
    every = np.zeros(1 << (len(words) - 1).bit_length(), dtype=np.uint32)
    state = every[len(every) - len(words) :]
    state[0] = 0xFFFFFFFF
    for at in range(0, _LANE // 4, 2):
        low, high = words[:, at] ^ state, words[:, at + 1]
        state[:] = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF]
        state ^= tables[5][low >> 16 & 0xFF] ^ tables[4][low >> 24]
        state ^= tables[3][high & 0xFF] ^ tables[2][high >> 8 & 0xFF]
        state ^= tables[1][high >> 16 & 0xFF] ^ tables[0][high >> 24]
    doublings = 0
    while len(every) > 1:
        over, first = _over_zeros(doublings), every[::2]
        carried = (
            over[0][first & 0xFF] ^ over[1][first >> 8 & 0xFF] ^ over[2][first >> 16 & 0xFF] ^ over[3][first >> 24]
        )
        every = carried ^ every[1::2]
        doublings += 1
    return int(every[0])


@cache
def _over_zeros(doublings: int) -> npt.NDArray[Any]:
    """What the zeros of a lane, doubled so often, do to a checksum: a table for each of its bytes."""
    if doublings:
        before = _over_zeros(doublings - 1)
        return np.bitwise_xor.reduce([before[i][before >> 8 * i & 0xFF] for i in range(4)])
    table = np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]
    step = _columns()[0]
    for _ in range(_LANE):
        table = step[table & 0xFF] ^ table >> 8
    return table
