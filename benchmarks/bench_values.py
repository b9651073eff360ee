"""What statistics of every tensor cost beside a plain recording, and that they change and wait for nothing.

    python benchmarks/bench_values.py [--runs 5] [--device cuda]

Seconds are process CPU seconds on the CPU, and seconds on the clock (the device waited for) on a GPU; the best of the
runs, of the whole recording: the step, fetching the figures, making the capture.
"""

from __future__ import annotations

import argparse
import gc
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from calibrate import calibrate, need

need("torch")

import torch  # noqa: E402
from torch import nn  # noqa: E402

import opscope  # noqa: E402
from opscope.ir.measurements import Figures  # noqa: E402
from opscope.tracers.torch.recorder import figures_device  # noqa: E402
from opscope.tracers.torch.recorder.figures_cpu import OnCpu  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "torch"))
from zoo import GPTBlock, ResNet  # noqa: E402

WAITS = ("aten::item", "aten::_local_scalar_dense", "cudaStreamSynchronize", "cudaDeviceSynchronize",
         "cudaEventSynchronize")  # fmt: skip
Step = Callable[[], Any]


def seconds(work: Step, device: str) -> float:
    gc.collect()
    if device == "cpu":
        start = time.process_time()
        work()
        return time.process_time() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


class GPT(nn.Sequential):
    """The zoo's blocks between an embedding and a head."""

    def __init__(self, layers: int, width: int, heads: int, words: int) -> None:
        blocks = [GPTBlock(width, heads) for _ in range(layers)]
        super().__init__(nn.Embedding(words, width), *blocks, nn.LayerNorm(width), nn.Linear(width, words, bias=False))


class Case:
    """A model with its optimizer, on its inputs."""

    def __init__(self, name: str, make: Callable[[], nn.Module], *inputs: torch.Tensor, device: str) -> None:
        self.name, self.make, self.device = name, make, device
        self.inputs = [one.to(device) for one in inputs]
        self.reset()

    def reset(self) -> None:
        torch.manual_seed(0)
        self.model = self.make().to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.model(*self.inputs).float().square().mean().backward()
        self.optimizer.step()

    def recorded(self, values: Any) -> opscope.Capture:
        with opscope.record(self.model, optimizer=self.optimizer, values=values) as capture:
            self.step()
        return capture


def cost(case: Case, runs: int) -> None:
    ways: dict[str, Step] = {
        "bare": case.step,
        "plain": lambda: case.recorded(False),
        "stats": lambda: case.recorded("stats"),
    }
    best = dict.fromkeys(ways, float("inf"))
    for run in range(runs + 1):  # the first one compiles kernels
        for way, work in ways.items():
            took = seconds(work, case.device)
            best[way] = min(best[way], took) if run else best[way]
    count = case.recorded("stats").graph.n_nodes
    ratio = best["stats"] / best["plain"]
    print(
        f"{case.name:26} {count:6,} operators  step {best['bare']:.4f} s  recorded {best['plain']:.4f} s  "
        f"with statistics {best['stats']:.4f} s  ×{ratio:.2f} (at most 2)",
        flush=True,
    )


def waits(case: Case) -> None:
    """How often the program waited for numbers between the operators of a step, with and without statistics."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if case.device != "cpu" else [])]
    found: dict[Any, int] = {}
    for values in (False, "stats"):
        with opscope.record(case.model, optimizer=case.optimizer, values=values):
            case.step()
            with profile(activities=activities) as measured:
                case.step()
        found[values] = sum(event.count for event in measured.key_averages() if event.key in WAITS)
        if case.device != "cpu":
            copies = sum(e.count for e in measured.key_averages() if "DtoH" in e.key or "Device -> Host" in e.key)
            found[values] += copies
    print(f"{case.name:26} waits in a step: {found[False]} recorded, {found['stats']} with statistics", flush=True)


def same(case: Case) -> None:
    results: list[list[torch.Tensor]] = []
    for values in (None, "stats"):
        case.reset()
        if values is None:
            case.step()
        else:
            case.recorded(values)
        results.append([p.detach().clone() for p in case.model.parameters()])
    equal = all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    print(f"{case.name:26} parameters after the step bitwise equal: {equal}", flush=True)


def memory(case: Case) -> None:
    """What statistics hold on the device at the end of one step and of three."""
    if case.device == "cpu":
        return
    for steps in (1, 3):
        held: list[int] = []
        for values in (False, "stats"):
            with opscope.record(case.model, optimizer=case.optimizer, values=values):
                for _ in range(steps):
                    case.step()
                torch.cuda.synchronize()
                held.append(torch.cuda.memory_allocated())
        print(f"{case.name:26} {steps} steps: {(held[1] - held[0]) / 1e6:.1f} MB of the device held", flush=True)


def kinds(device: str) -> None:
    """The figures of the device against those of the CPU, for every type."""
    if device == "cpu":
        return
    generator = torch.Generator().manual_seed(0)
    plain = torch.randn(700, 1000, generator=generator)
    holes = torch.tensor([1.0, float("nan"), float("inf"), -float("inf"), -3.0, 0.0, 1e-40])
    names = ("float32", "float64", "float16", "bfloat16", "int8", "int32", "int64", "bool", "complex64")
    tensors = {name: plain.to(getattr(torch, name)) for name in names}
    tensors |= {
        f"float8_{name}": plain.to(getattr(torch, f"float8_{name}")) for name in ("e4m3fn", "e5m2")
    } | {"holes": holes, "holes in half": holes.half(), "one": torch.tensor(3.0), "strided": plain.t()[::2],
         "large": plain * 1e30, "small": plain * 1e-30, "empty": torch.zeros(0)}  # fmt: skip
    on_cpu, on_device = OnCpu(torch), figures_device.OnDevice(torch, torch.device(device, 0))
    for value, tensor in enumerate(tensors.values()):
        on_cpu.take(value, tensor)
        on_device.take(value, tensor.to(device))
    mine, theirs = on_cpu.finish(), on_device.finish()
    fused = on_device._fused
    print(f"figures by one kernel: {len(fused.row_of) if fused is not None else 0} of {len(tensors)}", flush=True)
    for value, name in enumerate(tensors):
        wrong = [f for f in Figures._fields if not _agree(name, f, mine[value], theirs[value])]
        print(f"  {name:14} {'agrees' if not wrong else f'DIFFERS in {wrong}: {mine[value]} {theirs[value]}'}")


def _agree(name: str, field: str, a: Figures, b: Figures) -> bool:
    one, two = getattr(a, field), getattr(b, field)
    if field in ("exponents", "subnormal", "sampled") and (a.sampled or b.sampled or name == "complex64"):
        return True
    if field == "hash" and (not one or not two):
        return True
    if not isinstance(one, float):
        return one == two
    scale = max(abs(a.rms), 1e-300) * 1e-5
    return (one != one and two != two) or abs(one - two) <= max(scale, 1e-5 * abs(one))


def origin(device: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)).to(device).half()
    with opscope.record(model, values="stats") as capture:
        (model(torch.randn(8, 64, device=device).half()) * 6e4).square().sum().backward()
    print("origins:", *(f"\n  {one}" for one in capture.origins()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    where = torch.cuda.get_device_name() if given.device == "cuda" else "CPU"
    print(f"opscope {opscope.__version__}, torch {torch.__version__}, Python {platform.python_version()}, {where}")
    print(f"calibration loop: {calibrate():.3f} s\n", flush=True)
    kinds(given.device)
    device = given.device
    words = torch.randint(0, 1000, (4, 128), generator=torch.Generator().manual_seed(0))
    large = device != "cpu"
    side = 224 if large else 64
    cases = [
        Case("GPT, 12 × 768", lambda: GPT(12, 768, 12, 1000), words, device=device)
        if large
        else Case("GPT, 4 × 256", lambda: GPT(4, 256, 4, 1000), words, device=device),
        Case("GPT, 4 × 64", lambda: GPT(4, 64, 4, 1000), words[:1, :16], device=device),
        Case("ResNet-18", ResNet, torch.randn(8 if large else 2, 3, side, side), device=device),
    ]
    for case in cases:
        cost(case, given.runs)
    for case in cases:
        waits(case)
        same(case)
        memory(case)
    origin(device)
    if device != "cpu":
        figures_device.kernel = lambda: None
        print("\nwithout Triton, in operators of PyTorch:")
        for case in cases:
            cost(case, 2)


if __name__ == "__main__":
    main()
