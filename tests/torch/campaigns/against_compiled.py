"""Eager against compiled on models of the zoo: correct ones must be told correct, compilers with a planted fault not.

python tests/torch/campaigns/against_compiled.py [--backend inductor] [--faults] [MODEL ...]
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch
import zoo
from compiled_faults import FAULTS, Faulty
from torch import nn

import opscope

MODELS = (
    *("gpt2", "llama", "vit", "resnet18", "bert", "t5", "mixture_of_experts", "diffusion_unet", "lstm", "gru_cells"),
    *("mobile_convolutions", "mixtral"),
)


def programs(model: nn.Module, loss: Callable[[Any], torch.Tensor], kind: str) -> Callable[[Any], Callable[[], Any]]:
    """A forward pass, or a whole training step, of the model itself or of what it was compiled to."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    state = copy.deepcopy(model.state_dict())

    def program(called: Any) -> Callable[[], Any]:
        def run() -> Any:
            with torch.no_grad():
                model.load_state_dict(state)
            model.zero_grad()
            torch.manual_seed(0)
            if kind == "forward":
                with torch.no_grad():
                    return loss(called)
            loss(called).backward()
            optimizer.step()

        return run

    return program


def compared(name: str, kind: str, backend: Any) -> Any:
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, loss = zoo.ZOO[name]()
    for module in model.modules():  # another random number generator is no fault
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    program = programs(model, loss, kind)
    compiled = torch.compile(model, backend=backend)
    program(compiled)()
    return opscope.diverge(program(model), program(compiled))


def correct(names: list[str], backend: str) -> Iterator[tuple[str, bool, str]]:
    for name in names:
        for kind in ("forward", "step"):
            found = compared(name, kind, backend)
            yield f"{name} {kind}", found.first is None, str(found)


def faulty(names: list[str]) -> Iterator[tuple[str, bool, str]]:
    for name in names:
        for where in ("forward", "backward"):
            for fault in FAULTS:
                compiler = Faulty(fault, where)
                found = compared(name, "step", compiler.backend)
                if compiler.hit:
                    yield f"{name}, {fault} ({where})", found.first is not None, str(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--backend", default="aot_eager")
    parser.add_argument("--faults", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    right = total = 0
    for what, is_right, said in faulty(given.models) if given.faults else correct(given.models, given.backend):
        right, total = right + is_right, total + 1
        text = " ".join(said.split())
        print(f"{'right' if is_right else 'WRONG'} {what}: {text} ({time.process_time():.0f} s)", flush=True)
    print(f"{right} of {total} right")
    return 0 if right == total else 1


if __name__ == "__main__":
    sys.exit(main())
