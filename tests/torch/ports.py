"""A small Llama, and a port of it with other names, fused projections, another order of operators, and planted bugs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

HEADS, GROUPS, WIDTH, HEAD, INNER, WORDS = 4, 2, 32, 8, 64, 100

# Bug -> a word in the path of the original where the two must part.
BUGS = {
    "epsilon": "input_layernorm",
    "mean subtracted": "input_layernorm",
    "output projection transposed": "o_proj",
    "gate and up swapped": "mlp",
    "rotation the other way": "self_attn",
    "keys not rotated": "self_attn",
    "heads in another order": "self_attn",
    "scores not scaled": "self_attn",
    "scale of the wrong size": "self_attn",
    "softmax in bfloat16": "self_attn",
    "softmax over queries": "self_attn",
    "dropout left on": "self_attn",
    "no residual": "layers/1",
    "residual of the normalised": "layers/1",
    "another activation": "act_fn",
    "base of the rotation": "rotary_emb",
    "mask off by one": "self_attn",
    "no mask": "self_attn",
    "no final norm": "norm",
    "embedding scaled": "input_layernorm",
}


def original() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            hidden_size=WIDTH,
            intermediate_size=INNER,
            num_hidden_layers=2,
            num_attention_heads=HEADS,
            num_key_value_heads=GROUPS,
            vocab_size=WORDS,
            attn_implementation="eager",
        )
    ).eval()
    for parameter in model.parameters():
        noise = 0.1 * torch.randn_like(parameter)
        parameter.data = 1 + noise if parameter.dim() == 1 else noise
    return model


class Norm(nn.Module):
    def __init__(self, theirs: nn.Module, bug: str) -> None:
        super().__init__()
        self.gain = nn.Parameter(theirs.weight.detach().clone())
        self.small = theirs.variance_epsilon * (100 if bug == "epsilon" else 1)
        self.bug = bug

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.bug == "mean subtracted":
            x = x - x.mean(-1, keepdim=True)
        return self.gain * (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.small))


class Block(nn.Module):
    def __init__(self, theirs: nn.Module, bug: str) -> None:
        super().__init__()
        attention, mlp = theirs.self_attn, theirs.mlp
        fused = torch.cat([attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight])
        self.qkv = nn.Parameter(fused.detach().clone())
        self.out = nn.Parameter(attention.o_proj.weight.detach().clone())
        self.gate = nn.Parameter(mlp.gate_proj.weight.detach().clone())
        self.up = nn.Parameter(mlp.up_proj.weight.detach().clone())
        self.down = nn.Parameter(mlp.down_proj.weight.detach().clone())
        self.before, self.between = Norm(theirs.input_layernorm, bug), Norm(theirs.post_attention_layernorm, bug)
        self.bug = bug
        if bug == "output projection transposed":
            self.out = nn.Parameter(self.out.data.t().contiguous())
        if bug == "gate and up swapped":
            self.gate, self.up = self.up, self.gate

    def rotated(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        one, two = x[..., : HEAD // 2], x[..., HEAD // 2 :]
        if self.bug == "rotation the other way":
            sin = -sin
        return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)

    def attention(self, h: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, _ = h.shape
        q, k, v = (h @ self.qkv.t()).split([HEADS * HEAD, GROUPS * HEAD, GROUPS * HEAD], -1)
        q, k, v = (part.view(batch, length, -1, HEAD).transpose(1, 2) for part in (q, k, v))
        q = self.rotated(q, cos, sin)
        k = k if self.bug == "keys not rotated" else self.rotated(k, cos, sin)
        k, v = k.repeat_interleave(HEADS // GROUPS, 1), v.repeat_interleave(HEADS // GROUPS, 1)
        if self.bug == "heads in another order":
            k = k[:, [0, 2, 1, 3]]
        scores = q @ k.transpose(-1, -2)
        if self.bug == "scale of the wrong size":
            scores = scores / WIDTH**0.5
        elif self.bug != "scores not scaled":
            scores = scores / HEAD**0.5
        scores = scores + mask
        axis = -2 if self.bug == "softmax over queries" else -1
        if self.bug == "softmax in bfloat16":
            scores = scores.bfloat16()
        weights = F.softmax(scores, axis).to(h.dtype).nan_to_num()
        if self.bug == "dropout left on":
            weights = F.dropout(weights, 0.1, training=True)
        return (weights @ v).transpose(1, 2).reshape(batch, length, WIDTH) @ self.out.t()

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        h = self.before(x)
        attended = self.attention(h, cos, sin, mask)
        rest = {"no residual": 0, "residual of the normalised": h}.get(self.bug, x)
        x = rest + attended
        h = self.between(x)
        activation = F.gelu if self.bug == "another activation" else F.silu
        return x + (activation(h @ self.gate.t()) * (h @ self.up.t())) @ self.down.t()


class Port(nn.Module):
    """The same function, unless it has a bug; those of a block are in the second one."""

    def __init__(self, theirs: nn.Module, bug: str = "") -> None:
        super().__init__()
        self.table = nn.Parameter(theirs.model.embed_tokens.weight.detach().clone())
        self.blocks = nn.ModuleList(Block(layer, bug if i else "") for i, layer in enumerate(theirs.model.layers))
        self.last = Norm(theirs.model.norm, "")
        self.head = nn.Parameter(theirs.lm_head.weight.detach().clone())
        self.bug = bug

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table[ids]
        if self.bug == "embedding scaled":
            x = x * WIDTH**0.5
        length = ids.shape[1]
        base = 100_000.0 if self.bug == "base of the rotation" else 10_000.0
        turns = base ** (-torch.arange(0, HEAD, 2).float() / HEAD)
        angles = torch.outer(torch.arange(length).float(), turns)
        first = {"mask off by one": 2, "no mask": length}.get(self.bug, 1)
        mask = torch.full((length, length), float("-inf")).triu(first)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin(), mask)
        if self.bug != "no final norm":
            x = self.last(x)
        return x @ self.head.t()
