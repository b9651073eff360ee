"""Element-wise operators, reductions and losses: so many operations for each element, by the tables below.

One operation is one addition, multiplication, division, comparison, logical operation, or one call of a function such
as exp, tanh or sqrt. An operator that stands for a formula counts what the formula has: silu(x) = x·sigmoid(x) is 2.
Integers and booleans count like floats.
"""

from __future__ import annotations

from opscope.ir.attributes import MODULE
from opscope.ops.call import Call, size_of
from opscope.ops.cost import ESTIMATED, EXACT, Cost
from opscope.ops.kinds import RULES, VIEW, Rule, kind, table

# For each element of the result.
ELEMENTWISE = table("""
1: abs neg sign sgn signbit ceil floor round trunc frac positive reciprocal square sqrt rsqrt
1: exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
1: erf erfc erfinv lgamma digamma polygamma sinc i0 i0e i1 i1e ndtri angle deg2rad rad2deg
1: sigmoid relu threshold hardshrink softshrink prelu isnan isinf isfinite isposinf isneginf isreal
1: logical_not bitwise_not add sub mul div floor_divide remainder fmod pow maximum minimum fmax fmin atan2 copysign
1: nextafter gcd lcm heaviside hypot eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or
1: bitwise_xor bitwise_left_shift bitwise_right_shift clamp_min clamp_max quantize dequantize nan_to_num
1: threshold_backward dropout_backward complex polar exp_backward log_backward square_backward sqrt_backward
1: sin_backward cos_backward abs_backward scale_backward mean_backward rrelu_backward cumsum_backward
2: fma add_relu clamp relu6 hardtanh leaky_relu silu logit xlogy xlog1py addcmul addcdiv ldexp float_power rrelu
2: log_sigmoid softplus hardsigmoid hardtanh_backward leaky_relu_backward prelu_backward hardsigmoid_backward
2: sinh_backward cosh_backward expm1_backward log1p_backward log2_backward log10_backward lgamma_backward
2: amax_backward amin_backward hardshrink_backward softshrink_backward isclose quantize_per_channel
3: elu selu celu lerp tanhshrink logaddexp softsign glu sigmoid_backward tanh_backward elu_backward fake_quantize
3: tan_backward atan_backward atanh_backward tanhshrink_backward logsumexp_backward swiglu var_backward std_backward
3: log_sigmoid_backward softplus_backward logit_backward entr pow_backward reciprocal_backward
4: erf_backward asin_backward acos_backward asinh_backward acosh_backward softsign_backward vector_norm_backward
4: rsqrt_backward hardswish hardswish_backward mish ndtr log_ndtr fake_quantize_backward
5: gelu glu_backward cross
6: silu_backward
7: mish_backward
8: gelu/tanh
11: gelu_backward
14: gelu_backward/tanh
""")

# For each element of the first argument.
REDUCTIONS = table("""
1: sum prod amax amin max_dim min_dim argmax argmin any all nansum count_nonzero trace cumsum cumprod cummax cummin
1: segment_reduce pad_backward
2: vector_norm aminmax nanmean squared_sum
3: logcumsumexp
4: var std logsumexp var_mean std_mean
5: softmax log_softmax softmin
6: masked_softmax
4: softmax_backward log_softmax_backward
3: cumprod_backward
""")

# For each element of the first argument: the loss of one element, and one more to add it up unless it is not reduced.
LOSSES = table("""
2: mse_loss l1_loss
3: hinge_embedding_loss soft_margin_loss kl_div poisson_nll_loss
4: smooth_l1_loss huber_loss gaussian_nll_loss
5: binary_cross_entropy
7: binary_cross_entropy_with_logits
3: mse_loss_backward l1_loss_backward
4: smooth_l1_loss_backward huber_loss_backward soft_margin_loss_backward
5: binary_cross_entropy_backward
""")


def _elementwise(each: int) -> Rule:
    return lambda call: Cost(other=each * call.made())


def _reduction(each: int) -> Rule:
    return lambda call: Cost(other=each * call.taken())


def _loss(each: int, is_backward: bool) -> Rule:
    def rule(call: Call) -> Cost:
        if is_backward:
            return Cost(other=each * call.made())
        whole = call.attr("reduction", 1) in (0, "none")
        return Cost(other=(each if whole else each + 1) * call.taken())

    return rule


for _name, _each in ELEMENTWISE.items():
    kind(_name)(_elementwise(_each))
for _name, _each in REDUCTIONS.items():
    kind(_name)(_reduction(_each))
for _name, _each in LOSSES.items():
    kind(_name)(_loss(_each, _name.endswith("_backward")))


def _scaled(rule: Rule) -> Rule:
    """`add(x, y, alpha=2)` multiplies before it adds."""

    def scaled(call: Call) -> Cost:
        cost = rule(call)
        return cost if call.attr("alpha", 1) in (1, 1.0) else cost._replace(other=cost.other + call.made())

    return scaled


def _valued(rule: Rule) -> Rule:
    """`addcmul(x, a, b, value=0.1)`."""

    def valued(call: Call) -> Cost:
        cost = rule(call)
        return cost if call.attr("value", 1) in (1, 1.0) else cost._replace(other=cost.other + call.made())

    return valued


RULES["add"], RULES["sub"] = _scaled(RULES["add"]), _scaled(RULES["sub"])
RULES["addcmul"], RULES["addcdiv"] = _valued(RULES["addcmul"]), _valued(RULES["addcdiv"])


def _is_tanh(call: Call) -> bool:
    return call.attr("approximate") == "tanh"


_gelu, _gelu_backward = RULES["gelu"], RULES["gelu_backward"]
RULES["gelu"] = lambda call: (RULES["gelu/tanh"] if _is_tanh(call) else _gelu)(call)
RULES["gelu_backward"] = lambda call: (RULES["gelu_backward/tanh"] if _is_tanh(call) else _gelu_backward)(call)


@kind("scale")
def scale(call: Call) -> Cost:
    """x · scale + bias."""
    return Cost(other=call.made() * (1 if call.attr("bias", 0) in (0, 0.0) else 2))


@kind("add_backward", "sub_backward")
def add_backward(call: Call) -> Cost:
    """Nothing but adding up where an input was broadcast."""
    grad = call.size("grad")
    return Cost(other=sum(grad for made in call.gradients(2) if size_of(made) != grad))


@kind("mul_backward", "div_backward", "maximum_backward", "minimum_backward")
def mul_backward(call: Call) -> Cost:
    """A product for each element of the gradient, and adding up where an input was broadcast."""
    grad = call.size("grad")
    return Cost(other=sum(grad if size_of(made) == grad else 2 * grad for made in call.gradients(2)))


@kind("dropout")
def dropout(call: Call) -> Cost:
    """Compare a random number, scale what is kept; in evaluation the tensor itself."""
    training = call.attr("train")
    if training is False:
        return VIEW
    # A module that fx left whole does not say in which mode it is.
    return Cost(other=2 * call.made(), how=ESTIMATED if training is None and MODULE in call.attrs else EXACT)


@kind("dropout/by-input")
def dropout_by_input(call: Call) -> Cost:
    """An input says whether it trains; without it, it does not."""
    if call.given("training") is None:
        return VIEW
    return Cost(other=2 * call.made(), how=ESTIMATED)


@kind("gelu/of-sum")
def gelu_of_sum(call: Call) -> Cost:
    """gelu(x + bias)."""
    cost = RULES["gelu"](call)
    return cost._replace(other=cost.other + (call.made() if call.given("bias") is not None else 0))


@kind("gelu/tanh-of-sum")
def gelu_tanh_of_sum(call: Call) -> Cost:
    return Cost(other=call.made() * (9 if call.given("bias") is not None else 8))


@kind("silu/quick")
def silu_quick(call: Call) -> Cost:
    """x · sigmoid(1.702 · x)."""
    return Cost(other=3 * call.made())


@kind("add/all", "maximum/all", "minimum/all", "mean/all")
def of_all(call: Call) -> Cost:
    """Of any number of tensors, element by element."""
    tensors = sum(a.type is not None for a in call.inputs)
    return Cost(other=call.made() * max(tensors - 1, 0))


@kind("sub/squared")
def squared_difference(call: Call) -> Cost:
    return Cost(other=2 * call.made())


@kind("sum/then-log")
def sum_then_log(call: Call) -> Cost:
    return Cost(other=call.taken() + call.made())


@kind("quantize/dynamic")
def quantize_dynamic(call: Call) -> Cost:
    """The least and the largest number, then the rounding."""
    return Cost(other=3 * call.taken())


@kind("rotary_embedding")
def rotary_embedding(call: Call) -> Cost:
    """Each number times a cosine, plus its neighbour times a sine."""
    return Cost(other=3 * call.made())


@kind("dropout/by-is-test")
def dropout_by_is_test(call: Call) -> Cost:
    return VIEW if call.attr("is_test", False) else Cost(other=2 * call.made())


@kind("mean")
def mean(call: Call) -> Cost:
    """The sum, and one division for each result."""
    return Cost(other=call.taken() + call.made())


@kind("max", "min")
def extreme(call: Call) -> Cost:
    """Of two tensors, element by element; of one, over it."""
    two = call.given("other") is not None or bool(call.listed("other"))
    two = two or (not call.lists and sum(a.type is not None for a in call.inputs) > 1)
    return Cost(other=call.made() if two else call.taken())


@kind("cross_entropy")
def cross_entropy(call: Call) -> Cost:
    """log_softmax, then the log-probability of each target."""
    return Cost(other=5 * call.taken() + 2 * size_of(call.tensor("target")))


@kind("cosine_similarity")
def cosine_similarity(call: Call) -> Cost:
    """Three sums of products, and the division."""
    return Cost(other=6 * call.size("x1") + 4 * call.made())


@kind("distance")
def distance(call: Call) -> Cost:
    """Subtract, square (or another power), add up."""
    return Cost(other=3 * call.taken())
