"""Numbers of quantized blocks, and files of the real writers of checkpoints."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from models import MODELS
from safetensors.torch import save_file

import opscope
from opscope import checkpoints
from opscope.analysis.values import value_figures

BLOCKS = Path(__file__).parents[1] / "data" / "checkpoints" / "blocks.gguf"


def test_blocks_mean_the_numbers_that_their_own_library_reads() -> None:
    capture = opscope.open(BLOCKS, weights=True)
    figures = value_figures(capture, 0)
    tensors = gguf.GGUFReader(BLOCKS).tensors
    assert len(tensors) == capture.graph.n_values
    known = 0
    for value, tensor in zip(capture.graph.values, tensors, strict=True):
        assert value.name == tensor.name
        if figures["mean"].known[value.index]:
            numbers = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            assert figures["mean"].numbers[value.index] == pytest.approx(
                float(np.mean(numbers, dtype=np.float64)), rel=1e-5
            )
            assert figures["max"].numbers[value.index] == float(numbers.max())
            known += 1
    assert known == 11  # of 12: q2_k is not decoded


def test_one_model_in_four_formats(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = MODELS["resnet"]()[0]
    state = model.state_dict()
    paths = [tmp_path / name for name in ("m.safetensors", "m.pth", "old.pth", "m.npz", "whole.pt")]
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, paths[0])
    torch.save(state, paths[1])
    torch.save(state, paths[2], _use_new_zipfile_serialization=False)
    np.savez(paths[3], **{name: tensor.numpy() for name, tensor in state.items()})
    torch.save(model, paths[4])
    for path in paths[1:4]:
        found = checkpoints.diff(paths[0], path)
        assert (found.same, found.each) == (len(state), [])
    whole = opscope.open(paths[4])
    assert {value.name.replace("/", ".") for value in whole.graph.values} == set(state)
    assert {scope.cls for node in whole.graph.nodes for scope in node.scopes} >= {"Conv2d", "BatchNorm2d", "Block"}


def test_tied_weights_share_their_storage(tmp_path: Path) -> None:
    weight = torch.randn(4, 4)
    torch.save({"a.weight": weight, "b.weight": weight}, tmp_path / "m.pt")
    assert opscope.open(tmp_path / "m.pt").stats().to_dict()["total"]["params"] == 16
