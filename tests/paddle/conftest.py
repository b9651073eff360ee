"""Models on real Paddle. This folder runs in the lane `paddle` only; it has no __init__.py, which would make it a
package of the name `paddle`."""

from __future__ import annotations

from collections.abc import Iterator

import paddle
import pytest


@pytest.fixture(autouse=True)
def left_as_it_was() -> Iterator[None]:
    """Whatever a test captures, opscope leaves Paddle as it found it."""
    from paddle import _C_ops

    engine = paddle.base.core.eager

    def state():
        methods = [paddle.Tensor.__add__, paddle.Tensor.clone, paddle.nn.Layer.__call__, paddle.optimizer.Adam.step]
        apply = "apply" in paddle.autograd.PyLayer.__dict__
        node = type(paddle.to_tensor(1.0, stop_gradient=False).grad_fn)
        operators = [_C_ops.matmul, paddle.tensor.linalg.matmul]
        functions = [node._register_post_hook, engine.run_backward, engine.run_partial_grad]
        return [*methods, apply, *operators, *functions, paddle.is_grad_enabled()]

    paddle.seed(0)
    before = state()
    yield
    assert state() == before
