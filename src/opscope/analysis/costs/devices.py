"""A few common devices: the most that they can do, from their makers' data sheets.

FLOP/s are dense (no structured sparsity) and, where there are matrix units, those of the matrix units; `float32` is
that of the plain units, `tf32` is given separately. A real program stays below all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

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
    reported: str = ""  # a pattern of the names by which drivers and profilers call it, in lower case

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


# What drivers call them. Only what is the same device: an A100 with PCIe or of 40 GB has another memory.
_REPORTED = {
    "h200": r"(nvidia )?h200( sxm)?( 141gb)?( hbm3e)?",
    "h100": r"(nvidia )?h100 (80gb hbm3|sxm5?( 80gb)?)",
    "a100": r"(nvidia )?a100-sxm4?-80gb",
    "v100": r"(tesla )?v100-sxm2-32gb",
    "l4": r"(nvidia )?l4",
    "t4": r"(nvidia |tesla )?t4",
    "rtx4090": r"(nvidia )?(geforce )?rtx 4090",
    "mi300x": r"(amd )?(instinct )?mi300x( oam)?",
}


def _device(
    name: str, title: str, source: str, *, bandwidth: float, memory: int, other: float, **flops: float
) -> Device:
    reported = _REPORTED.get(name, "")
    return Device(name, title, MappingProxyType(flops), other, bandwidth, memory * G, source, reported)


# GPUs: the data sheets of NVIDIA and AMD. NVIDIA's since Ampere give the matrix units with structured sparsity first;
# here are the dense figures, which are half of those. CPUs: vendors give no figure, so it is cores × the highest clock
# of the data sheet × what a core does in a cycle; all cores at once never run that fast, so no program is faster.
_ALL = (
    # NVIDIA H200 Tensor Core GPU data sheet (2024), column SXM: FP16 1,979, TF32 989, FP8 3,958 with sparsity.
    _device(
        "h200", "NVIDIA H200 SXM", "NVIDIA H200 data sheet, dense", bandwidth=4.8 * T, memory=141, other=67 * T,
        float64=67 * T, float32=67 * T, tf32=494.7 * T, float16=989.4 * T, bfloat16=989.4 * T, float8=1979 * T,
        int8=1979 * T,
    ),
    # NVIDIA H100 Tensor Core GPU data sheet (2023), column SXM: as the H200 but for the memory. Dense figures with one
    # more digit are in the H100 architecture white paper (989.4, 494.7).
    _device(
        "h100", "NVIDIA H100 SXM 80 GB", "NVIDIA H100 data sheet, dense", bandwidth=3.35 * T, memory=80, other=67 * T,
        float64=67 * T, float32=67 * T, tf32=494.7 * T, float16=989.4 * T, bfloat16=989.4 * T, float8=1979 * T,
        int8=1979 * T,
    ),
    # NVIDIA A100 Tensor Core GPU data sheet (2021), column 80GB SXM. FP64 is that of the matrix units; plain 9.7.
    _device(
        "a100", "NVIDIA A100 SXM 80 GB", "NVIDIA A100 data sheet, dense", bandwidth=2.039 * T, memory=80,
        other=19.5 * T,
        float64=19.5 * T, float32=19.5 * T, tf32=156 * T, float16=312 * T, bfloat16=312 * T, int8=624 * T,
    ),
    # NVIDIA V100 Tensor Core GPU data sheet (2020), column V100 SXM2. It knows no sparsity.
    _device(
        "v100", "NVIDIA V100 SXM2 32 GB", "NVIDIA V100 data sheet", bandwidth=0.9 * T, memory=32, other=15.7 * T,
        float64=7.8 * T, float32=15.7 * T, float16=125 * T,
    ),
    # NVIDIA L4 Tensor Core GPU data sheet (2023): TF32 120, FP16 242, FP8 485 with sparsity. FP64 is 1/64 of FP32.
    _device(
        "l4", "NVIDIA L4", "NVIDIA L4 data sheet, dense", bandwidth=0.3 * T, memory=24, other=30.3 * T,
        float64=0.473 * T, float32=30.3 * T, tf32=60 * T, float16=121 * T, bfloat16=121 * T, float8=242.5 * T,
        int8=242.5 * T,
    ),
    # NVIDIA T4 Tensor Core GPU data sheet (2019): "320+ GB/s". It knows no sparsity. FP64 is 1/32 of FP32.
    _device(
        "t4", "NVIDIA T4", "NVIDIA T4 data sheet", bandwidth=0.32 * T, memory=16, other=8.1 * T,
        float64=0.253 * T, float32=8.1 * T, float16=65 * T, int8=130 * T,
    ),
    # NVIDIA Ada GPU architecture white paper (2022), appendix A: the matrix units with FP32 accumulate, dense. With
    # FP16 accumulate they do twice that. FP64 is 1/64 of FP32.
    _device(
        "rtx4090", "NVIDIA GeForce RTX 4090", "NVIDIA Ada GPU architecture white paper, dense, FP32 accumulate",
        bandwidth=1.008 * T, memory=24, other=82.6 * T,
        float64=1.29 * T, float32=82.6 * T, tf32=82.6 * T, float16=165.2 * T, bfloat16=165.2 * T, float8=330.3 * T,
        int8=660.6 * T,
    ),
    # AMD Instinct MI300X accelerator data sheet (2023): matrix figures without sparsity. FP64 and FP32 of the matrix
    # units; the vector units do 81.7 and 163.4.
    _device(
        "mi300x", "AMD Instinct MI300X", "AMD Instinct MI300X data sheet, dense", bandwidth=5.3 * T, memory=192,
        other=163.4 * T,
        float64=163.4 * T, float32=163.4 * T, tf32=653.7 * T, float16=1307.4 * T, bfloat16=1307.4 * T,
        float8=2614.9 * T, int8=2614.9 * T,
    ),
    # AMD EPYC 9004 series data sheet (2022): 96 cores, boost up to 3.7 GHz, 12 channels of DDR5-4800. In a cycle two
    # 256-bit FMA units: 32 FLOPs in FP32, twice that in BF16 (AVX512_BF16), four times in INT8 (VNNI).
    _device(
        "epyc9654", "AMD EPYC 9654, one socket (96 cores, up to 3.7 GHz)",
        "AMD EPYC 9004 data sheet: cores × boost clock × 32 FLOPs; 12 channels of DDR5-4800", bandwidth=460.8 * G,
        memory=768, other=5.68 * T, float64=5.68 * T, float32=11.37 * T, bfloat16=22.7 * T, int8=45.5 * T,
    ),
    # Intel Xeon Platinum 8480+ product specifications (2023): 56 cores, turbo up to 3.8 GHz, 8 channels of DDR5-4800.
    # In a cycle two 512-bit FMA units: 64 FLOPs in FP32; AMX (Intel's optimization manual) 1024 in BF16, 2048 in INT8.
    _device(
        "xeon8480", "Intel Xeon Platinum 8480+, one socket (56 cores, up to 3.8 GHz, AMX)",
        "Intel product specifications: cores × turbo clock × 64 FLOPs, AMX 1024 in BF16; 8 channels of DDR5-4800",
        bandwidth=307.2 * G, memory=512, other=6.81 * T, float64=6.81 * T, float32=13.62 * T,
        bfloat16=217.9 * T, int8=435.8 * T,
    ),
)  # fmt: skip

DEVICES = MappingProxyType({device.name: device for device in _ALL})


def device(name: str) -> Device:
    found = DEVICES.get(name.lower().replace("-", "").replace(" ", "").replace("_", ""))
    if found is None:
        raise OpscopeError(f"no device {name!r} (there are: {', '.join(DEVICES)})")
    return found


def reported_as(name: str) -> Device | None:
    """The device that a profiler calls so; None: its figures are not known here.

    >>> reported_as("NVIDIA H200").name
    'h200'
    >>> reported_as("NVIDIA A100-PCIE-40GB")
    """
    called = " ".join(name.lower().split())
    return next((device for device in _ALL if device.reported and re.fullmatch(device.reported, called)), None)


_DTYPES = ("float64", "float32", "tf32", "float16", "bfloat16", "float8", "int8", "uint8", "qint8", "quint8")


def described() -> list[dict[str, Any]]:
    """What each device can do at most, for the roofline of the page."""
    return [
        {
            "name": device.name,
            "title": device.title,
            "peaks": {name: device.peak(name) for name in _DTYPES},
            "other": device.other,
            "bandwidth": device.bandwidth,
            "memory": device.memory,
            "source": device.source,
            "reported": device.reported,
        }
        for device in DEVICES.values()
    ]
