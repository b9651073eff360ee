"""A few common machines and what joins their devices: the most bytes that one device can send in a second.

Inside a machine that is NVLink or what stands for it, in one direction; between machines its share of the network
adapters. Data sheets give both directions together for NVLink: here is half of that. Latencies are what NCCL's own
tests show for small messages, rounded; they matter only for small collectives.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from opscope.errors import OpscopeError

G = 10**9
_US = 1e-6


@dataclass(frozen=True)
class Network:
    """Bytes a second that one device sends, inside its machine and to another one; seconds until the first byte."""

    name: str
    title: str
    local: int  # devices in a machine
    inside: float
    across: float
    source: str
    inside_latency: float = 3 * _US
    across_latency: float = 8 * _US


_ALL = (
    # NVIDIA DGX H100 data sheet (2023): NVLink 900 GB/s both ways, 8 ConnectX-7 of 400 Gb/s for 8 GPUs.
    Network("dgxh100", "DGX H100: NVLink 4, 8 × 400 Gb/s InfiniBand", 8, 450 * G, 50 * G, "NVIDIA DGX H100 data sheet"),
    # NVIDIA DGX H200 data sheet (2024): as the H100.
    Network("dgxh200", "DGX H200: NVLink 4, 8 × 400 Gb/s InfiniBand", 8, 450 * G, 50 * G, "NVIDIA DGX H200 data sheet"),
    # NVIDIA DGX B200 data sheet (2024): NVLink 1.8 TB/s both ways, 8 × 400 Gb/s.
    Network("dgxb200", "DGX B200: NVLink 5, 8 × 400 Gb/s InfiniBand",
            8, 900 * G, 50 * G, "NVIDIA DGX B200 data sheet"),
    # NVIDIA GB200 NVL72 data sheet (2024): 72 GPUs in one NVLink domain, 1.8 TB/s both ways, 400 Gb/s a GPU.
    Network("gb200nvl72", "GB200 NVL72: NVLink 5, 400 Gb/s a GPU",
            72, 900 * G, 50 * G, "NVIDIA GB200 NVL72 data sheet"),
    # NVIDIA DGX A100 data sheet (2020): NVLink 600 GB/s both ways, 8 ConnectX-6 of 200 Gb/s.
    Network("dgxa100", "DGX A100: NVLink 3, 8 × 200 Gb/s InfiniBand", 8, 300 * G, 25 * G, "NVIDIA DGX A100 data sheet"),
    # NVIDIA DGX-1 V100 data sheet (2018): NVLink 300 GB/s both ways, 4 × 100 Gb/s for 8 GPUs.
    Network("dgx1", "DGX-1 V100: NVLink 2, 4 × 100 Gb/s InfiniBand", 8, 150 * G, 6.25 * G, "NVIDIA DGX-1 data sheet"),
    # Amazon EC2 instance types: p5 3,200 Gb/s and p4d 400 Gb/s of EFA for 8 GPUs.
    Network("p5", "AWS p5.48xlarge: NVLink 4, 3,200 Gb/s EFA",
            8, 450 * G, 50 * G, "Amazon EC2 P5", across_latency=20 * _US),
    Network("p4d", "AWS p4d.24xlarge: NVLink 3, 400 Gb/s EFA",
            8, 300 * G, 6.25 * G, "Amazon EC2 P4", across_latency=20 * _US),
    # AMD Instinct MI300X platform data sheet (2023): 7 links of 64 GB/s in one direction; 400 Gb/s a GPU is usual.
    Network("mi300x", "8 × MI300X: Infinity Fabric, 400 Gb/s a GPU",
            8, 448 * G, 50 * G, "AMD MI300X platform data sheet"),
    # PCI Express 4.0 × 16: 32 GB/s in one direction; one adapter of 100 Gb/s for 8 devices.
    Network("pcie4", "8 devices on PCIe 4.0 ×16, 100 Gb/s Ethernet",
            8, 32 * G, 1.5625 * G, "PCI Express 4.0", 5 * _US, 30 * _US),
)  # fmt: skip

NETWORKS = MappingProxyType({network.name: network for network in _ALL})


def network(name: str) -> Network:
    found = NETWORKS.get(name.lower().replace("-", "").replace(" ", "").replace("_", ""))
    if found is None:
        raise OpscopeError(f"no network {name!r} (there are: {', '.join(NETWORKS)})")
    return found


def seconds(network: Network, kind: str, sent: int, ranks: list[int]) -> float:
    """How long a rank takes at least to hand `sent` bytes to the others of its group, by a ring.

    A ring goes through each machine once, and all its adapters can carry it: between machines it has as many times the
    share of one device as the group has devices on a machine, but no more than a device sends inside.
    """
    size = len(ranks)
    if size < 2:
        return 0.0
    machines = len({rank // network.local for rank in ranks})
    if machines == 1:
        speed, latency = network.inside, network.inside_latency
    else:
        together = size / machines if kind not in ("send", "all_to_all") else 1.0
        speed, latency = min(network.across * together, network.inside), network.across_latency
    return sent / speed + latency * _steps(kind, size)


def _steps(kind: str, size: int) -> int:
    """How many messages follow each other in a ring."""
    return {"all_reduce": 2 * (size - 1), "send": 1, "all_to_all": 1}.get(kind, size - 1)
