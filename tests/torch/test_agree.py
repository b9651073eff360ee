"""The recorder against torch's own graphs: the same edges as torch.export, the same pairs as AOTAutograd.

Both are reduced to the same operators first, because torch.export and the dispatcher see different levels: what
only moves or names data is passed through (PASSED), and operators with several spellings get one (SPELLINGS).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from zoo import ResNet

import opscope
from opscope.ir import Graph, Node

SPELLINGS = {
    "conv2d": "convolution",
    "linear": "linear",
    "addmm": "linear",
    "mm": "linear",
    "layer_norm": "layer_norm",
    "native_layer_norm": "layer_norm",
    "batch_norm": "batch_norm",
    "native_batch_norm": "batch_norm",
    "_native_batch_norm_legit_functional": "batch_norm",
    "relu_": "relu",
    "add_": "add",
    "max_pool2d_with_indices": "max_pool2d",
    "adaptive_avg_pool2d": "mean",
    "scaled_dot_product_attention": "attention",
    "_scaled_dot_product_flash_attention_for_cpu": "attention",
}
_PASSED = """view _unsafe_view reshape flatten t transpose permute slice select unsqueeze expand detach alias clone
    dropout contiguous to _to_copy unbind split getitem _assert_tensor_metadata"""
PASSED = frozenset(_PASSED.split())


def family(op: str) -> str:
    name = op.split(".")[1] if "." in op else op
    return SPELLINGS.get(name, name)


def reduced(graph: Graph, model: nn.Module) -> Counter[tuple[str, str]]:
    """Edges between operators that compute with parameters, each called by its module, kind and number."""
    # torch.export gives a tied weight both of its names, the recorder the first.
    first: dict[int, str] = {}
    names = {n: first.setdefault(id(p), n) for n, p in model.named_parameters(remove_duplicate=False)}
    sources: dict[int, set[str]] = {}  # value -> what it comes from
    seen: Counter[str] = Counter()
    edges: Counter[tuple[str, str]] = Counter()
    for value in graph.values:
        if value.producer is None:
            is_known = value.role in ("parameter", "buffer")
            sources[value.index] = {names.get(value.name, value.name)} if is_known else set()
    for node in graph.nodes:
        incoming = [sources.get(value.index, set()) for value in node.inputs if value is not None]
        come_from = set().union(*incoming) if incoming else set()
        if family(node.op) in PASSED or not come_from:
            made = come_from
        else:
            label = f"{node.path} {family(node.op)}"
            seen[label] += 1
            name = f"{label} {seen[label]}"
            for source in come_from:
                edges[source, name] += 1
            made = {name}
        for value in node.outputs:
            sources[value.index] = made
    return edges


def assert_same_edges(model: nn.Module, *args: Tensor, **kwargs: Any) -> None:
    model.eval()
    recorded = reduced(opscope.trace(model, *args, **kwargs).graph, model)
    exported = reduced(opscope.trace(model, *args, how="export", **kwargs).graph, model)
    assert recorded == exported, (recorded - exported, exported - recorded)
    assert len(recorded) > 50


def test_resnet18_has_the_edges_of_torch_export() -> None:
    assert_same_edges(ResNet(8, 10), torch.randn(2, 3, 32, 32))


def test_gpt2_has_the_edges_of_torch_export() -> None:
    assert_same_edges(gpt2(), torch.randint(0, 50, (2, 8)), use_cache=False)


def gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=50,
            n_embd=16,
            n_layer=2,
            n_head=2,
            n_positions=32,
            bos_token_id=0,
            eos_token_id=0,
            use_cache=False,
            resid_pdrop=0,
            embd_pdrop=0,
            attn_pdrop=0,
        )
    )


# -- pairs -----------------------------------------------------------------------------------------


def pairs(graph: Graph) -> Counter[tuple[str, str, str]]:
    """How often each kind of backward operator stands for each kind of forward operator, by module."""
    links = graph.links_of("grad")
    found: Counter[tuple[str, str, str]] = Counter()
    for source, target in zip(links.source.tolist(), links.target.tolist(), strict=True):
        forward, backward = graph.node(source), graph.node(target)
        if counts(forward) and counts(backward):
            found[module_of(forward), family(forward.op), family(backward.op)] += 1
    return found


def counts(node: Node) -> bool:
    return family(node.op) not in PASSED


def module_of(node: Node) -> str:
    """Without the name of the model, and without the number of the call, which AOTAutograd does not know."""
    return "/".join(scope.name for scope in node.scopes if scope.name not in ("model", "m"))


@pytest.mark.parametrize("name", ["resnet18", "gpt2"])
def test_pairs_are_those_of_aot_autograd(name: str) -> None:
    torch.manual_seed(0)
    if name == "resnet18":
        model, args = ResNet(8, 10), (torch.randn(2, 3, 32, 32),)
    else:
        model, args = gpt2(), (torch.randint(0, 50, (2, 8)),)
    model.train()
    with opscope.record(model) as cap:
        out = model(*args)
        (out if isinstance(out, Tensor) else out.logits).sum().backward()
    recorded = pairs(cap.graph)
    joint = pairs(opscope.trace(model, *args, how="joint").stage("joint").graph)
    assert recorded == joint, (recorded - joint, joint - recorded)
    assert sum(recorded.values()) > 40
