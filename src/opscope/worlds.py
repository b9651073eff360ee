"""opscope.world: what every rank of a distributed program computes, recorded on one machine without its peers."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from opscope import ir
from opscope.analysis.world.choosing import Asking, choose
from opscope.analysis.world.figures import add_figures
from opscope.analysis.world.joined import Class, joined
from opscope.analysis.world.joined import as_one as ranks_as_one
from opscope.analysis.world.mesh import mesh_of
from opscope.analysis.world.same import signature
from opscope.capture import Capture
from opscope.errors import OpscopeError
from opscope.ir.ranks import is_one_rank, note_rank, rank_of
from opscope.tracers import registry
from opscope.tracers.messages import Mailbox
from opscope.tracers.processes import Event, Line, Processes
from opscope.tracers.script import ScriptFailed, run_script

_LOCAL = 8  # ranks on one machine of the cluster
_MOST_RANKS = 1 << 20
_OF_FREE = 0.7  # how much of the free memory ranks may take
_SELDOM = 200_000  # objects made before garbage is looked for
_FRAMEWORK = "torch"  # whose ranks can be recorded without their peers


def world(
    target: str | Callable[[], Any],
    size: int,
    *,
    args: Sequence[str] = (),
    fake: bool = False,
    every: bool = False,
    local: int = _LOCAL,
    steps: int | None = None,
    jobs: int | None = None,
    samples: int = 4,
    progress: Callable[[str], None] | None = None,
) -> Capture:
    """Run a script, or a function, as ranks of a world of `size`, and return what all of them compute: a stage for each
    class of ranks whose graphs are equal.

    The program runs as it would under torchrun, in a process of its own for each rank, with a process group that
    answers at once and sends nothing. Recorded are the ranks at the corners of the mesh, those between them where
    they differ, and `samples` more chosen at random; `every=True` records all. `fake=True` runs on tensors that have
    shapes and no numbers. `local` ranks are on one machine. `steps` ends each rank after so many optimizer steps.
    `jobs` processes run at once; without it, as many as there are cores and memory for.

    >>> cap = opscope.world("train.py", 1024, fake=True, steps=1)         # doctest: +SKIP
    >>> opscope.world(lambda: train(config), 64)                          # doctest: +SKIP
    """
    if not 1 <= size <= _MOST_RANKS:
        raise OpscopeError(f"a world of {size} ranks cannot be recorded (1 to {_MOST_RANKS:,})")
    if local < 1 or (jobs is not None and jobs < 1):
        raise OpscopeError("a machine has at least one rank, and one process has to run at least")
    tracer = registry.load(_FRAMEWORK)
    assert tracer.prepare_ranks is not None
    tracer.prepare_ranks()
    with tempfile.TemporaryDirectory(prefix="opscope-world-") as folder:
        rank = _AsRank(target, tuple(args), size, local, fake, steps, Path(folder))
        gc.freeze()  # what all processes share stays shared
        try:
            return Capture.of(joined(_Recording(rank, size, every, jobs, samples, progress).run(), size))
        finally:
            gc.unfreeze()


def as_one(captures: Sequence[ir.Capture]) -> Capture:
    """Recordings of single ranks of one program as one capture: a stage for each class of ranks that compute the same.

    >>> opscope.worlds.as_one([opscope.open(path) for path in paths])     # doctest: +SKIP
    """
    if not captures or not all(is_one_rank(capture) for capture in captures):
        raise OpscopeError(
            "several files are one only if each is the recording of one rank of a program: trace it under torchrun "
            "(torchrun … -m opscope trace train.py)"
        )
    return Capture.of(ranks_as_one(captures))


class _AsRank:
    """What one process does: run the program as one rank, and keep it if no other rank has computed the same."""

    def __init__(
        self,
        target: str | Callable[[], Any],
        args: tuple[str, ...],
        size: int,
        local: int,
        fake: bool,
        steps: int | None,
        folder: Path,
    ) -> None:
        self._target = target
        self._args = args
        self._size = size
        self._local = local
        self._fake = fake
        self._steps = steps
        self.folder = folder

    def __call__(self, rank: int, line: Line) -> dict[str, Any]:
        tracer = registry.load(_FRAMEWORK)
        assert tracer.as_rank is not None
        gc.set_threshold(_SELDOM)  # what a recording makes stays, and this process ends soon
        box = Mailbox(self.folder, lambda peer: line.tell("waits", peer=peer), lambda: line.tell("goes on"))
        failure: ScriptFailed | None = None
        with tracer.as_rank(rank, self._size, self._local, fake=self._fake, box=box) as told:
            try:
                capture = self._recorded()
            except ScriptFailed as failed:
                if failed.capture is None:
                    raise
                capture, failure = failed.capture, failed
        capture.warnings.extend(told)
        if rank_of(capture, 0) is None:
            note_rank(capture, 0, rank, self._size, [])
        own = rank_of(capture, 0)
        groups = [list(group) for group in own.groups] if own is not None else []
        same = signature(capture.stages[0].graph)
        content: dict[str, Any] = {"signature": same, "groups": groups}
        if failure is not None:
            content |= {"error": str(failure), "report": failure.report}
        if line.ask(signature=same):
            add_figures(capture, 0, str(rank), str(rank))
            path = self.folder / f"rank{rank}.opscope"
            with path.open("wb") as file:
                from opscope.wire import write

                write(capture, file, packed=False)
        return content

    def _recorded(self) -> ir.Capture:
        if isinstance(self._target, str):
            # The recording is put together after the script has left: its own text is looked for beside it.
            sys.path.insert(0, str(Path(self._target).absolute().parent))
            return run_script(self._target, self._args, framework=_FRAMEWORK, steps=self._steps, ends=True)
        return run_script(self._target.__qualname__, self._args, framework=_FRAMEWORK, steps=self._steps, ends=True,
                          body=self._target)  # fmt: skip


class _Recording:
    """Runs ranks until every rank's class is known."""

    def __init__(
        self,
        work: _AsRank,
        size: int,
        every: bool,
        jobs: int | None,
        samples: int,
        progress: Callable[[str], None] | None,
    ) -> None:
        self._work = work
        self._size = size
        self._every = every
        self._jobs = jobs
        self._samples = samples
        self._progress = progress
        self._signature: dict[int, str] = {}
        self._kept: dict[str, int] = {}  # signature -> the rank whose recording is kept
        self._failed: dict[int, tuple[str, str]] = {}
        self._started: set[int] = set()
        self._queue: deque[int] = deque()

    def run(self) -> list[Class]:
        processes = Processes(self._work, 1, self._work.folder)
        try:
            first = self._all(processes, [0])
            processes.most = self._jobs or _room(int(first[0].content.get("resident_bytes", 0)))
            groups = [(str(name), str(ranks)) for name, ranks in first[0].content["groups"]]
            if self._every:
                self._all(processes, range(1, self._size))
                classes: dict[str, list[int]] = {}
                for rank in range(self._size):
                    classes.setdefault(self._signature[rank], []).append(rank)
            else:
                classes = self._chosen(processes, choose(mesh_of(groups, self._size), self._samples))
        finally:
            processes.close()
        for rank, (error, report) in self._failed.items():
            if all(rank in self._failed for rank in self._signature):
                raise ScriptFailed(f"rank {rank}: {error}", report, None)
        return [self._class(same, ranks) for same, ranks in classes.items()]

    def _chosen(self, processes: Processes, asking: Asking) -> dict[str, list[int]]:
        wanted = next(asking)
        while True:
            self._all(processes, wanted)
            try:
                wanted = asking.send(self._signature)
            except StopIteration as end:
                return end.value.classes

    def _class(self, same: str, ranks: Sequence[int]) -> Class:
        from opscope.opening import open as open_file

        kept = self._kept[same]
        capture = open_file(self._work.folder / f"rank{kept}.opscope")
        if kept in self._failed:
            capture.warnings.insert(0, f"rank {kept}: {self._failed[kept][0]}")
        seen = tuple(rank for rank in ranks if self._signature.get(rank) == same)
        return Class(capture, kept, tuple(ranks), seen)

    def _all(self, processes: Processes, ranks: Sequence[int]) -> list[Event]:
        """Run these ranks, and those whose messages they need."""
        self._queue.extend(rank for rank in ranks if rank not in self._started)
        waits: dict[int, int] = {}
        done: list[Event] = []
        while self._queue or processes.at_work:
            while self._queue and processes.has_room:
                rank = self._queue.popleft()
                if rank not in self._started:
                    self._started.add(rank)
                    processes.start(rank)
            for event in processes.wait():
                if event.kind == "asks":
                    same = str(event.content["signature"])
                    wanted = same not in self._kept
                    if wanted:
                        self._kept[same] = event.rank
                    processes.answer(event.rank, wanted)
                elif event.kind == "waits":
                    waits[event.rank] = int(event.content["peer"])
                elif event.kind == "goes on":
                    waits.pop(event.rank, None)
                else:
                    self._finished(event)
                    done.append(event)
            if processes.all_wait and not self._queue:
                self._send_for(processes, waits)
        return done

    def _send_for(self, processes: Processes, waits: dict[int, int]) -> None:
        """Every rank at work waits for one that is not."""
        new = [peer for peer in dict.fromkeys(waits.values()) if peer not in self._started]
        if new:
            self._queue.extend(new)
            return
        rank, peer = next(iter(waits.items()))
        if peer in processes.at_work and waits.get(peer) is not None:
            raise OpscopeError(f"ranks {rank} and {peer} wait for each other's messages: the program would hang")
        raise OpscopeError(f"rank {rank} waits for a message that rank {peer} never sends: the program would hang")

    def _finished(self, event: Event) -> None:
        content = event.content
        if event.kind == "broke":
            error = str(content["error"])
            text = error if error.startswith("rank ") else f"rank {event.rank}: {error}"
            raise ScriptFailed(text, str(content["report"]), None)
        self._signature[event.rank] = str(content["signature"])
        if "error" in content:
            self._failed[event.rank] = str(content["error"]), str(content["report"])
        if self._progress is not None:
            self._progress(f"{len(self._signature):,} of {self._size:,} ranks recorded, {len(self._kept):,} classes")


def _room(resident: int) -> int:
    """How many ranks can run at once: as many as there are cores, and memory for what one takes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    free = _free_memory()
    if free is None or not resident:
        return cores
    return max(1, min(cores, int(free * _OF_FREE / resident)))


def _free_memory() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None
