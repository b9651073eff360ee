"""opscope's counts compared with those of other tools, on the same models, in one run.

    python benchmarks/bench_cost.py [--only opscope,fvcore] [--models gpt2,bert] [--runs 3]

Every tool runs in a process of its own, because some leave torch patched. Printed: forward MACs ÷ truth, forward and
backward ÷ truth, parameters, how many single operators are exact, CPU time ÷ that of a plain forward pass, memory.
Tools that are not installed are left out with a word. The truth is in cost_models.py and cost_ops.py. At the end is
what opscope promises, with `ok` or `not ok`: see cost_shown.py.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import importlib.util
import inspect
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from calibrate import calibrate, need

need("torch")
need("transformers")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from cost_models import MODELS  # noqa: E402
from cost_ops import entries  # noqa: E402
from cost_shown import PARTS  # noqa: E402

Answer = tuple[float, int | None]  # MACs, parameters
Tool = Callable[[nn.Module, Tensor], Answer]
EXACT = 5e-5
LARGE = 0.05  # seconds of a plain pass: with less, starting up is what one measures
MOST = 1.5  # times a plain pass, on models that large


def opscope_real(model: nn.Module, x: Tensor) -> Answer:
    import opscope

    found = opscope.stats(model, x, fake=False)
    return (float("nan") if found.total.at_least else found.total.macs), found.total.params


def opscope_fake(model: nn.Module, x: Tensor) -> Answer:
    import opscope

    found = opscope.stats(model, x, fake=True)
    return (float("nan") if found.total.at_least else found.total.macs), found.total.params


def torchinfo(model: nn.Module, x: Tensor) -> Answer:
    import torchinfo

    found = torchinfo.summary(model, input_data=x, verbose=0)
    return found.total_mult_adds, found.total_params


def fvcore(model: nn.Module, x: Tensor) -> Answer:
    from fvcore.nn import FlopCountAnalysis, parameter_count

    found = FlopCountAnalysis(model, x).unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    return found.total(), parameter_count(model)[""]


def ptflops(model: nn.Module, x: Tensor, backend: str = "pytorch") -> Answer:
    from ptflops import get_model_complexity_info

    (name, *_) = inspect.signature(model.forward).parameters  # it takes arguments by name only
    macs, params = get_model_complexity_info(
        model, (1,), input_constructor=lambda _: {name: x}, as_strings=False, print_per_layer_stat=False, verbose=False,
        backend=backend,
    )  # fmt: skip
    return (float("nan") if macs is None else macs), params


def ptflops_aten(model: nn.Module, x: Tensor) -> Answer:
    return ptflops(model, x, "aten")


def calflops(model: nn.Module, x: Tensor) -> Answer:
    from calflops import calculate_flops

    _, macs, params = calculate_flops(
        model, args=[x], output_as_string=False, print_results=False, print_detailed=False
    )
    return macs, params


def thop(model: nn.Module, x: Tensor) -> Answer:
    from thop import profile

    macs, params = profile(model, inputs=(x,), verbose=False)
    return macs, int(params)


def deepspeed(model: nn.Module, x: Tensor) -> Answer:
    from deepspeed.profiling.flops_profiler import get_model_profile

    _, macs, params = get_model_profile(model, args=[x], print_profile=False, as_string=False, warm_up=0)
    return macs, params


def torchlens(model: nn.Module, x: Tensor) -> Answer:
    import torchlens

    found: Any = torchlens.trace(model, x)
    return float(found.total_macs_forward), sum(p.numel() for p in model.parameters())


def flop_counter(model: nn.Module, x: Tensor) -> Answer:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as found:
        model(x)
    return found.get_total_flops() / 2, None


def flop_counter_math(model: nn.Module, x: Tensor) -> Answer:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            return flop_counter(model, x)
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def opscope_both(model: nn.Module, x: Tensor) -> Answer:
    import opscope

    found = opscope.stats(model, x, train=True, fake=False)
    return (float("nan") if found.total.at_least else found.total.macs), found.total.params


def flop_counter_both(model: nn.Module, x: Tensor) -> Answer:
    from torch.utils.flop_counter import FlopCounterMode

    model.train()
    with FlopCounterMode(display=False) as found, torch.enable_grad():
        model(x).sum().backward()
    return found.get_total_flops() / 2, None


TOOLS: dict[str, tuple[str, Tool]] = {
    "opscope": ("opscope", opscope_real),
    "opscope, fake": ("opscope", opscope_fake),
    "torchinfo": ("torchinfo", torchinfo),
    "fvcore": ("fvcore", fvcore),
    "ptflops": ("ptflops", ptflops),
    "ptflops aten": ("ptflops", ptflops_aten),
    "calflops": ("calflops", calflops),
    "thop": ("thop", thop),
    "deepspeed": ("deepspeed", deepspeed),
    "torchlens": ("torchlens", torchlens),
    "FlopCounterMode": ("torch", flop_counter),
    "FlopCounterMode math": ("torch", flop_counter_math),
}
BOTH: dict[str, tuple[str, Tool]] = {
    "opscope": ("opscope", opscope_both),
    "FlopCounterMode": ("torch", flop_counter_both),
}


# -- in the process of one tool -------------------------------------------------------------------------


def child(tool: str, both: bool, models: list[str], runs: int, with_ops: bool) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    count = (BOTH if both else TOOLS)[tool][1]
    found: dict[str, Any] = {"models": {}, "ops": {}}
    importlib.import_module((BOTH if both else TOOLS)[tool][0])  # once, not in every process
    for name in models:
        found["models"][name] = alone(lambda name=name: _model(count, name, both, runs))
    if with_ops:
        for name, (model, x, truth) in entries().items():
            macs = alone(lambda model=model, x=x: _asked(count, model, x, 1)[0])
            found["ops"][name] = macs is not None and abs(macs - truth) <= EXACT * truth
    package = (BOTH if both else TOOLS)[tool][0]
    found["version"] = metadata.version(package) if package not in ("torch", "opscope") else ""
    found["memory"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print("\n" + json.dumps(found))


def alone(work: Callable[[], Any]) -> Any:
    """In a process of its own: a tool that fails on one model may leave torch patched, and count the next double."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        with os.fdopen(writing, "w") as out:
            json.dump(work(), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else None


def _model(count: Tool, name: str, both: bool, runs: int) -> dict[str, Any]:
    case = MODELS[name]()
    case.model.train(both)
    truth = case.both if both else case.forward

    def plain() -> None:
        if both:
            case.model(case.x).sum().backward()
            case.model.zero_grad(set_to_none=True)
        else:
            with torch.no_grad():
                case.model(case.x)

    _asked(count, nn.Sequential(nn.Linear(2, 2)), torch.randn(1, 2), 1)  # what it loads at first is not measured
    # In turns: a machine that others use too is not as fast now as a minute ago.
    bare, took = _seconds(plain, 2), None
    macs: float | None = None
    params: int | None = None
    for _ in range(runs):
        macs, params, once = _asked(count, case.model, case.x, 1)
        if once is None:
            took = None
            break
        took = once if took is None else min(took, once)
        bare = min(bare, _seconds(plain, 2))
    return {
        "ratio": macs / truth if macs is not None else None,
        "params": params == case.params if params is not None else None,
        "overhead": took / bare if took is not None else None,
        "is_large": took is not None and bare >= LARGE,
    }


def _asked(count: Tool, model: nn.Module, x: Tensor, runs: int) -> tuple[float | None, int | None, float | None]:
    """A copy for every run: some tools leave things behind in the model."""
    answer: Answer | None = None
    best = float("inf")
    for _ in range(runs):
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
            warnings.simplefilter("ignore")
            try:
                own = copy.deepcopy(model)
                start = time.process_time()
                answer = count(own, x.clone())
                best = min(best, time.process_time() - start)
            except Exception:
                return None, None, None
    assert answer is not None
    return (None if answer[0] != answer[0] else answer[0]), answer[1], best


def _seconds(work: Callable[[], None], runs: int) -> float:
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


# -- the table ------------------------------------------------------------------------------------------


def ask(tool: str, both: bool, models: list[str], runs: int, with_ops: bool) -> dict[str, Any] | None:
    arguments = ["--child", tool, "--models", ",".join(models), "--runs", str(runs)]
    arguments += ["--both"] if both else []
    arguments += ["--ops"] if with_ops else []
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TRANSFORMERS_VERBOSITY": "error"}
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, env=environment)
    if done.returncode:
        print(f"{tool:<22} fails: {done.stderr.strip().splitlines()[-1][:100]}", flush=True)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def row(tool: str, found: dict[str, Any]) -> str:
    cells: list[str] = []
    for figures in found["models"].values():
        ratio = figures["ratio"]
        cells.append("–" if ratio is None else "1" if abs(ratio - 1) <= EXACT else f"{ratio:.3g}")
    exact = cells.count("1")
    overheads = [f["overhead"] for f in found["models"].values() if f["overhead"] is not None]
    large = [f["overhead"] for f in found["models"].values() if f["is_large"]]
    over = f"{statistics.median(overheads):.2f}/{max(overheads):.1f}" if overheads else "–"
    over += f"/{max(large):.2f}" if large else "/–"
    params = [f["params"] for f in found["models"].values()]
    known = "–" if all(p is None for p in params) else f"{params.count(True)}/{len(params)}"
    ops = f"{sum(found['ops'].values())}/{len(found['ops'])}" if found["ops"] else ""
    if found["version"]:
        tool = f"{tool} {found['version']}"
    return (
        f"{tool:<28}" + "".join(f"{cell:>8}" for cell in cells) + f"{exact:>6}/{len(cells)}{over:>16}{known:>8}{ops:>8}"
        f"{found['memory']:>8.0f}"
    )


def promised(counts: dict[tuple[str, bool], dict[str, Any]]) -> list[tuple[str, str, bool]]:
    """What the tables show of opscope's promises."""
    found: list[tuple[str, str, bool]] = []
    for tool, both, most, title in (
        ("opscope", False, MOST, "forward"),
        ("opscope", True, None, "forward and backward"),
        ("opscope, fake", False, 1.0, "forward, on fake tensors"),
    ):
        models = counts.get((tool, both), {"models": {}})["models"]
        if not models:
            continue
        exact = sum(f["ratio"] is not None and abs(f["ratio"] - 1) <= EXACT and f["params"] for f in models.values())
        found.append((f"{title}: MACs and parameters exact", f"{exact} of {len(models)} models", exact == len(models)))
        large = {name: f["overhead"] for name, f in models.items() if f["is_large"]}
        if most is not None and large:
            worst = max(large, key=lambda name: large[name])
            figure = f"×{large[worst]:.2f} at most ({worst}; allowed ×{most:g})"
            is_below = large[worst] <= most if most > 1 else large[worst] < most
            found.append((f"{title}: CPU ÷ a plain pass, of 50 ms and more", figure, is_below))
    return found


def shown(part: str) -> list[tuple[str, str, bool]]:
    here = Path(__file__).parent
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TRANSFORMERS_VERBOSITY": "error"}
    done = subprocess.run(
        [sys.executable, str(here / "cost_shown.py"), part], capture_output=True, text=True, env=environment, cwd=here
    )
    if done.returncode:
        return [(part, f"fails: {done.stderr.strip().splitlines()[-1][:100]}", False)]
    return [tuple(verdict) for verdict in json.loads(done.stdout.strip().splitlines()[-1])]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--child")
    parser.add_argument("--both", action="store_true")
    parser.add_argument("--ops", action="store_true")
    given = parser.parse_args()
    models = [name for name in given.models.split(",") if name]
    if given.child:
        child(given.child, given.both, models, given.runs, given.ops)
        return
    wanted = [name for name in given.only.split(",") if name]
    print(f"torch {torch.__version__}, one thread; calibration loop {calibrate():.3f} s")
    counts: dict[tuple[str, bool], dict[str, Any]] = {}
    for title, tools, both in (("forward", TOOLS, False), ("forward and backward", BOTH, True)):
        print(
            f"\n{title}: MACs ÷ truth; CPU time ÷ a plain pass, median/max/max from 50 ms on; parameters; operators; "
            "memory in MB"
        )
        print(
            f"{'':<28}"
            + "".join(f"{name[:7]:>8}" for name in models)
            + "   exact            time  params     ops  memory"
        )
        for tool, (package, _) in tools.items():
            if wanted and tool not in wanted and package not in wanted:
                continue
            if importlib.util.find_spec(package) is None:
                print(f"{tool:<22} not installed: skipped", flush=True)
                continue
            found = ask(tool, both, models, given.runs, with_ops=not both)
            if found is not None:
                counts[tool, both] = found
                print(row(tool, found), flush=True)
                missed = [name for name, is_right in found["ops"].items() if not is_right]
                if package == "opscope" and missed:
                    print(f"  not exact: {', '.join(missed)}")
    if wanted and "opscope" not in wanted:
        return
    print("\nwhat opscope promises")
    verdicts = promised(counts)
    for part in PARTS:
        verdicts += shown(part)
    for what, figure, is_kept in verdicts:
        print(f"  {'ok    ' if is_kept else 'not ok'}  {what}: {figure}", flush=True)


if __name__ == "__main__":
    main()
