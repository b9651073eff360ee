"""What Paddle's operators call their arguments, which they are given by position; and what attributes look like."""

from __future__ import annotations

import re
from typing import Any, cast

_LONGEST = 200
_MOST = 64

_TABLE = """
conv2d: input filter strides paddings padding_algorithm dilations groups data_format
depthwise_conv2d: input filter strides paddings padding_algorithm groups dilations data_format
conv3d: input filter strides paddings padding_algorithm groups dilations data_format
conv2d_transpose: x filter strides paddings output_padding output_size padding_algorithm groups dilations data_format
pool2d: x kernel_size strides paddings ceil_mode exclusive data_format pooling_type global_pooling adaptive
matmul: x y transpose_x transpose_y
linear: input weight bias
bmm: x y
add: x y
subtract: x y
multiply: x y
divide: x y
scale: x scale bias bias_after_scale
batch_norm: x mean variance scale bias is_test momentum epsilon data_format use_global_stats trainable_statistics
sync_batch_norm: x mean variance scale bias is_test momentum epsilon data_format use_global_stats trainable_statistics
spectral_norm: weight u v dim power_iters eps
fake_quantize_dequantize_moving_average_abs_max: x in_scale in_accum in_state moving_rate bit_length is_test round_type
fake_quantize_moving_average_abs_max: x in_scale in_accum in_state moving_rate bit_length is_test round_type
fake_quantize_range_abs_max: x in_scale iter window_size bit_length is_test round_type
moving_average_abs_max_scale: x in_accum in_state moving_rate is_test
quantize_linear: x scale zero_point in_accum in_state quant_axis bit_length qmin qmax round_type is_test only_observer
layer_norm: x scale bias epsilon begin_norm_axis
group_norm: x scale bias epsilon groups data_format
instance_norm: x scale bias epsilon
softmax: x axis
log_softmax: x axis
cross_entropy_with_softmax: input label soft_label use_softmax numeric_stable_mode ignore_index axis
embedding: x weight padding_idx sparse
dropout: x seed_tensor p is_test mode seed fix_seed
reshape: x shape
transpose: x perm
flatten: x start_axis stop_axis
concat: x axis
split: x sections axis
split_with_num: x num axis
stack: x axis
squeeze: x axis
unsqueeze: x axis
slice: input axes starts ends infer_flags decrease_axis
sum: x axis dtype keepdim
mean: x axis keepdim
max: x axis keepdim
min: x axis keepdim
cast: x dtype
exp: x
sqrt: x
rsqrt: x
silu: x
log: x
sin: x
cos: x
abs: x
pow: x y
relu: x
sigmoid: x
tanh: x
gelu: x approximate
leaky_relu: x negative_slope
rnn: x pre_state weight_list sequence_length dropout_state_in dropout_prob is_bidirec input_size hidden_size num_layers
full: shape value dtype place
sgd_: param learning_rate grad master_param multi_precision
momentum_: param grad velocity learning_rate master_param mu use_nesterov regularization_method
adam_: param grad learning_rate moment1 moment2 moment2_max beta1_pow beta2_pow master_param skip_update beta1 beta2
adamw_: param grad learning_rate moment1 moment2 moment2_max beta1_pow beta2_pow master_param skip_update beta1 beta2
"""
ARGUMENTS: dict[str, tuple[str, ...]] = {
    name: tuple(words.split()) for name, _, words in (line.partition(":") for line in _TABLE.strip().splitlines())
}


def words_of(op: str) -> tuple[str, ...]:
    """What the arguments of an operator are called; those of one that writes in place as those of the other."""
    return ARGUMENTS.get(op) or ARGUMENTS.get(op.rstrip("_"), ())


# What the gradient of an operator reads of the forward pass, by Paddle's own definition (backward.yaml): inputs, and,
# behind the bar, outputs by their place.
_KEPT = """
matmul: x y input weight
conv2d: input filter
depthwise_conv2d: input filter
conv3d: input filter
conv2d_transpose: x filter
pool2d: x | out:0
multiply: x y
divide: x y | out:0
bmm: x y
batch_norm: x scale | saved_mean:3 saved_variance:4 reserve_space:5
layer_norm: x scale | mean:1 variance:2
softmax: | out:0
log_softmax: | out:0
cross_entropy_with_softmax: label | softmax:0
embedding: x weight
dropout: | mask:1
relu: | out:0
sigmoid: | out:0
tanh: | out:0
exp: | out:0
sqrt: | out:0
rsqrt: | out:0
gelu: x
silu: x | out:0
leaky_relu: x
log: x
sin: x
cos: x
abs: x
pow: x
max: x | out:0
min: x | out:0
"""


def _kept(text: str) -> tuple[tuple[str, ...], tuple[tuple[int, str], ...]]:
    inputs, _, outputs = text.partition("|")
    places = (entry.partition(":") for entry in outputs.split())
    return tuple(inputs.split()), tuple((int(place), word) for word, _, place in places)


KEPT = {name: _kept(rest) for name, _, rest in (line.partition(":") for line in _KEPT.strip().splitlines())}

# Operators whose result may be a view of what they read.
VIEWS = frozenset(
    "reshape flatten squeeze unsqueeze transpose slice strided_slice split split_with_num as_strided view_shape "  # noqa: SIM905
    "view_dtype getitem unbind diagonal tensor_unfold contiguous assign expand".split()
)


_ERROR = re.compile(r"\s*(\w*(?:Error|Exception)): (.+)")


def reason_of(error: BaseException) -> str:
    """The line of Paddle's message that says what is wrong: it stands between lines of code, stacks and hints, and what
    follows may be anything that was printed into it."""
    name = type(error).__name__
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    named = [found for line in lines if (found := _ERROR.fullmatch(line))]
    own = [found[2].strip() for found in named if found[1] == name][:1]
    others = [f"{found[1]}: {found[2].strip()}" for found in named]
    first = "" if not lines or lines[0].startswith("In transformed code") else lines[0].strip()
    text = next((text for text in (*own, *others, first) if text), "")
    return (text if text.startswith(f"{name}:") else f"{name}: {text}" if text else name)[:300]


def attribute(value: Any) -> Any:
    """Numbers, words and lists of them as they are; others as text, not too long."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        if len(items) <= _MOST:
            return [attribute(item) for item in items]
    return str(cast("Any", value))[:_LONGEST]
