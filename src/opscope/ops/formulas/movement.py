"""What computes nothing: views, copies, new tensors, questions. Zero by rule; bytes where something is moved."""

from __future__ import annotations

from opscope.ops.call import Call, bytes_of
from opscope.ops.cost import ZERO, Cost
from opscope.ops.kinds import MOVE, VIEW, kind

# The same memory seen otherwise, numbers about a tensor, and what only Python needs: no bytes either.
VIEWS = """
view reshape flatten unflatten ravel squeeze unsqueeze transpose t permute movedim expand broadcast slice select
split chunk unbind narrow diagonal detach alias as_strided unfold view_as_real view_as_complex real imag conj
neg_view lift lift_fresh resize set identity contiguous size dim numel stride storage_offset
is_contiguous item scalar questions assert getattr sparse_parts wait print
"""

# Read once, written once.
MOVES = """
copy cat stack repeat repeat_interleave roll flip pad where masked_fill tril triu diag diag_embed
pixel_shuffle channel_shuffle im2col one_hot meshgrid block_diag cast gather_backward_copy
slice_backward select_backward diagonal_backward slice_scatter select_scatter diagonal_scatter as_strided_scatter
upsample_nearest max_unpool masked_select to_sparse to_dense to_mkldnn pack_sequence nested reindex
quantize_repack take_diagonal unfold_copy rot90 shuffle fftshift
"""

# Views in most frameworks; some copy.
COPIED = "expand permute slice as_strided split select"

for _name in VIEWS.split():
    kind(_name)(lambda call: VIEW)
for _name in MOVES.split():
    kind(_name)(lambda call: MOVE)
for _name in COPIED.split():
    kind(f"{_name}/copied")(lambda call: MOVE)


@kind("empty")
def empty(call: Call) -> Cost:
    return VIEW


@kind("fill", "random")
def fill(call: Call) -> Cost:
    """Only written: also where a tensor gives the shape, or is filled in place."""
    return Cost(read=0, how=ZERO)


@kind("to")
def to(call: Call) -> Cost:
    """A copy if the type changes; otherwise the tensor itself. (Devices are not known here.)"""
    return VIEW if call.outputs and call.first().dtype == call.outputs[0].dtype else MOVE


@kind("overwrite")
def overwrite(call: Call) -> Cost:
    """`x.copy_(y)`: what was in x is not read."""
    if call.lists:
        sources = [a.type for a in call.inputs if not a.name.startswith("self")]
        return Cost(read=sum(map(bytes_of, sources)), how=ZERO)
    return Cost(read=bytes_of(call.tensor("src")), how=ZERO)


@kind("getitem")
def getitem(call: Call) -> Cost:
    """Python's `x[…]`: a view, unless a tensor is the index."""
    if sum(a.type is not None for a in call.inputs) < 2:
        return VIEW
    taken = bytes_of(call.out())
    return Cost(read=taken + sum(bytes_of(a.type) for a in call.inputs[1:]), how=ZERO)


@kind("unfold_backward", "col2im", "expand_backward")
def adds_back(call: Call) -> Cost:
    """Windows that overlap are added up."""
    return Cost(other=call.taken())
