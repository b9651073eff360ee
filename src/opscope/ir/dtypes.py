"""The one table of dtypes: canonical name, bits of one element, family, and how frameworks spell it.

Bits are those of one element as the shape counts them: torch's float4_e2m1fn_x2 packs two numbers into
one element, so that element has 8. `viewer/src/wire/facts.ts` is generated from here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple


class Dtype(NamedTuple):
    name: str
    bits: int | None  # None: elements have no fixed size (strings, objects, keys)
    family: str


# name  bits  family  other spellings (any case): ONNX, XLA and JAX, NumPy, C, Hidet, MegEngine's .mge files, Paddle
TABLE = """
bool              8   bool       boolean pred bool8 b1
int1              1   int        int1b intb1
int2              2   int        int2b s2 intb2
int3              3   int        int3b
int4              4   int        int4b s4 intb4
int5              5   int
int6              6   int
int7              7   int
int8              8   int        s8 i8 char
int16             16  int        s16 i16 short
int32             32  int        s32 i32 int
int64             64  int        s64 i64 long
uint1             1   uint       uint1b
uint2             2   uint       uint2b u2
uint3             3   uint       uint3b
uint4             4   uint       uint4b u4 uintb4
uint5             5   uint
uint6             6   uint
uint7             7   uint
uint8             8   uint       u8 byte
uint16            16  uint       u16
uint32            32  uint       u32
uint64            64  uint       u64
float16           16  float      f16 half fp16
bfloat16          16  float      bf16
float32           32  float      f32 float fp32 single
tfloat32          32  float      tf32
float64           64  float      f64 double fp64
float8            8   float      f8
float8_e3m4       8   float      f8e3m4 float8e3m4
float8_e4m3       8   float      f8e4m3 float8e4m3
float8_e4m3fn     8   float      f8e4m3fn float8e4m3fn fp8_e4m3fn
float8_e4m3fnuz   8   float      f8e4m3fnuz float8e4m3fnuz
float8_e4m3b11fnuz 8  float      f8e4m3b11fnuz float8e4m3b11fnuz
float8_e5m2       8   float      f8e5m2 float8e5m2 fp8_e5m2
float8_e5m2fnuz   8   float      f8e5m2fnuz float8e5m2fnuz
float8_e8m0fnu    8   float      f8e8m0fnu float8e8m0 float8_e8m0
float6_e2m3fn     6   float      f6e2m3fn float6e2m3
float6_e3m2fn     6   float      f6e3m2fn float6e3m2
float4_e2m1fn     4   float      f4e2m1fn float4e2m1
float4_e2m1fn_x2  8   float
complex32         32  complex    chalf
bcomplex32        32  complex
complex64         64  complex    c64 cfloat
complex128        128 complex    c128 cdouble
qint8             8   quantized  quantizeds8 qint8_narrow
quint8            8   quantized  quantized8asymm
qint16            16  quantized  quantizeds16
qint32            32  quantized  quantizeds32
qint4             4   quantized  quantizeds4
quint4            4   quantized  quantized4asymm
quint2            2   quantized
qint2             2   quantized
qint1             1   quantized  quantizeds1
quint4x2          4   quantized
quint2x4          2   quantized
bits8             8   raw
bits16            16  raw
bits1x8           8   raw
bits2x4           8   raw
bits4x2           8   raw
float0            0   other
string            -   other      str pstring utf8
object            -   other
"""


def _entries() -> tuple[tuple[Dtype, tuple[str, ...]], ...]:
    found: list[tuple[Dtype, tuple[str, ...]]] = []
    for line in TABLE.strip().splitlines():
        name, bits, family, *spellings = line.split()
        found.append((Dtype(name, None if bits == "-" else int(bits), family), tuple(spellings)))
    return tuple(found)


_ENTRIES = _entries()
DTYPES = tuple(dtype for dtype, _ in _ENTRIES)
# llama.cpp's quantized numbers come in blocks, with scales between them: bytes of a block, and numbers in it.
BLOCKS = {
    "q4_0": (18, 32), "q4_1": (20, 32), "q5_0": (22, 32), "q5_1": (24, 32), "q8_0": (34, 32), "q8_1": (36, 32),
    "q2_k": (84, 256), "q3_k": (110, 256), "q4_k": (144, 256), "q5_k": (176, 256), "q6_k": (210, 256),
    "q8_k": (292, 256), "iq2_xxs": (66, 256), "iq2_xs": (74, 256), "iq3_xxs": (98, 256), "iq1_s": (50, 256),
    "iq4_nl": (18, 32), "iq3_s": (110, 256), "iq2_s": (82, 256), "iq4_xs": (136, 256), "iq1_m": (56, 256),
    "tq1_0": (54, 256), "tq2_0": (66, 256), "mxfp4": (17, 32),
}  # fmt: skip
_BY_NAME = {name: dtype for dtype, spellings in _ENTRIES for name in (dtype.name, *spellings)}

# Prefixes that say whose dtype it is, and types around it: torch.float32, paddle.DataType.INT8, tensor(float)
PREFIX = re.compile(r"^(?:[a-z_]\w*\.)+")
AROUND = re.compile(r"^tensor\((\w+)\)$")
VECTOR = re.compile(r"^(\w+?)x(\d+)$")  # Hidet's float16x2: one element of two lanes
SPARSE = re.compile(r"^(sparse_\w+)\((\w+)\)$")
"""A tensor that stores only some of its numbers: the shape does not say how many, so it has no known size."""
MOST_LANES = 1024


def names() -> dict[str, Dtype]:
    """Every spelling, in lower case."""
    return dict(_BY_NAME)


@lru_cache(maxsize=1024)
def find(name: str) -> Dtype | None:
    """The dtype of this name in any framework's spelling; None if there is none."""
    text = name.strip().lower()
    around = AROUND.match(text)
    text = PREFIX.sub("", around[1] if around else text)
    found = _BY_NAME.get(text)
    if text in BLOCKS:
        return Dtype(text, None, "quantized")
    if found is None and (vector := VECTOR.match(text)):
        lane, lanes = _BY_NAME.get(vector[1]), int(vector[2][:5])
        if lane is not None and lane.bits is not None and 0 < lanes <= MOST_LANES:
            return Dtype(text, lane.bits * lanes, lane.family)
    return found


def sparse(layout: str, name: str) -> str:
    """
    >>> sparse("sparse_csr", "float32")
    'sparse_csr(float32)'
    """
    return f"{layout}({name})"


def is_sparse(name: str) -> bool:
    return name.startswith("sparse_") and SPARSE.match(name) is not None


def of_element(name: str) -> str:
    """`float32` of `sparse_csr(float32)`."""
    found = SPARSE.match(name)
    return name if found is None else found[2]


def bits_of(name: str) -> int | None:
    """Bits of one element; None for a dtype that is not known or has no fixed size."""
    found = find(name)
    return None if found is None else found.bits


def bytes_of(name: str, elements: int) -> int | None:
    """Bytes of so many elements, rounded up where they share bytes."""
    if name in BLOCKS:
        size, count = BLOCKS[name]
        return -(-elements // count) * size
    bits = bits_of(name)
    return None if bits is None else -(-elements * bits // 8)
