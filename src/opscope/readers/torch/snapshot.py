"""Snapshots of PyTorch's CUDA allocator: `torch.cuda.memory._dump_snapshot`, a pickle of plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from opscope.errors import BadInput
from opscope.ir import Capture
from opscope.ir.allocations import Allocations, Block, Event
from opscope.ir.pools import Frame
from opscope.readers.pickles import load_plain, looks_like_pickle
from opscope.readers.source import Options, Source

NAME = "torch-memory"
_KEYS = (b"segments", b"device_traces")
_OPERATOR = re.compile(r"at::_ops::(\w+?)::(?:call|redispatch)\b")
_MOST_FRAMES = 24  # of a stack that are kept
_MACHINERY = ("/torch/nn/modules/module.py", "/torch/_ops.py", "/torch/utils/_contextlib.py")
_LARGEST = 1 << 62

Row = dict[str, Any]


def match(source: Source) -> bool:
    head = source.head
    return looks_like_pickle(head, source.name) and any(key in head for key in _KEYS)


def read(source: Source, options: Options) -> Capture:
    raise BadInput(
        f"{source.name}: a memory snapshot of PyTorch: it has no operators. Join it to a capture of the same program: "
        "opscope info CAPTURE --profile SNAPSHOT"
    )


def allocations(source: Source) -> Allocations:
    """The history of the device that has the longest one."""
    name = source.name
    found = load_plain(source.read(), name)
    if not isinstance(found, dict):
        raise BadInput(f"{name}: not a memory snapshot: it holds {type(found).__name__}, not a dict")
    snapshot = cast("Row", found)
    segments, traces = _rows(snapshot.get("segments")), snapshot.get("device_traces")
    if traces is not None and not isinstance(traces, list | tuple):
        raise BadInput(f"{name}: not a memory snapshot: device_traces is {type(traces).__name__}, not a list")
    histories = [_rows(trace) for trace in cast("list[Any]", traces or [])]
    if not segments and not any(histories):
        raise BadInput(f"{name}: a memory snapshot without a single segment: nothing was allocated")
    device = max(range(len(histories)), key=lambda i: len(histories[i]), default=0)
    warnings: list[str] = []
    others = sum(1 for i, history in enumerate(histories) if history and i != device)
    if others:
        warnings.append(f"{name}: only device {device} is shown; {others} others have a history as well")
    history = histories[device] if histories else []
    if not history:
        warnings.append(
            f"{name}: no history of allocations: call torch.cuda.memory._record_memory_history() before the step"
        )
    return _history(segments, history, device, warnings)


def _history(segments: list[Row], history: list[Row], device: int, warnings: list[str]) -> Allocations:
    events: list[Event] = []
    refused, refused_at = None, 0
    # The address is free once the device is done with it; older snapshots say only that it was asked to be.
    freed = "free_completed" if any(row.get("action") == "free_completed" for row in history) else "free_requested"
    for row in history:
        action = row.get("action")
        if action in ("alloc", freed):
            events.append(Event(_block(row, "addr", "size"), action == freed))
        elif action == "oom" and refused is None:
            refused, refused_at = _block(row, "device_free", "size"), len(events)
    held: dict[int, Block] = {}
    for segment in segments:
        if segment.get("device", device) == device:
            for block in _blocks(segment):
                held[block.address] = block
    for event in reversed(events):  # back to the beginning
        if event.is_freed:
            held[event.block.address] = event.block
        else:
            held.pop(event.block.address, None)
    return Allocations(device, list(held.values()), events, refused, refused_at, warnings)


def _blocks(segment: Row) -> Iterator[Block]:
    address = _number(segment.get("address"))
    for row in _rows(segment.get("blocks")):
        at = _number(row.get("address")) or address
        address = at + _number(row.get("size"))
        if str(row.get("state", "")).startswith("active"):
            yield _block({"frames": [], **row, "address": at}, "address", "requested_size", "size")


def _block(row: Row, address: str, *sizes: str) -> Block:
    size = next((number for name in sizes if (number := _number(row.get(name)))), 0)
    frames: list[Frame] = []
    op = ""
    for frame in _rows(row.get("frames")):
        file, line, function = str(frame.get("filename", "")), _number(frame.get("line")), str(frame.get("name", ""))
        if not file.endswith(".py") and not (file.startswith("<") and file.endswith(">")):
            if found := _OPERATOR.match(function):
                op = f"aten.{found[1]}"  # the outermost one before the Python code is the one that was called
            continue
        if len(frames) == _MOST_FRAMES:
            break
        if not file.endswith(_MACHINERY):
            frames.append(Frame(file, line if line < 1 << 31 else 0, function[:200]))
    return Block(_number(row.get(address)), size, tuple(frames), op)


def _rows(found: Any) -> list[Row]:
    """The dictionaries in a list; what else is there is passed over."""
    items = cast("list[Any]", found) if isinstance(found, list | tuple) else []
    return [cast("Row", item) for item in items if isinstance(item, dict)]


def _number(found: Any) -> int:
    return found if type(found) is int and 0 <= found < _LARGEST else 0
