"""What recording costs: the bare step, an empty dispatch mode and opscope's recorder, in one run.

    python benchmarks/bench_torch.py [--runs 5] [--only per-op,gpt,resnet,memory,llama]

Seconds are process CPU seconds, the best of the runs; the three are measured in turn, so that they share the
machine's mood. The models are those of tests/torch/zoo.py at full size.
"""

from __future__ import annotations

import argparse
import gc
import platform
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from calibrate import calibrate, need

need("torch")

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import opscope  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "torch"))
from zoo import GPT, ResNet  # noqa: E402

Step = Callable[[], Any]
WAYS = ("bare", "empty mode", "recorder")


class Empty(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def seconds(work: Step) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(model: nn.Module, optimizer: Any, step: Step, runs: int) -> tuple[float, float, float, int]:
    """Best seconds of the bare step, under an empty mode, and under the recorder until the last operator has run;
    and how many operators there are. (Making the capture happens after the step, and is printed on its own.)"""
    best = [float("inf")] * 3
    count = 0

    def empty() -> None:
        with Empty():
            step()

    for _ in range(runs):
        best[0] = min(best[0], seconds(step))
        best[1] = min(best[1], seconds(empty))
        from opscope.tracers.contract import Options
        from opscope.tracers.torch import start

        session = start(Options(sys._getframe(), model, optimizer))
        best[2] = min(best[2], seconds(step))
        count = session.count
        session.abort()
    return best[0], best[1], best[2], count


def chain(length: int = 300) -> tuple[nn.Module, Step]:
    """Many operators that compute next to nothing."""
    model = nn.ModuleList([nn.Linear(4, 4) for _ in range(length)])
    x = torch.randn(2, 4)

    def step() -> None:
        h = x
        for layer in model:
            h = torch.relu(layer(h))
        h.sum().backward()

    return model, step


def trained(model: nn.Module, loss: Callable[[], torch.Tensor]) -> tuple[Any, Step]:
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return optimizer, step


def gpt() -> tuple[nn.Module, Any, Step]:
    model = GPT(width=768, layers=12, heads=12, words=50257, length=128)
    x = torch.randint(0, 50257, (4, 129))
    return model, *trained(model, lambda: F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten()))


def resnet() -> tuple[nn.Module, Any, Step]:
    model = ResNet()
    x, y = torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,))
    return model, *trained(model, lambda: F.cross_entropy(model(x), y))


def report(name: str, figure: float, limit: float, unit: str = "") -> None:
    verdict = "ok" if figure <= limit else "over"
    print(f"  {name:<46} {figure:8.2f}{unit}   at most {limit:g}{unit}   {verdict}", flush=True)


def per_op(runs: int) -> None:
    model, step = chain()
    step()
    *times, count = compare(model, None, step, max(runs, 9))
    each = [f"{name} {took / count * 1e6:.2f} µs" for name, took in zip(WAYS, times, strict=True)]
    print(f"per operator ({count} tiny ones): {', '.join(each)}")
    _, empty, recorded = times
    report("recorder / empty mode", recorded / empty, 2.5)


def whole(name: str, make: Callable[[], tuple[nn.Module, Any, Step]], limit: float, runs: int) -> None:
    model, optimizer, step = make()
    step()
    bare, empty, recorded, count = compare(model, optimizer, step, runs)
    with opscope.record(model, optimizer=optimizer) as cap:
        step()
        before = time.process_time()
    made = time.process_time() - before
    print(f"{name}, {count} operators: bare {bare:.3f} s, empty mode {empty:.3f} s, recorder {recorded:.3f} s;")
    print(f"  the capture of {cap.graph.n_nodes} nodes is made in {made:.3f} s after the step")
    report("recorder / bare", recorded / bare, limit)


def memory(runs: int) -> None:
    """Growth of what Python and torch hold on to while recording, by operator."""
    import tracemalloc

    model, step = chain(1000)
    step()
    from opscope.tracers.contract import Options
    from opscope.tracers.torch import start

    gc.collect()
    session = start(Options(sys._getframe(), model))
    step()
    gc.collect()
    begin = resident()
    tracemalloc.start()
    first = session.count
    for _ in range(4):
        step()
    gc.collect()
    python, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    grown, count = resident() - begin, session.count - first
    session.abort()
    print(f"memory over {count} operators: Python objects {python / count:.0f} B each")
    report("resident memory, bytes an operator", grown / count, 1000, " B")


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def llama(runs: int) -> None:
    """The training step of a 70B model, without its weights."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=128256,
        hidden_size=8192,
        intermediate_size=28672,
        num_hidden_layers=80,
        num_attention_heads=64,
        num_key_value_heads=8,
        use_cache=False,
    )
    start = time.process_time()
    with FakeTensorMode():
        model = LlamaForCausalLM(config)
        optimizer = torch.optim.AdamW(model.parameters())
        ids = torch.randint(0, 128256, (1, 4096))
        with opscope.record(model, optimizer=optimizer) as cap:
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
    took = time.process_time() - start
    size = sum(p.numel() for p in model.parameters())
    print(f"Llama, {size / 1e9:.1f}e9 parameters, one step on fake tensors: {cap.graph.n_nodes} operators")
    report("making and capturing it, seconds", took, 60, " s")
    report("peak memory of the process, GB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2, " GB")


PARTS: dict[str, Callable[[int], None]] = {
    "llama": llama,  # first: its peak is that of the whole process
    "per-op": per_op,
    "memory": memory,
    "gpt": lambda runs: whole("GPT, d=768, 12 layers, 4×128", gpt, 1.10, runs),
    "resnet": lambda runs: whole("ResNet-18, 8×224 px", resnet, 1.35, runs),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default=",".join(PARTS))
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # threads that wait for each other spin, which would count as work
    print(f"Python {platform.python_version()}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"calibration loop {calibrate():.3f} s\n")
    for name in options.only.split(","):
        PARTS[name](options.runs)


if __name__ == "__main__":
    main()
