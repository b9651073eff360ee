"""Every architecture of transformers that can be built small: a training step with and without the recorder.

    python tests/torch/campaigns/architectures.py --results architectures.jsonl [--only gpt2 swin]

An architecture is faithful if its outputs, gradients and buffers are the same to the bit, every backward operator has a
link or a reason, nothing is said to be missing, and parameters and products count as PyTorch's own counters count them
(where they know every operator). Weights are random; nothing is downloaded. What cannot be built small from its
configuration alone, or does not run on made-up inputs without the recorder, is "not run".
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import itertools
import re
from collections.abc import Iterator
from typing import Any

import torch
from fidelity import campaign, difference, said, seed, tensors
from torch import Tensor, nn

import opscope

MOST_PARAMETERS = 60_000_000

# Of the fields of a configuration: those that make a model less deep, and those that make it less wide.
DEPTHS: list[tuple[str, int]] = [
    (r"layers?_types?$|feat_extract_layers$", 0),  # other fields have as many entries
    (r"(^|_)(n_)?layers?$|num_\w*_layers$|^depth$|num_blocks$", 2),
    (r"vocab_size$", 120),
    (r"num_\w*experts$|n_routed_experts$", 8),
    (r"max_position_embeddings$|n_positions$|max_\w*positions$|n_ctx$", 128),
    (r"num_frames$", 4),
    (r"num_queries$", 10),
]
WIDTHS: list[tuple[str, int]] = [
    (r"num_\w*experts$|n_routed_experts$", 4),
    (r"experts_per_tok$|moe_topk$|^top_k$", 2),
    (r"(n_group|topk_group)s?$", 1),
    (r"key_value_heads$|num_kv_heads$", 2),
    (r"heads?$", 4),
    (r"head_dim$|v_head_dim$|head_size$|rotary_dim$", 16),
    (r"(lora|kv)_\w*rank$", 16),
    (r"(intermediate|ffn|ff|inner|mlp)_?(dim|size)\w*$|d_ff$|dim_feedforward$|n_inner$", 96),
    (r"hidden_size$|hidden_dim$|d_model$|n_embd$|^dim$|embed_dim$|embedding_size$|_dim$", 64),
    (r"image_size$", 64),
    (r"patch_size$", 16),
]
LISTS = ("depths", "num_layers_per_stage", "layers_per_stage")


def small(config: Any, rules: list[tuple[str, int]]) -> dict[str, Any]:
    """What makes this configuration small."""
    found: dict[str, Any] = {}
    for name, value in vars(config).items():
        if hasattr(value, "to_dict") and hasattr(value, "model_type"):
            found[name] = {"model_type": value.model_type, **small(value, rules)}
        elif isinstance(value, list) and name in LISTS:
            found[name] = [1] * len(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            less = next((number for pattern, number in rules if re.search(pattern, name)), 0)
            if less == 2 and "key_value" in name and value == getattr(config, "num_attention_heads", 0):
                less = 4  # as many as there are heads
            if name.endswith("token_id") and value >= 100:
                found[name] = 3 + sum(map(ord, name)) % 90
            elif 0 < less < value:
                found[name] = less
    return found


def built(name: str) -> Iterator[nn.Module | Exception]:
    """The model in sizes that may do, the smallest first, or why not."""
    from transformers import AutoModel
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    for rules in ([*WIDTHS, *DEPTHS], DEPTHS, [rule for rule in DEPTHS if rule[1] != 2], []):
        try:
            kind = CONFIG_MAPPING[name]
            config = kind(**small(kind(), rules)) if rules else kind()
            with torch.device("meta"):
                size = sum(p.numel() for p in AutoModel.from_config(config).parameters())
            if size > MOST_PARAMETERS:
                raise ValueError(f"{size:,} parameters")
            seed()
            yield AutoModel.from_config(config).float().train()
        except Exception as error:
            yield error


def running(name: str) -> tuple[nn.Module, dict[str, Any]]:
    """A model, and arguments that it runs on."""
    first: Exception | None = None
    for model in built(name):
        if isinstance(model, nn.Module):
            try:
                return model, fitting(model)
            except Exception as error:
                model = error
        first = first or model
    assert first is not None
    raise first


def inputs(model: Any) -> Iterator[dict[str, Any]]:
    """Arguments that may fit, the likely ones first."""
    config = model.config
    text = getattr(config, "text_config", None) or config
    vision = getattr(config, "vision_config", None) or config
    size = getattr(vision, "image_size", None) or 64
    height, width = (size, size) if isinstance(size, int) else tuple(size)[-2:]
    channels = getattr(vision, "num_channels", None) or getattr(vision, "in_channels", None) or 3
    words = getattr(text, "vocab_size", None) or 100
    seed()
    ids = torch.randint(1, max(2, min(words, 60)), (2, 16))
    image = torch.randn(2, channels, height, width)
    bins = getattr(config, "num_mel_bins", None) or getattr(config, "input_dim", None) or 80
    length = 2 * (getattr(config, "max_source_positions", None) or 64)
    frames = getattr(vision, "num_frames", None) or 4
    wave = torch.randn(2, 8000)
    images = torch.randn(2, frames, channels, height, width)
    choices: dict[str, list[Any]] = {
        "input_ids": [ids],
        "decoder_input_ids": [ids],
        "bbox": [torch.zeros(2, 16, 4, dtype=torch.long)],
        "pixel_values": [image, torch.randn(2, channels, 224, 224), images, image[:, :1]],
        "pixel_values_videos": [images],
        "input_features": [torch.randn(2, bins, length), torch.randn(2, length, bins), torch.randn(2, 1, 1001, 64)],
        "input_values": [wave, wave[:, None], torch.randn(2, 1024, 128), torch.randn(2, length, bins)],
        "audio_values": [wave[:, None], wave],
        "grid_thw": [torch.tensor([[1, 8, 8]])],
        "image_grid_thw": [torch.tensor([[1, 8, 8]])],
        "input_features_mask": [torch.ones(2, length, dtype=torch.long)],
        "hidden_states": [torch.randn(2, 16, getattr(config, "hidden_size", None) or 64), torch.randn(64, 1176)],
        "inputs_embeds": [torch.randn(2, 16, getattr(config, "hidden_size", None) or 64)],
    }
    known = inspect.signature(model.forward).parameters
    needed = {n for n, p in known.items() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
    main = model.main_input_name
    sets = [
        {main},
        {main, "decoder_input_ids"},
        needed,
        needed | {main},
        {"input_ids", "pixel_values"},
        {"input_ids", "bbox"},
        {"input_ids", "input_features"},
        {"input_ids", "input_values"},
        {"pixel_values"},
        {"input_ids"},
        {"input_values"},
        {"input_features"},
        {"input_features", "decoder_input_ids"},
        {"inputs_embeds"},
    ]
    tried: list[set[str]] = []
    for names in sets:
        wanted = {name for name in names if name in known}
        if wanted and wanted not in tried and wanted <= choices.keys():
            tried.append(wanted)
            for picked in itertools.product(*(choices[name] for name in sorted(wanted))):
                yield dict(zip(sorted(wanted), picked, strict=True))


def fitting(model: Any) -> dict[str, Any]:
    failure: Exception = ValueError("no inputs that this knows")
    for place, given in enumerate(inputs(model)):
        try:
            with torch.no_grad():
                found = [t for t in tensors(copy.deepcopy(model)(**given)) if t is not None]
            if any(t.is_floating_point() for t in found):
                return given
        except Exception as error:
            failure = error if place == 0 else failure
    raise failure


def step(model: Any, given: dict[str, Any]) -> tuple[list[Tensor | None], list[Tensor | None]]:
    seed()
    out = [t for t in tensors(model(**given)) if t is not None]
    loss = [t.float().square().mean() for t in out if t.requires_grad and t.numel() and t.is_floating_point()]
    if loss:
        torch.stack(loss).sum().backward()
    return out, [*(p.grad for p in model.parameters()), *model.buffers()]


def check(name: str) -> dict[str, Any]:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    try:
        model, given = running(name)
        models = [copy.deepcopy(model) for _ in range(3)]
        plain, again = step(models[0], given), step(models[1], given)
    except Exception as error:
        return {"verdict": f"not run: {type(error).__name__}: {error}"[:200]}
    ours = models[2]
    with opscope.record(ours) as cap:
        recorded = step(ours, given)
    faults: list[str] = []
    for what, a, b, c in zip(("outputs", "gradients and buffers"), recorded, plain, again, strict=True):
        if not difference(b, c) and (where := difference(a, b)):
            faults.append(f"{what} not the same to the bit: {where}")
    told = said(cap)
    faults += [f"{key}: {told[key]}" for key in ("silent", "misled", "problems", "gaps", "before") if told[key]]
    stats = cap.stats()
    parameters = sum(p.numel() for p in model.parameters())
    counter = FlopCounterMode(display=False)
    seed()
    # It does not know the fused attention of CPUs.
    with contextlib.suppress(Exception), sdpa_kernel(SDPBackend.MATH), counter, torch.no_grad():
        model(**given)
    macs = int(stats.phases["forward"]["macs"])
    row = {
        "parameters": parameters,
        **{key: told[key] for key in ("nodes", "backward", "linked", "unnamed")},
        "marks": told["warnings"],
        "unknown": stats.unknown_ops,
        "macs": macs,
        "flops": counter.get_total_flops(),
        "macs differ": int(2 * macs != counter.get_total_flops()),
        "params differ": int(stats.parameters.count != parameters),
        "counted": f"{stats.parameters.count}, unused {len(stats.parameters.unused)}",
    }
    return {"verdict": "faithful" if not faults else "; ".join(faults)[:300], **row}


def names() -> list[str]:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    return [name for name in CONFIG_MAPPING_NAMES if name in MODEL_MAPPING_NAMES]


if __name__ == "__main__":
    campaign(__doc__, names, check, seconds=150)
