"""What capturing PaddlePaddle costs: the bare backward pass, with hooks, and with statistics, in one run.

    python benchmarks/bench_paddle.py [--runs 7] [--batch 2] [--size 224]

Seconds are process CPU seconds, the best of the runs; the ways are measured in turn, so that they share the machine's
mood. `trace` is the whole of opscope.trace(loss, how="autograd"): walk, a backward pass with hooks, the graph.
"""

from __future__ import annotations

import argparse
import gc
import platform
import time
from collections.abc import Callable
from typing import Any

from calibrate import calibrate, need

need("paddle")

import paddle  # noqa: E402

import opscope  # noqa: E402


def seconds(work: Callable[[], Any]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def backward(model: Any, x: Any) -> dict[str, Callable[[], float]]:
    """Only the backward pass counts; what is recorded is put together after it."""

    def bare() -> float:
        loss = model(x).sum()
        return seconds(lambda: loss.backward())

    def recorded(statistics: bool) -> float:
        found: list[float] = []
        with opscope.record(model, values=statistics):
            loss = model(x).sum()
            found.append(seconds(lambda: loss.backward()))
        return found[0]

    def traced(statistics: bool) -> float:
        loss = model(x).sum()
        return seconds(lambda: opscope.trace(loss, how="autograd", statistics=statistics))

    return {
        "bare backward": bare,
        "recorded": lambda: recorded(False),
        "recorded with statistics": lambda: recorded(True),
        "trace": lambda: traced(False),
        "trace with statistics": lambda: traced(True),
    }


def forward(model: Any, x: Any) -> dict[str, Callable[[], float]]:
    def recorded() -> float:
        found: list[float] = []
        with opscope.record(model):
            found.append(seconds(lambda: model(x)))
        return found[0]

    return {"bare forward": lambda: seconds(lambda: model(x)), "recorded": recorded}


def chain(count: int) -> dict[str, Callable[[], float]]:
    x = paddle.ones([4])
    x.stop_gradient = False

    def made() -> Any:
        h = x
        for number in range(count):
            h = h + x if number % 2 else h * x
        return h.sum()

    def bare() -> float:
        loss = made()
        return seconds(lambda: paddle.grad(loss, [x], retain_graph=True))

    def traced() -> float:
        loss = made()
        return seconds(lambda: opscope.trace(loss, how="autograd"))

    return {"bare paddle.grad": bare, "trace": traced}


def compare(title: str, ways: dict[str, Callable[[], float]], runs: int) -> None:
    best = dict.fromkeys(ways, float("inf"))
    for work in ways.values():
        work()
    for _ in range(runs):
        for name, work in ways.items():
            best[name] = min(best[name], work())
    first = next(iter(best.values()))
    print(f"\n{title}")
    for name, found in best.items():
        print(f"  {name:26} {found:8.3f} s   ×{found / first:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--size", type=int, default=224)
    args = parser.parse_args()
    print(f"Python {platform.python_version()}, paddle {paddle.__version__}, calibration loop {calibrate():.3f} s")
    paddle.seed(0)
    model = paddle.vision.models.resnet18()
    x = paddle.randn([args.batch, 3, args.size, args.size])
    compare(f"ResNet-18, {args.batch} × {args.size} × {args.size}: backward", backward(model, x), args.runs)
    compare(f"ResNet-18, {args.batch} × {args.size} × {args.size}: forward", forward(model, x), args.runs)
    compare("a chain of 20,000 operators", chain(20_000), 2)


if __name__ == "__main__":
    main()
