"""Numbers that llama.cpp quantizes in blocks, as the numbers that are meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.ir.dtypes import BLOCKS

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[Any]  # of 32 bits


class Decoder(NamedTuple):
    width: int  # bytes of a block
    decode: Callable[[Bytes], Floats]  # [blocks, width] -> [blocks, numbers]

    def pieces(self, raw: Callable[[], Iterator[Any]]) -> Iterator[Floats]:
        """Whole blocks; what is left waits for the next piece."""
        left = b""
        for piece in raw():
            data = left + piece
            whole = len(data) // self.width * self.width
            left = data[whole:]
            if whole:
                yield self.decode(np.frombuffer(data[:whole], np.uint8).reshape(-1, self.width)).reshape(-1)


def _half(blocks: Bytes, at: int) -> Floats:
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(packed: Bytes) -> Floats:
    """The lower halves of all bytes, then the upper ones."""
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)


def _fifth(blocks: Bytes, at: int) -> Any:
    """The fifth bit of 32 numbers, worth 16."""
    bits = np.ascontiguousarray(blocks[:, at : at + 4]).view("<u4")
    return ((bits >> np.arange(32, dtype=np.uint32)) & 1).astype(np.float32) * 16


def _q4_0(blocks: Bytes) -> Floats:
    return _half(blocks, 0) * (_nibbles(blocks[:, 2:]) - 8)


def _q4_1(blocks: Bytes) -> Floats:
    return _half(blocks, 0) * _nibbles(blocks[:, 4:]) + _half(blocks, 2)


def _q5_0(blocks: Bytes) -> Floats:
    return _half(blocks, 0) * (_nibbles(blocks[:, 6:]) + _fifth(blocks, 2) - 16)


def _q5_1(blocks: Bytes) -> Floats:
    return _half(blocks, 0) * (_nibbles(blocks[:, 8:]) + _fifth(blocks, 4)) + _half(blocks, 2)


def _q8_0(blocks: Bytes) -> Floats:
    return _half(blocks, 0) * np.ascontiguousarray(blocks[:, 2:]).view(np.int8).astype(np.float32)


def _scales(packed: Bytes) -> tuple[Floats, Floats]:
    """Eight scales and eight minima of 6 bits, in 12 bytes."""
    low, middle, high = packed[:, :4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate([low & 63, (high & 15) | (low >> 6) << 4], axis=1)
    minima = np.concatenate([middle & 63, high >> 4 | (middle >> 6) << 4], axis=1)
    return scales.astype(np.float32), minima.astype(np.float32)


def _halves(packed: Bytes) -> Floats:
    """[blocks, 128] as [blocks, 8, 32]: of every 32 bytes the lower halves, then the upper ones."""
    parts = packed.reshape(-1, 4, 1, 32) >> np.array([0, 4], np.uint8).reshape(1, 1, 2, 1)
    return (parts & 15).reshape(-1, 8, 32).astype(np.float32)


def _q4_k(blocks: Bytes) -> Floats:
    scales, minima = _scales(blocks[:, 4:16])
    numbers = (_half(blocks, 0) * scales)[:, :, None] * _halves(blocks[:, 16:])
    return (numbers - (_half(blocks, 2) * minima)[:, :, None]).reshape(len(blocks), -1)


def _q5_k(blocks: Bytes) -> Floats:
    scales, minima = _scales(blocks[:, 4:16])
    bits = blocks[:, 16:48].reshape(-1, 1, 32) >> np.arange(8, dtype=np.uint8).reshape(1, 8, 1) & 1
    numbers = _halves(blocks[:, 48:]) + bits.astype(np.float32) * 16
    numbers = (_half(blocks, 0) * scales)[:, :, None] * numbers
    return (numbers - (_half(blocks, 2) * minima)[:, :, None]).reshape(len(blocks), -1)


def _q6_k(blocks: Bytes) -> Floats:
    count = len(blocks)
    low = blocks[:, :128].reshape(count, 2, 1, 64) >> np.array([0, 4], np.uint8).reshape(1, 1, 2, 1) & 15
    high = blocks[:, 128:192].reshape(count, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1) & 3
    numbers = (low.reshape(count, 2, 4, 32) | high << 4).astype(np.float32) - 32
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8).astype(np.float32)
    return (_half(blocks, 208) * scales)[:, :, None].repeat(16, axis=2).reshape(count, -1) * numbers.reshape(count, -1)


DECODERS = {
    name: Decoder(BLOCKS[name][0], decode)
    for name, decode in {
        "q4_0": _q4_0, "q4_1": _q4_1, "q5_0": _q5_0, "q5_1": _q5_1, "q8_0": _q8_0, "q4_k": _q4_k, "q5_k": _q5_k,
        "q6_k": _q6_k,
    }.items()
}  # fmt: skip
