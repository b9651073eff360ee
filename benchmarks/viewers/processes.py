"""CPU and memory of a browser's processes, read from /proc: asking costs the browser nothing."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    kind: str  # "renderer", "gpu-process", "utility", "zygote"; "browser" for the one that started them
    seconds: float
    megabytes: float


def family(root: int) -> dict[int, Process]:
    """The process `root` and all below it, by id."""
    children: dict[int, list[int]] = {}
    facts: dict[int, tuple[float, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                rest = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(rest[1]), []).append(int(entry.name))
                facts[int(entry.name)] = ((int(rest[11]) + int(rest[12])) / TICK, int(rest[21]) * PAGE / 2**20)
    found: dict[int, Process] = {}
    todo = [root]
    while todo:
        pid = todo.pop()
        todo += children.get(pid, [])
        if pid in facts:
            found[pid] = Process("browser" if pid == root else _kind(pid), *facts[pid])
    return found


def _kind(pid: int) -> str:
    with contextlib.suppress(OSError):
        for word in Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").split():
            if word.startswith("--type="):
                return word[len("--type=") :]
    return "other"


@dataclass(frozen=True)
class Usage:
    """CPU seconds so far, by process, so that one that ends meanwhile does not turn a difference negative."""

    by_process: dict[int, Process]

    def since(self, before: Usage, kind: str | None = None) -> float:
        return sum(
            process.seconds - (before.by_process[pid].seconds if pid in before.by_process else 0.0)
            for pid, process in self.by_process.items()
            if kind in (None, process.kind)
        )

    @property
    def renderer_megabytes(self) -> float:
        return max((p.megabytes for p in self.by_process.values() if p.kind == "renderer"), default=0.0)


def usage(root: int) -> Usage:
    return Usage(family(root))
