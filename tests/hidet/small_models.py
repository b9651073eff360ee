"""The model of the spec's tutorial, small; and others."""

from __future__ import annotations

import math

from hidet.graph import nn, ops


class SelfAttention(nn.Module):
    def __init__(self, hidden_size=768, num_attention_heads=12):
        super().__init__()
        self.heads = num_attention_heads
        self.size = hidden_size // num_attention_heads
        self.query_layer = nn.Linear(hidden_size, hidden_size)
        self.key_layer = nn.Linear(hidden_size, hidden_size)
        self.value_layer = nn.Linear(hidden_size, hidden_size)

    def split(self, x):
        batch, length, _ = x.shape
        return x.reshape([batch, length, self.heads, self.size]).rearrange([[0, 2], [1], [3]])

    def forward(self, hidden_states, attention_mask):
        batch, length, _ = hidden_states.shape
        query = self.split(self.query_layer(hidden_states))
        key = self.split(self.key_layer(hidden_states))
        value = self.split(self.value_layer(hidden_states))
        scores = ops.matmul(query, ops.transpose(key, [-1, -2])) / math.sqrt(self.size)
        context = ops.matmul(ops.softmax(scores + attention_mask, axis=-1), value)
        return context.reshape([batch, self.heads, length, self.size]).rearrange([[0], [2], [1, 3]])


class Twice(nn.Module):
    """A module inside of a list that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Relu())

    def forward(self, x):
        return self.layers(self.layers(x))
