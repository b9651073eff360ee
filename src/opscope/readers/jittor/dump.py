"""The dump of Jittor's tracer as plain rows, whatever state it is in.

A dump is two dicts: `node_data` (operators and variables, by id) and `execute_op_info` (what ran, in
order). Dumps in the wild miss things: ids that point nowhere, operators that never ran, recordings
that began in the middle. Each such case becomes a warning in words; none is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard, cast

from opscope.errors import BadInput

KEYS = ("node_data", "execute_op_info")
_MOST_LISTED = 8  # ids named in one warning

# Jittor stops recording here (py_var_tracer.cc).
MOST_EXECUTIONS = 100_000


class StackEntry(NamedTuple):
    """One entry of a recorded stack: a module with the line that called it, or a raw frame.

    The last three are only known of live captures, whose tracer saw the calls themselves.
    """

    name: str
    type: str
    file: str
    line: int
    function: str = ""
    kind: str = ""  # module, optimizer or init
    call: int = 0  # which call of that module by its caller

    @property
    def is_raw(self) -> bool:
        """Raw frames are named file:line; the others are modules and optimizers."""
        return self.name == f"{self.file}:{self.line}"


class Op(NamedTuple):
    id: int
    name: str
    inputs: list[int]
    outputs: list[int]
    stack: tuple[StackEntry, ...]
    grad_of: int | None  # the operator whose gradient this one computes
    step: int = 0  # the training step, from 1, where a live capture holds several
    pending: bool = False  # made before a live capture began, and run in it


class Var(NamedTuple):
    id: int
    name: str
    producers: list[int]
    dtype: str
    shape: tuple[int, ...] | None
    data: str | None  # the values, where the trace was made with trace_var_data
    replaces: int | None = None  # the variable that this one was written over, where a live capture saw it


class Execution(NamedTuple):
    """One kernel that ran: the operators fused in it, its key, and its generated C++ file."""

    ops: list[int]
    jit_key: str
    file: str
    attrs: dict[str, Any]


@dataclass
class Dump:
    ops: dict[int, Op] = field(default_factory=dict[int, Op])
    vars: dict[int, Var] = field(default_factory=dict[int, Var])
    executions: list[Execution] = field(default_factory=list[Execution])
    warnings: list[str] = field(default_factory=list[str])


def is_dump(data: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(data, dict) and all(isinstance(cast("Any", data).get(key), dict) for key in KEYS)


def parse(data: Mapping[str, Any], room: int | None = None) -> Dump:
    """Rows from a dump. `room` bounds how many ids all lists hold together: lists that a pickle shares
    a million times over would otherwise grow beyond any memory."""
    dump = Dump()
    odd: list[int] = []
    seen: dict[int, tuple[StackEntry, ...]] = {}  # by object: a pickle may share one stack a million times
    for key in sorted(k for k in data["node_data"] if _is_int(k)):
        entry = data["node_data"][key]
        attrs = _dict(_dict(entry).get("attrs"))
        if not attrs:
            odd.append(key)
            continue
        inputs, outputs = _ids(entry.get("inputs")), _ids(entry.get("outputs"))
        if room is not None:
            room -= len(inputs) + len(outputs)
            if room < 0:
                raise BadInput("its lists refer to more ids than a file of this size can hold: refused")
        if str(attrs.get("is_var", "0")) == "1":
            shape = _shape(attrs.get("shape"))
            data_text = attrs.get("data")
            dump.vars[key] = Var(
                key,
                _text(attrs.get("name")),
                inputs,
                _text(attrs.get("dtype")),
                shape,
                data_text if isinstance(data_text, str) else None,
                _int_of(entry.get("replaces")),
            )
        else:
            stacks = entry.get("stacks")
            stack = seen.get(id(stacks))
            if stack is None:
                stack = seen[id(stacks)] = _stack(stacks)
            dump.ops[key] = Op(
                key,
                _text(attrs.get("name")),
                inputs,
                outputs,
                stack,
                _int_of(attrs.get("grad_op_id")),
                step=_count(entry.get("step")),
                pending=entry.get("pending") is True,
            )
    if odd:
        dump.warnings.append(
            f"{counted(odd, 'entry', 'entries')} of node_data could not be understood and were left out"
        )
    _executions(data["execute_op_info"], dump)
    return dump


def _executions(info: Mapping[Any, Any], dump: Dump) -> None:
    odd: list[int] = []
    for key in sorted(k for k in info if _is_int(k)):
        entry = _dict(info[key])
        if not isinstance(entry.get("fused_ops"), list):
            odd.append(key)
            continue
        dump.executions.append(
            Execution(
                _ids(entry["fused_ops"]),
                _text(entry.get("jit_key")),
                _text(entry.get("file_path")),
                _dict(entry.get("attrs")),
            )
        )
    if odd:
        dump.warnings.append(
            f"{counted(odd, 'entry', 'entries')} of execute_op_info could not be understood and were left out"
        )
    if len(dump.executions) > MOST_EXECUTIONS:
        dump.warnings.append(
            f"Jittor stops recording after {MOST_EXECUTIONS:,} kernels: what ran later is not in this trace"
        )


def counted(ids: list[int], one: str, many: str) -> str:
    """`3 operators (12, 15, 18)`, shortened where there are many."""
    listed = ", ".join(map(str, ids[:_MOST_LISTED])) + (", …" if len(ids) > _MOST_LISTED else "")
    return f"{len(ids)} {one if len(ids) == 1 else many} ({listed})"


def _is_int(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**31) < value < 2**31


def _ids(value: Any) -> list[int]:
    return [i for i in cast("list[Any]", value) if _is_int(i)] if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if _is_int(value) and value > 0 else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _int_of(value: Any) -> int | None:
    """grad_op_id is a number in a string."""
    if _is_int(value):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return None


def _shape(value: Any) -> tuple[int, ...] | None:
    """'[10,1,]', with its comma at the end."""
    if not isinstance(value, str) or len(value) > 1000:
        return None
    try:
        return tuple(int(part) for part in value.strip("[] ").split(",") if part.strip())
    except ValueError:
        return None


def _stack(value: Any) -> tuple[StackEntry, ...]:
    if not isinstance(value, list):
        return ()
    entries: list[StackEntry] = []
    for item in cast("list[Any]", value)[:1000]:
        entry = _dict(item)
        if entry:
            line = entry.get("lineno")
            entries.append(
                StackEntry(
                    _text(entry.get("name")),
                    _text(entry.get("type")),
                    _text(entry.get("file_path")),
                    line if _is_int(line) and line > 0 else 0,
                    _text(entry.get("function")),
                    _text(entry.get("kind")),
                    _count(entry.get("call")),
                )
            )
    return tuple(entries)
