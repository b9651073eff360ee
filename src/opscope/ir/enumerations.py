"""The shared enumerations. A graph, its file and the page store a member as its position in the tuple.

Append, never reorder: files hold the positions. `viewer/src/wire/facts.ts` is generated from here.
"""

from __future__ import annotations

from types import MappingProxyType

PHASES = ("init", "forward", "backward", "recompute", "optimizer", "other")
ROLES = ("input", "parameter", "buffer", "constant", "activation", "gradient", "state")

# How exactly an operator's cost is known.
HOW = ("exact", "zero", "estimated", "unknown")
EXACT, ZERO, ESTIMATED, UNKNOWN = HOW

# What a piece of memory holds.
MEMORY_CLASSES = ("parameter", "buffer", "state", "input", "constant", "gradient", "activation", "temporary")

# What happened to operators between two graphs, in the order in which reports list it.
CHANGE_CLASSES = ("fused", "split", "rewritten", "changed", "moved", "removed", "added", "same")

# How we know that operators of two stages belong together.
EVIDENCE = ("reported", "name", "structure")

# The figures that something which is missing from a graph makes too low: MACs and FLOPs; bytes moved; activations and
# live memory; which parameters there are, and which are used.
GAP_TOUCHES = ("compute", "traffic", "memory", "parameters")

# What operators are about: families of their kinds.
FAMILIES = (
    *("matmul", "convolution", "attention", "normalization", "activation", "elementwise", "reduction", "loss"),
    *("pooling", "indexing", "movement", "recurrent", "optimizer", "random", "other"),
)

# What ran while a profile was taken: an operator of the graph, what it called inside, a named part of the program,
# a step of it, a Python function, a call of the device's library; and on the device a kernel, a copy, the setting of
# memory.
EVENT_KINDS = ("operator", "call", "region", "step", "python", "launch", "kernel", "copy", "set")
# Where it ran.
TRACK_KINDS = ("thread", "stream")

# Why time is lost, and how it could be won.
SAVING_KINDS = (
    *("launch-bound", "idle", "below-peak", "memory-bound", "small-kernels", "copies", "conversions"),
    *("communication", "unknown-device"),
)

# Kinds of pairs of nodes, of sets of nodes, and of a framework's own texts. Captures may hold others too.
LINK_KINDS = ("grad", "recompute", "alias", "control")
GROUP_KINDS = ("kernel", "partition", "pattern")
LISTING_KINDS = ("table", "code", "native", "signature", "symbols", "breaks")
STAGE_LINK_KINDS = ("lowers", "flows", "communicates")


def ids(names: tuple[str, ...]) -> MappingProxyType[str, int]:
    """Name -> position."""
    return MappingProxyType({name: i for i, name in enumerate(names)})


PHASE_ID = ids(PHASES)
ROLE_ID = ids(ROLES)
HOW_ID = ids(HOW)
CHANGE_CLASS_ID = ids(CHANGE_CLASSES)
EVIDENCE_ID = ids(EVIDENCE)
