"""Files of measuring tools as these write them: snapshots of the CUDA allocator, exports of Nsight Systems."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path
from typing import Any


def snapshot(rows: list[dict[str, Any]], blocks: list[tuple[int, int]]) -> bytes:
    segment = {
        "device": 0,
        "address": 0,
        "total_size": 1 << 30,
        "blocks": [{"address": a, "size": n, "requested_size": n, "state": "active_allocated"} for a, n in blocks],
    }
    return pickle.dumps({"segments": [segment], "device_traces": [rows]})


def event(action: str, address: int, size: int, line: int = 0) -> dict[str, Any]:
    frames = [
        {"name": "at::_ops::mm::call(at::Tensor const&)", "filename": "??", "line": 0},
        {"name": "forward", "filename": "net.py", "line": line},
    ]
    return {"action": action, "addr": address, "size": size, "frames": frames if line else []}


HISTORY = [event("alloc", 1 << 20, 2048, 3), event("alloc", 1 << 21, 6144, 4), event("alloc", 1 << 22, 999, 5)]


def nsight(path: Path) -> None:
    """Two operators that start a kernel each, one of them inside of a range of the user."""
    found = sqlite3.connect(path)
    found.executescript("""
        CREATE TABLE StringIds (id INTEGER, value TEXT);
        INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'relu'), (3, 'cudaLaunchKernel'), (4, 'aten::relu');
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, correlationId INT,
            globalPid INT, demangledName INT, shortName INT, gridX INT, gridY INT, gridZ INT);
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5000, 9000, 0, 7, 11, 0, 1, 1, 1, 1, 1);
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (9500, 9750, 0, 7, 12, 0, 2, 2, 1, 1, 1);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
        INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1100, 1200, 1, 11, 3), (2100, 2200, 1, 12, 3);
        CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT);
        INSERT INTO NVTX_EVENTS VALUES (900, 3000, 59, 'layer 1', NULL, 1), (1, NULL, 34, 'a mark', NULL, 1);
        INSERT INTO NVTX_EVENTS VALUES (1000, 1500, 59, 'aten::mm, seq = 3, op_id = 1, sizes = [[8, 64]]', NULL, 1);
        INSERT INTO NVTX_EVENTS VALUES (2000, 2500, 59, NULL, 4, 1);
    """)
    found.commit()
    found.close()
