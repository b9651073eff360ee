"""What opscope promises of its statistics, each measured in a process of its own: bench_cost.py asks for them.

    python benchmarks/cost_shown.py llama|peak|jittor|million

Prints one JSON list of verdicts: what, what was found, and whether that is as promised.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Verdict = tuple[str, str, bool]
DATA = Path(__file__).parent.parent / "tests" / "data"
RUNS = 5


def best(work: Callable[[], Any], runs: int = RUNS) -> float:
    """Process CPU seconds."""
    found = float("inf")
    for _ in range(runs):
        start = time.process_time()
        work()
        found = min(found, time.process_time() - start)
    return found


# -- Llama-70B, without weights ---------------------------------------------------------------------------


def llama() -> list[Verdict]:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    import opscope

    torch.set_num_threads(1)
    width, inner, layers, heads, groups, words, tokens = 8192, 28672, 80, 64, 8, 32000, 2048
    config = LlamaConfig(
        hidden_size=width, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=groups, vocab_size=words, max_position_embeddings=4096, tie_word_embeddings=False,
        use_cache=False,
    )  # fmt: skip
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    narrow = width * groups // heads  # keys and values are shared by groups of heads
    weights = layers * (2 * width * width + 2 * width * narrow + 3 * width * inner) + words * width
    params = weights + words * width + (2 * layers + 1) * width
    attention = layers * tokens * tokens * width  # one of the two products
    forward = tokens * weights + 2 * attention
    both = 3 * tokens * weights + 7 * attention
    ids = torch.zeros(1, tokens, dtype=torch.long)
    verdicts: list[Verdict] = []
    for title, train, truth, most in (("forward", False, forward, 5.0), ("training step", True, both, 10.0)):
        took: list[float] = []
        found: Any = None
        for _ in range(3):
            start = time.process_time()
            found = opscope.stats(model, ids, train=train)
            total = found.total
            took.append(time.process_time() - start)
        is_exact = total.macs == truth and total.params == params and not total.at_least
        verdicts.append(
            (f"Llama-70B, {title}: MACs and parameters", f"{total.macs / truth:.6f}, {total.params:,}", is_exact)
        )
        seconds = f"{min(took):.2f} s, the first time {took[0]:.2f} s (at most {most:g})"
        verdicts.append((f"Llama-70B, {title}: CPU", seconds, took[0] <= most))
        has_all = total.peak_bytes > 4 * params and total.bytes > 0
        peak = f"{total.peak_bytes / 1e9:.0f} GB peak, {total.bytes / 1e12:.1f} TB moved"
        verdicts.append((f"Llama-70B, {title}: memory and bytes of the model", peak, has_all))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    verdicts.append(("Llama-70B: memory of the process", f"{memory:.0f} MB (at most 500)", memory <= 500))
    return verdicts


# -- peak memory ------------------------------------------------------------------------------------------


def peak() -> list[Verdict]:
    """Against the events of PyTorch's profiler, in one training step."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    import opscope
    from cost_models import MODELS

    torch.set_num_threads(1)
    verdicts: list[Verdict] = []
    for name in ("gpt2", "vit fused", "resnet18", "resnet50"):
        torch.manual_seed(0)
        case = MODELS[name]()
        model = case.model.train()

        def step(model: Any = model, x: Any = case.x) -> Any:
            result = model(x)
            result.sum().backward()
            return result  # who calls a model keeps what it returns

        step()  # what is made at first stays
        model.zero_grad(set_to_none=True)
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
            kept = step()
        del kept
        model.zero_grad(set_to_none=True)
        events = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]  # pyright: ignore
        live = truth = 0
        for event in sorted(events, key=lambda e: e.start_ns()):
            live += event.nbytes()
            truth = max(truth, live)
        found = opscope.stats(model, case.x, train=True, fake=False)
        memory = found.memory
        there = sum(
            int(size)
            for size, owner in zip(memory.size, memory.owner, strict=True)
            if found.graph.value_producer[owner] < 0  # parameters and inputs: there before
        )
        ratio = (memory.peak_bytes - there) / truth
        title = f"peak memory of a training step, {name}"
        verdicts.append((title, f"{ratio:.3f} of the profiler's (0.97 to 1.03)", abs(ratio - 1) <= 0.03))
    return verdicts


# -- Jittor -----------------------------------------------------------------------------------------------


def jittor() -> list[Verdict]:
    import opscope
    from cost_models import resnet18

    case = resnet18()
    found = opscope.stats(DATA / "jittor" / "resnet.pkl").total
    trained = opscope.stats(DATA / "jittor" / "resnet_train.pkl")
    live = opscope.stats(case.model.eval(), case.x.expand(2, -1, -1, -1)).total
    is_same = found.macs == live.macs == trained.phases["forward"]["macs"] == 2 * case.forward
    unknown = found.at_least or live.at_least or trained.total.at_least
    return [
        ("resnet18, 2×3×224×224: Jittor's trace and PyTorch", f"{found.macs:,} and {live.macs:,} MACs", is_same),
        ("  parameters", f"{found.params:,} and {live.params:,}", found.params == live.params == case.params),
        ("  operators that are not known", str(trained.unknown_ops or "none"), not unknown),
    ]


# -- a million operators ------------------------------------------------------------------------------------


_OPS = [
    "add.Tensor", "mul.Tensor", "sub.Tensor", "div.Tensor", "relu", "gelu", "silu", "sigmoid", "tanh", "exp", "log",
    "sqrt", "rsqrt", "neg", "abs", "maximum", "minimum", "pow.Tensor_Tensor", "_softmax", "sum", "mean",
    "native_layer_norm", "cumsum", "view", "transpose.int", "clone",
]  # fmt: skip


def million() -> list[Verdict]:
    import synthetic
    from opscope.analysis.costs.operators import node_costs
    from opscope.analysis.costs.rollup import by_scope

    table = synthetic.rows(1_000_000)
    known = dict(zip(synthetic.OPS, _OPS * 2, strict=False))
    graph = synthetic.build(table._replace(op=[f"aten.{known[op]}" for op in table.op])).stages[0].graph
    found: Any = None

    def work() -> None:
        nonlocal found
        graph.__dict__.pop("use_node", None)
        graph.__dict__.pop("node_outputs", None)
        graph.__dict__.pop("value_uses", None)
        found = by_scope(graph, node_costs(graph, "torch"))

    took = best(work)
    counted = int(found.inside.macs[0] + found.inside.other[0])
    assert not found.inside.unknown[0], "an operator of the synthetic graph has no formula"
    title = f"{graph.n_nodes:,} operators in {len(graph.pools.scopes):,} modules: cost and roll-up"
    return [(title, f"{took:.2f} s (at most 1.5), {counted:,} MACs and FLOPs", took <= 1.5 and counted > 0)]


PARTS = {"llama": llama, "peak": peak, "jittor": jittor, "million": million}

if __name__ == "__main__":
    print("\n" + json.dumps(PARTS[sys.argv[1]]()))
