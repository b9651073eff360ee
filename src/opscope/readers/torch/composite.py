"""Operators that only call others, where a trace shows every call, one inside the other."""

from __future__ import annotations

# Before each autograd node that runs, its engine says so.
AUTOGRAD = "autograd::engine::evaluate_function: "

# CompositeImplicitAutograd: without autograd nothing else identifies them.
COMPOSITE = frozenset(
    "aten::" + name
    for name in (  # noqa: SIM905 (as a list it takes 50 lines)
        "linear conv1d conv2d conv3d convolution_mode batch_norm instance_norm layer_norm group_norm rms_norm "
        "matmul einsum bilinear tensordot chain_matmul multi_head_attention scaled_dot_product_attention "
        "max_pool1d max_pool2d max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d dropout "
        "feature_dropout cross_entropy_loss nll_loss nll_loss_nd nll_loss2d binary_cross_entropy_with_logits "
        "to contiguous reshape flatten ravel chunk tensor_split hsplit vsplit embedding_bag lstm gru rnn_tanh rnn_relu "
        "lstm_cell gru_cell softmax log_softmax pad upsample interpolate expand_as type_as"
    ).split()
)
