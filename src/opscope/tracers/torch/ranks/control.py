"""What PyTorch's pipelines ask each other before they start: every stage is taken to answer like this one.

The stages of a pipeline vote on whether the shapes of what they send are known. The votes are numbers, and a fake group
brings none. All stages are made by the same program, so the vote of the others is that of this rank.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Generator
from typing import Any

from opscope.tracers.torch.private import find

from .groups import patched


@contextlib.contextmanager
def without_peers(torch: Any) -> Generator[None, None, None]:
    stage: Any = find("torch.distributed.pipelining.stage", "PipelineStage")
    modes: Any = find("torch.distributed.pipelining.stage", "InferenceMode")
    names = ("_warmup_forward_vote", "_warmup_backward_result")
    if stage is None or modes is None or not all(hasattr(stage, name) for name in names):
        yield
        return
    votes: dict[int, int] = {}
    forward, backward = (getattr(stage, name) for name in names)

    @functools.wraps(forward)
    def forward_vote(self: Any, has_backward: bool, received_acc: Any = None) -> Any:
        votes[0] = votes.get(0, 1) & (0 if modes.needs_dynamic(self._user_meta, has_backward) else 1)
        return _numbered(torch, forward(self, has_backward, received_acc), votes[0])

    @functools.wraps(backward)
    def backward_result(self: Any, received_result: Any = None) -> Any:
        return _numbered(torch, backward(self, received_result), votes.get(0, 0))

    with patched((stage, names[0], forward_vote), (stage, names[1], backward_result)):
        yield


def _numbered(torch: Any, tensor: Any, number: int) -> Any:
    """A tensor of one number with another number in it; no operator is recorded for that."""
    if not isinstance(tensor, torch.Tensor):
        return tensor
    with torch._C._DisableTorchDispatch():
        if type(tensor).__name__ == "FakeTensor":
            tensor.constant = torch.tensor([number], dtype=tensor.dtype)
        else:
            tensor.detach().fill_(number)
    return tensor
