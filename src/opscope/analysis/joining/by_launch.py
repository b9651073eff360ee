"""Join compiled graphs: their kernels are launched in an order that the generated code says.

A generated kernel has its name in the profile too; a library's has another one, but it is where the code calls the
library. In the replay of a recorded graph (CUDA graphs) all kernels belong to one call, and only their order says which
is which: the names of the generated ones verify it on the way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from opscope.ir import Capture

from .measured import Measured, operator_name
from .placed import Placing
from .sequences import aligned, shared_out

BY_NAME, BY_ORDER = "by name and order", "by order"
_LEAST_FIT = 0.5  # of the launches of a graph that must be found in a region
# Names of a library's kernels, and the operators that they compute.
_KINDS = (
    (re.compile(r"gemm|nvjet|cublas|cutlass|splitk|matmul", re.I), re.compile(r"mm|linear|matmul|bmm")),
    (re.compile(r"sdpa|attention|fmha|flash|cudnn::fusion|dot_do_o|convert_dq", re.I), re.compile(r"attention|flash")),
    (re.compile(r"conv|dgrad|wgrad|fprop|winograd|implicit|nchw|nhwc", re.I), re.compile(r"conv")),
    (re.compile(r"nccl", re.I), re.compile(r"c10d|all_reduce|gather|scatter|broadcast|all_to_all")),
    (re.compile(r"sort|scan|radix", re.I), re.compile(r"sort|topk|cumsum|unique|nonzero")),
    (re.compile(r"index|scatter|gather", re.I), re.compile(r"index|scatter|gather|embedding")),
)


class Program(NamedTuple):
    """The launches of a compiled graph in order, and the stages that hold them."""

    names: tuple[str, ...]
    stages: list[int]


class Token(NamedTuple):
    """Something that a compiled region ran: what it is called, and its kernels."""

    name: str
    kernels: list[int]


def programs(capture: Capture) -> list[Program]:
    """The compiled graphs of a capture: stages that hold the same launches are of one."""
    found: dict[tuple[str, ...], Program] = {}
    strings = capture.pools.strings
    for number, stage in enumerate(capture.stages):
        groups = stage.graph.groups.get("kernel")
        if groups is not None and len(groups):
            names = tuple(operator_name(strings[name]) for name in groups.name.tolist())
            found.setdefault(names, Program(names, [])).stages.append(number)
    return list(found.values())


def by_launch(placing: Placing, capture: Capture) -> list[int]:
    """Place the kernels of compiled regions. Gives the operators of the profile that ran outside of them."""
    measured = placing.measured
    known = programs(capture)
    for program in known:
        placing.same[program.stages[0]] = program.stages
    inside: set[int] = set()
    for region in measured.regions:
        best = max(((_fit(program, measured, region), program) for program in known), default=None, key=lambda e: e[0])
        if best is not None and best[0] >= _LEAST_FIT:
            inside.update(region)
            # What the region ran beside its launches, such as copies into the memory of a replay, is outside again.
            inside.difference_update(_place(placing, best[1], region))
    return [node for node in range(measured.graph.n_nodes) if node not in inside]


def _tokens(measured: Measured, region: Sequence[int]) -> list[Token]:
    """What ran on a device; of a replay, kernel by kernel."""
    found: list[Token] = []
    for node in region:
        kernels = measured.kernels_of[node]
        if measured.is_replay(node):
            found += [Token(measured.kernel_names[kernel], [kernel]) for kernel in kernels]
        elif kernels:
            found.append(Token(measured.ops[node], kernels))
    return found


def _fit(program: Program, measured: Measured, region: Sequence[int]) -> float:
    """How much of a compiled graph and of a region may be the same, by the names of the kernels alone."""
    have = Counter(token.name for token in _tokens(measured, region))
    want = Counter(program.names)
    common = sum((have & want).values())
    if any(measured.is_replay(node) for node in region):  # the library's kernels have names of their own there
        want = Counter({name: n for name, n in want.items() if _is_generated(name)})
        have = Counter({name: n for name, n in have.items() if _is_generated(name)})
        if not want and not have:
            return _LEAST_FIT
    return 2 * common / max(sum(want.values()) + sum(have.values()), 1)


def _is_generated(name: str) -> bool:
    return name.startswith(("triton_", "cpp_"))


def _place(placing: Placing, program: Program, region: Sequence[int]) -> list[int]:
    """Put the kernels of a region on launches. Gives the operators that are none of them."""
    tokens = _tokens(placing.measured, region)
    stage = program.stages[0]
    is_replay = any(placing.measured.is_replay(node) for node in region)
    evidence = BY_ORDER if is_replay else BY_NAME
    found = aligned(list(program.names), [token.name for token in tokens])
    before_launch = before_token = -1
    for launch, at in [*enumerate(found), (len(found), len(tokens))]:
        if at < 0:
            continue
        _between(placing, program, tokens, range(before_launch + 1, launch), range(before_token + 1, at))
        if launch < len(found):
            placing.launch(stage, launch, tokens[at].kernels, evidence)
        before_launch, before_token = launch, at
    kernels = placing.measured.kernels_of
    return [node for node in region if kernels[node] and not any(kernel in placing.put for kernel in kernels[node])]


def _between(placing: Placing, program: Program, tokens: Sequence[Token], launches: range, between: range) -> None:
    """Launches and kernels between two that have the same name: their order decides, and what libraries call theirs."""
    if not between:
        return
    reason = "it ran in a compiled graph that does not launch anything there"
    if not launches:
        for position in between:
            placing.reasons.update(dict.fromkeys(tokens[position].kernels, reason))
        return

    def fits(item: int, place: int) -> float:
        return _affinity(tokens[between[item]].name, program.names[launches[place]])

    gathered: dict[int, list[int]] = {}
    for item, place in enumerate(shared_out(len(between), len(launches), fits)):
        gathered.setdefault(place, []).extend(tokens[between[item]].kernels)
    for place, kernels in gathered.items():
        placing.launch(program.stages[0], launches[place], kernels, BY_ORDER)


def _affinity(kernel: str, launch: str) -> float:
    if _is_generated(launch) or _is_generated(kernel):
        return -1.0
    for theirs, ours in _KINDS:
        if theirs.search(kernel):
            return 1.0 if ours.search(launch) else 0.0
    return 0.1
