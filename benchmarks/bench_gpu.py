"""What recording costs on a GPU, and what the measured times say: run it on a machine with one.

    python benchmarks/bench_gpu.py [--out FOLDER] [--only llama,gpt2,resnet50] [--scales launch,batch] [--runs 7]

For each model the seconds of a training step (the median on the clock, the device waited for): plain, under an empty
dispatch mode, under the recorder, and under the profiler with stacks. Then: are the results bitwise equal; where the
recorder's time goes (every thread looked at each half millisecond); the MFU of the Llama step against a computation by
hand; how much of the kernels `times="device"` places; how much of an allocator's snapshot is matched.
"""

from __future__ import annotations

import argparse
import collections
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from calibrate import need

need("torch")

import torch  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import opscope  # noqa: E402
from gpu_models import NAMES, Work, work  # noqa: E402
from opscope.tracers.contract import Options  # noqa: E402
from opscope.tracers.torch import start  # noqa: E402

PEAK = 989.5e12  # bf16 products of an H200, dense


class Empty(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def seconds(step: Callable[[], Any]) -> float:
    wait()
    began = time.perf_counter()
    step()
    wait()
    return time.perf_counter() - began


def costs(job: Work, runs: int) -> dict[str, float]:
    found: dict[str, list[float]] = collections.defaultdict(list)
    count = 0
    for _ in range(runs):
        found["plain"].append(seconds(job.step))
        with Empty():
            found["empty mode"].append(seconds(job.step))
        session = start(Options(sys._getframe(), job.model, job.optimizer, how="record"))
        found["recorder"].append(seconds(job.step))
        count = session.count
        found["recorder, next step"].append(seconds(job.step))
        session.abort()
    return {**{name: statistics.median(took) for name, took in found.items()}, "operators": count}


def with_profiler(job: Work) -> float:
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities, record_shapes=True, with_stack=True):
        return seconds(job.step)


def sampled(job: Work, out: Path | None, name: str) -> None:
    """Where the time of a recorded step goes, in the threads that run Python."""
    seen: collections.Counter[str] = collections.Counter()
    done = threading.Event()
    own = threading.get_ident()

    def look() -> None:
        me = threading.get_ident()
        while not done.wait(0.0005):
            for thread, frame in sys._current_frames().items():
                if thread != me:
                    code = frame.f_code
                    where = code.co_filename.rsplit("/", 2)[-2:]
                    kind = "main" if thread == own else "other"
                    seen[f"{kind:5} {'/'.join(where)}:{frame.f_lineno} {code.co_name}"] += 1

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    session = start(Options(sys._getframe(), job.model, job.optimizer, how="record"))
    for _ in range(8):
        job.step()
    wait()
    done.set()
    session.abort()
    total = sum(seen.values())
    lines = [f"{count / total:6.1%}  {where}" for where, count in seen.most_common(60)]
    print("  where the time goes:", *lines[:14], sep="\n    ")
    if out is not None:
        (out / f"{name}.samples.txt").write_text("\n".join(lines))


def equal(name: str, device: str, scale: str) -> str:
    """Whether a step leaves the same parameters, with and without the recorder."""
    results = []
    for recorded in (False, False, True):
        job = work(name, device, scale)
        torch.manual_seed(1)
        if recorded:
            with opscope.record(job.model, optimizer=job.optimizer):
                loss = job.step()
        else:
            loss = job.step()
        wait()
        results.append([loss.detach().clone(), *(p.detach().clone() for p in job.model.parameters())])
        del job
    plain, again, ours = results

    def same(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
        return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))

    return f"{same(plain, ours)} (plain against plain: {same(plain, again)})"


def mfu(job: Work, plain: float) -> None:
    with opscope.record(job.model, optimizer=job.optimizer) as cap:
        job.step()
    total = opscope.stats(cap).total
    flops = 2 * total.causal_macs
    assert job.size is not None
    by_hand = job.size.flops()
    print(
        f"  MFU {flops / plain / PEAK:.2%}, by hand {by_hand / plain / PEAK:.2%}: ratio {flops / by_hand:.4f} "
        f"({flops:.4g} FLOPs of matrix products, by hand {by_hand:.4g})"
    )


def _coverage(cap: opscope.Capture) -> str:
    from opscope.analysis.summary import profile

    return json.dumps(profile(cap))[:1500]


def on_device(job: Work, out: Path | None, name: str) -> None:
    """times="device": how much of the kernels is placed."""
    job.step()
    with opscope.record(job.model, optimizer=job.optimizer, times="device") as cap:
        for _ in range(3):
            job.step()
    print("  times='device':", _coverage(cap))
    if out is not None:
        cap.save(str(out / f"{name}.times.opscope"))


def files(job: Work, out: Path, name: str) -> None:
    """A recorded step, and the profile and the allocator's snapshot of others like it: what a join has to match."""
    with opscope.record(job.model, optimizer=job.optimizer) as cap:
        job.step()
    cap.save(str(out / f"{name}.opscope"))
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, record_shapes=True, with_stack=True) as profile:
        job.step()
        wait()
    profile.export_chrome_trace(str(out / f"{name}.trace.json.gz"))
    with torch.profiler.profile(activities=activities) as profile:
        session = start(Options(sys._getframe(), job.model, job.optimizer, how="record"))
        job.step()
        wait()
        session.abort()
    profile.export_chrome_trace(str(out / f"{name}.recorded.trace.json.gz"))
    try:
        torch.cuda.memory._record_memory_history(max_entries=200000)
        job.optimizer.zero_grad()
        job.step()
        wait()
        torch.cuda.memory._dump_snapshot(str(out / f"{name}.snapshot.pickle"))
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    found = opscope.open(out / f"{name}.opscope", profile=out / f"{name}.trace.json.gz")
    print("  joined files:", _coverage(found))


def part(what: str, run: Callable[[], Any]) -> None:
    """One part that fails does not take the others with it."""
    try:
        run()
    except Exception as error:
        import traceback

        print(f"  {what} failed: {type(error).__name__}: {error}", flush=True)
        traceback.print_exc()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default=",".join(NAMES))
    parser.add_argument("--scales", default="launch,batch")
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.deterministic = True
    what = torch.cuda.get_device_name() if device == "cuda" else "no GPU"
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, {what}", flush=True)
    scales = args.scales.split(",")
    for name in args.only.split(","):
        for scale in scales:
            measure(name, scale, device, args.runs, args.out, in_full=scale == scales[0])


def measure(name: str, scale: str, device: str, runs: int, out: Path | None, *, in_full: bool) -> None:
    job = work(name, device, scale)
    for _ in range(3):
        job.step()
    found = costs(job, runs)
    plain, count = found["plain"], found["operators"]
    print(f"{name}, {scale}: {count:.0f} operators", flush=True)
    for way in ("plain", "empty mode", "recorder", "recorder, next step"):
        each = (found[way] - plain) / count * 1e6
        print(f"  {way:20} {found[way] * 1e3:8.2f} ms  x{found[way] / plain:.2f}  {each:6.2f} us an operator")
    took = with_profiler(job)
    print(f"  {'profiler with stacks':20} {took * 1e3:8.2f} ms  x{took / plain:.2f}", flush=True)
    if job.size is not None:
        part("mfu", lambda: mfu(job, plain))
    if in_full:
        part("samples", lambda: sampled(job, out, name))
        part("times", lambda: on_device(job, out, name))
        if out is not None and device == "cuda":
            part("files", lambda: files(job, out, name))
        part("equality", lambda: print(f"  bitwise equal: {equal(name, device, scale)}", flush=True))


if __name__ == "__main__":
    main()
