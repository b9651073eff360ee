"""What is a parameter and what a buffer: said by Paddle's own definitions, never by a name."""

from __future__ import annotations

import paddle
import pytest
from paddle import nn

import opscope


def roles(capture: opscope.Capture) -> dict[str, str]:
    return {v.name: v.role for v in capture.graph.values if v.role in ("parameter", "buffer")}


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_both_statistics_of_a_batch_norm_are_buffers(mode: str):
    model = nn.Sequential(nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4))
    getattr(model, mode)()
    found = opscope.trace(model, paddle.randn([2, 3, 8, 8]))
    assert roles(found) == {
        "0.weight": "parameter", "0.bias": "parameter", "1.weight": "parameter", "1.bias": "parameter",
        "1._mean": "buffer", "1._variance": "buffer",
    }  # fmt: skip
    assert found.stats().total.params == 108 + 4 + 4 + 4


class Frozen(nn.Layer):
    """Names that look like statistics, buffers of both kinds, and a state that only one operator knows as such."""

    def __init__(self) -> None:
        super().__init__()
        self.proj_mean = nn.Linear(4, 4)
        self.bn = nn.BatchNorm1D(4)
        self.register_buffer("kept", paddle.ones([4]))
        self.register_buffer("passing", paddle.ones([4]), persistable=False)
        self.norm = nn.SpectralNorm([2, 4])
        self.weight = self.create_parameter([2, 4])
        for parameter in self.proj_mean.parameters():
            parameter.stop_gradient = True

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        y = self.bn(self.proj_mean(x)) * self.kept + self.passing
        return paddle.matmul(y, self.norm(self.weight), transpose_y=True)


FROZEN = {"bn._mean", "bn._variance", "kept", "passing", "norm.weight_u", "norm.weight_v"}


def test_a_frozen_layer_keeps_its_parameters():
    found = roles(opscope.trace(Frozen(), paddle.randn([2, 4])))
    assert {name for name, role in found.items() if role == "buffer"} == FROZEN
    assert found["proj_mean.weight"] == found["proj_mean.bias"] == found["weight"] == "parameter"


def test_a_program_has_the_same_buffers():
    model = Frozen()
    model.eval()
    names = {str(t.name): name for name, t in [*model.named_parameters(), *model.named_buffers()]}
    found = roles(opscope.trace(model, paddle.randn([2, 4]), how="program"))
    assert {names[name] for name, role in found.items() if role == "buffer"} == FROZEN


def test_a_saved_program_says_what_it_cannot_know(tmp_path):
    model = Frozen()
    model.eval()
    names = {str(t.name): name for name, t in model.named_parameters()}
    paddle.jit.save(model, str(tmp_path / "model"), input_spec=[paddle.static.InputSpec([2, 4])])
    found = opscope.open(tmp_path / "model.json")
    buffers = {names.get(name, name) for name, role in roles(found).items() if role == "buffer"}
    assert buffers == {"bn._mean", "bn._variance", "norm.weight_u", "norm.weight_v"}
    assert any("4 tensors take no gradient" in warning for warning in found.all_warnings())


class Average(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.average = self.create_parameter([4])
        self.average.stop_gradient = True

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        paddle.assign(self.average * 0.9 + x.mean(0) * 0.1, self.average)
        return x - self.average


def test_what_a_layer_writes_in_forward_is_its_state():
    assert set(roles(opscope.trace(Average(), paddle.randn([2, 4]))).values()) == {"buffer"}


def test_resnet18_has_as_many_parameters_as_everywhere():
    model = paddle.vision.models.resnet18()
    assert opscope.stats(model, paddle.randn([1, 3, 32, 32])).total.params == 11_689_512
