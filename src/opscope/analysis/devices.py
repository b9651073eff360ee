"""A few common devices: the most that they can do, from their makers' data sheets.

FLOP/s are dense (no structured sparsity) and, where there are matrix units, those of the matrix units; `float32` is
that of the plain units, `tf32` stands by itself. A real program stays below all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from opscope.errors import OpscopeError

T = 10**12
G = 10**9


@dataclass(frozen=True)
class Device:
    """Peak FLOP/s by dtype, FLOP/s of all other operations, bytes/s of its memory, and where that is written."""

    name: str
    title: str
    flops: MappingProxyType[str, float]
    other: float
    bandwidth: float
    memory: int
    source: str

    def peak(self, dtype: str) -> float:
        """For a dtype that it has no figure for: that of the next wider one."""
        family = dtype.partition("_")[0]
        for name in _WIDER.get(family, (family, "float32")):
            if name in self.flops:
                return self.flops[name]
        return self.flops["float32"]


_WIDER = {
    "float8": ("float8", "float16", "float32"),
    "float16": ("float16", "float32"),
    "bfloat16": ("bfloat16", "float16", "float32"),
    "int8": ("int8", "float16", "float32"),
    "uint8": ("int8", "float16", "float32"),
    "qint8": ("int8", "float16", "float32"),
    "quint8": ("int8", "float16", "float32"),
    "tf32": ("tf32", "float32"),
    "float64": ("float64", "float32"),
}


def _device(
    name: str, title: str, source: str, *, bandwidth: float, memory: int, other: float, **flops: float
) -> Device:
    return Device(name, title, MappingProxyType(flops), other, bandwidth, memory * G, source)


_ALL = (
    _device(
        "h200", "NVIDIA H200 SXM", "NVIDIA H200 data sheet, 2024", bandwidth=4.8 * T, memory=141, other=67 * T,
        float64=67 * T, float32=67 * T, tf32=494.7 * T, float16=989.4 * T, bfloat16=989.4 * T, float8=1979 * T,
        int8=1979 * T,
    ),
    _device(
        "h100", "NVIDIA H100 SXM 80 GB", "NVIDIA H100 data sheet, 2023", bandwidth=3.35 * T, memory=80, other=67 * T,
        float64=67 * T, float32=67 * T, tf32=494.7 * T, float16=989.4 * T, bfloat16=989.4 * T, float8=1979 * T,
        int8=1979 * T,
    ),
    _device(
        "a100", "NVIDIA A100 SXM 80 GB", "NVIDIA A100 data sheet, 2021", bandwidth=2.039 * T, memory=80, other=19.5 * T,
        float64=19.5 * T, float32=19.5 * T, tf32=156 * T, float16=312 * T, bfloat16=312 * T, int8=624 * T,
    ),
    _device(
        "v100", "NVIDIA V100 SXM2 32 GB", "NVIDIA V100 data sheet, 2020", bandwidth=0.9 * T, memory=32, other=15.7 * T,
        float64=7.8 * T, float32=15.7 * T, float16=125 * T,
    ),
    _device(
        "l4", "NVIDIA L4", "NVIDIA L4 data sheet, 2023 (half of the figures with sparsity)",
        bandwidth=0.3 * T, memory=24, other=30.3 * T,
        float32=30.3 * T, tf32=60 * T, float16=121 * T, bfloat16=121 * T, float8=242.5 * T, int8=242.5 * T,
    ),
    _device(
        "t4", "NVIDIA T4", "NVIDIA T4 data sheet, 2019", bandwidth=0.32 * T, memory=16, other=8.1 * T,
        float32=8.1 * T, float16=65 * T, int8=130 * T,
    ),
    _device(
        "rtx4090", "NVIDIA GeForce RTX 4090", "NVIDIA Ada GPU architecture white paper, 2022 (FP32 accumulate)",
        bandwidth=1.008 * T, memory=24, other=82.6 * T,
        float32=82.6 * T, tf32=82.6 * T, float16=165.2 * T, bfloat16=165.2 * T, float8=330.3 * T, int8=660.6 * T,
    ),
    _device(
        "mi300x", "AMD Instinct MI300X", "AMD MI300X data sheet, 2023", bandwidth=5.3 * T, memory=192, other=163.4 * T,
        float64=163.4 * T, float32=163.4 * T, tf32=653.7 * T, float16=1307.4 * T, bfloat16=1307.4 * T,
        float8=2614.9 * T, int8=2614.9 * T,
    ),
    _device(
        "epyc9654", "AMD EPYC 9654, one socket (96 cores, 2.4 GHz, AVX-512)",
        "cores × clock × 32 (two 256-bit FMA units); 12 channels of DDR5-4800", bandwidth=460.8 * G, memory=768,
        other=7.37 * T / 2, float64=3.69 * T, float32=7.37 * T, bfloat16=14.7 * T, int8=29.5 * T,
    ),
    _device(
        "xeon8480", "Intel Xeon Platinum 8480+, one socket (56 cores, 2.0 GHz, AMX)",
        "cores × clock × 64 (two AVX-512 FMA units), AMX 1024 in bfloat16; 8 channels of DDR5-4800",
        bandwidth=307.2 * G, memory=512, other=7.17 * T / 2, float64=3.58 * T, float32=7.17 * T,
        bfloat16=114.7 * T, int8=229.4 * T,
    ),
)  # fmt: skip

DEVICES = MappingProxyType({device.name: device for device in _ALL})


def device(name: str) -> Device:
    found = DEVICES.get(name.lower().replace("-", "").replace(" ", "").replace("_", ""))
    if found is None:
        raise OpscopeError(f"no device {name!r} (there are: {', '.join(DEVICES)})")
    return found
