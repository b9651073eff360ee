"""The columns that tables of costs have: what they are called and how their figures are written."""

from __future__ import annotations

from typing import Any, NamedTuple

from opscope.ir.facts import VALUE_FIGURES

BY = ("module", "op", "kind", "node", "kernel", "phase")

Row = dict[str, Any]


class Column(NamedTuple):
    """`kind` says how a figure is written: text, count, short (1.23 G), bytes, share, bar, ratio, seconds."""

    title: str
    kind: str


COLUMNS = {
    "name": Column("", "text"),
    "class": Column("class", "text"),
    "output": Column("output", "text"),
    "ops": Column("ops", "count"),
    "params": Column("params", "short"),
    "param_bytes": Column("param bytes", "bytes"),
    "macs": Column("MACs", "short"),
    "causal": Column("causal MACs", "short"),
    "flops": Column("FLOPs", "short"),
    "forward": Column("forward MACs", "short"),
    "backward": Column("backward MACs", "short"),
    "other": Column("other FLOPs", "short"),
    "activations": Column("activations", "short"),
    "activation_bytes": Column("activations", "bytes"),
    "read": Column("read", "bytes"),
    "written": Column("written", "bytes"),
    "bytes": Column("traffic", "bytes"),
    "wire": Column("wire", "bytes"),
    "intensity": Column("FLOPs/byte", "ratio"),
    "self": Column("self", "share"),
    "share": Column("share", "share"),
    "bar": Column("", "bar"),
    "op": Column("op", "text"),
    "kind": Column("kind", "text"),
    "module": Column("module", "text"),
    "phase": Column("phase", "text"),
    "how": Column("how", "text"),
    "runs": Column("runs", "count"),
    "node": Column("#", "count"),
    "time": Column("time", "seconds"),  # measured
    "gpu_seconds": Column("GPU time", "seconds"),  # of kernels that are wholly this row's
    "shared_seconds": Column("shared", "seconds"),  # of kernels that it shares with others
    "cpu_seconds": Column("CPU time", "seconds"),
    "mfu": Column("MFU", "share"),  # of the device that was measured: products at its peak
    "bandwidth": Column("bandwidth", "share"),
    "of_bound": Column("of bound", "share"),  # the least time, as a share of the measured one
    "seconds": Column("time ≥", "seconds"),  # the least on a device
    "bound": Column("bound by", "text"),
    **{name: Column(name, "number") for name in VALUE_FIGURES},  # measured of what an operator makes
    "nan": Column("NaN", "count"),
    "inf": Column("Inf", "count"),
}

CLOCKED = ("gpu_seconds", "shared_seconds", "cpu_seconds")
REACHED = ("mfu", "bandwidth", "of_bound")
_COMMON = (
    "time",
    *CLOCKED,
    *REACHED,
    "macs",
    "causal",
    "flops",
    "other",
    "read",
    "written",
    "bytes",
    "wire",
    "intensity",
    "share",
    "bar",
)
_TIMED = ("seconds",)
AVAILABLE = {
    "module": (
        "class", "output", "ops", "params", "param_bytes", "forward", "backward", "activations", "activation_bytes",
        "self", *_COMMON, *_TIMED,
    ),
    "op": ("ops", "kind", "how", *_COMMON, *_TIMED),
    "kind": ("ops", *_COMMON, *_TIMED),
    "node": (
        "node", "op", "kind", "module", "phase", "output", "activation_bytes", "how", *_COMMON, *_TIMED, "bound",
        *VALUE_FIGURES,
    ),
    "kernel": ("runs", "ops", *_COMMON, *_TIMED, "bound"),
    "phase": ("ops", *_COMMON, *_TIMED),
}  # fmt: skip
DEFAULT = {
    "module": ("output", "params", "macs", "activation_bytes", "self", "share", "bar"),
    "op": ("ops", "macs", "other", "bytes", "how", "share", "bar"),
    "kind": ("ops", "macs", "other", "bytes", "share", "bar"),
    "node": ("node", "module", "phase", "output", "macs", "other", "read", "written", "how", "share"),
    "kernel": ("runs", "ops", "macs", "other", "read", "written", "intensity", "share", "bar"),
    "phase": ("ops", "macs", "other", "bytes", "share", "bar"),
}
NAMES = {
    "module": "module",
    "op": "op",
    "kind": "kind of operator",
    "node": "op",
    "kernel": "kernel",
    "phase": "phase",
}


def column_of(name: str) -> Column:
    """One of COLUMNS, or a column of the user's own: `latency`, of modules also `latency:mean` and `latency:max`."""
    return COLUMNS.get(name) or Column(name, "number")


def order(figure: Any) -> Any:
    """The largest first; text by the alphabet; nothing last."""
    if isinstance(figure, str):
        return (0, figure)
    return (1, 0) if figure is None else (0, -figure)
