"""JAX and XLA: the primitives of a jaxpr, the operations of StableHLO, and the opcodes of HLO.

All three write what is summed over, windows and dimensions as the same attributes (readers/xla/written.py). In a jaxpr
and in StableHLO everything makes a new array; HLO has `bitcast` where the memory is the same. `custom-call` may be a
product of a library, which says its dimensions in its settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, cast

from opscope.ir.graph import Graph
from opscope.ops.cost import Cost

from . import Framework, Part, Spelled

TABLE = """
# -- products ------------------------------------------------------------------------------------------------
matmul/contracted a:0 b:1 < dot dot-general dot_general ragged_dot scaled-dot
conv/windowed x:0 weight:1 < convolution conv_general_dilated
triangular_solve a:0 b:1 < triangular-solve triangular_solve
# -- element by element --------------------------------------------------------------------------------------
add < add add_any add_jaxvals
sub < subtract sub
mul < multiply mul
div < divide div
remainder < rem remainder
pow < power pow integer_pow
maximum < maximum max
minimum < minimum min
neg < negate neg
abs < abs
sign < sign
square < square
sqrt < sqrt
rsqrt < rsqrt
pow < cbrt
exp < exponential exp
exp2 < exp2
expm1 < exponential-minus-one expm1
log < log
log1p < log-plus-one log1p
sigmoid < logistic
tanh < tanh
sin < sine sin
cos < cosine cos
tan < tan
asin < asin
acos < acos
atan < atan
atan2 < atan2
sinh < sinh
cosh < cosh
asinh < asinh
acosh < acosh
atanh < atanh
erf < erf
erfc < erfc
erfinv < erf_inv erf-inv
lgamma < lgamma
digamma < digamma
polygamma < polygamma zeta
i0e < bessel_i0e
i1e < bessel_i1e
nextafter < next-after nextafter
floor < floor
ceil < ceil
round < round round-nearest-afz round-nearest-even
isfinite < is-finite is_finite
clamp < clamp
complex < complex
real < real
imag < imag
conj < conj
eq < eq
ne < ne
lt < lt lt_to
le < le le_to
gt < gt
ge < ge
eq < compare
bitwise_and < and
bitwise_or < or
bitwise_xor < xor
bitwise_not < not
bitwise_left_shift < shift-left shift_left
bitwise_right_shift < shift-right-arithmetic shift-right-logical shift_right_arithmetic shift_right_logical
count_nonzero < popcnt population_count clz count-leading-zeros
where < select select_n select-n
cast < convert convert_element_type
cast < reduce-precision reduce_precision bitcast-convert bitcast_convert_type bitcast_convert stochastic-convert
# -- reductions, windows ---------------------------------------------------------------------------------------
sum < reduce_sum reduce reduce_and reduce_or reduce_xor
amax < reduce_max
amin < reduce_min
prod < reduce_prod
argmax < argmax
argmin < argmin
cumsum < cumsum
cumprod < cumprod
cummax < cummax
cummin < cummin
logcumsumexp < cumlogsumexp
pool/windowed < reduce-window reduce_window reduce_window_sum reduce_window_max reduce_window_min
max_pool_backward/windowed grad:1 < select-and-scatter select_and_scatter select_and_scatter_add
# -- data ----------------------------------------------------------------------------------------------------
view < reshape squeeze expand_dims bitcast get-tuple-element tuple optimization-barrier optimization_barrier
    stop_gradient after-all create_token add-dependency domain sharding_constraint pvary pbroadcast copy_p
    custom_jvp_call_jaxpr get-dimension-size set-dimension-size split mesh_cast reshard
view < Sharding SPMDFullToShardShape SPMDShardToFullShape
expand/copied < broadcast broadcast_in_dim broadcast-in-dim dynamic-broadcast-in-dim
permute/copied < transpose
flip < reverse rev
slice/copied < slice dynamic-slice dynamic_slice real-dynamic-slice
slice_scatter < dynamic-update-slice dynamic_update_slice
cat < concatenate
pad < pad dynamic-pad
copy < copy copy-start copy-done device_put collective-permute-done
fill < iota constant partition-id replica-id axis_index empty
gather < gather
scatter self:0 index:1 src:2 < scatter
scatter_add self:0 index:1 src:2 < scatter-add scatter_add scatter_mul scatter-mul scatter_min scatter_max scatter-min
    scatter-max
sort < sort
topk < topk top_k
# -- random numbers ------------------------------------------------------------------------------------------
random < rng rng-bit-generator rng_bit_generator rng-get-and-update-state random_bits rng_uniform
    random_seed random_fold_in random_split threefry2x32
view < random_wrap random_unwrap random_clone random_gamma_key
# -- linear algebra ------------------------------------------------------------------------------------------
cholesky < cholesky
eigh < eigh
eig < eig
svd < svd
qr < qr geqrf
lu < lu
fft < fft
# -- between devices -----------------------------------------------------------------------------------------
all_reduce < all-reduce all_reduce all-reduce-start psum psum2 psum_invariant pmax pmin
all_gather < all-gather all_gather all-gather-start all_gather_invariant collective-broadcast
reduce_scatter < reduce-scatter reduce_scatter psum_scatter
all_to_all < all-to-all all_to_all ragged-all-to-all
send < collective-permute collective_permute ppermute collective-permute-start send
receive < recv
wait < all-reduce-done all-gather-done send-done recv-done
"""

_DIALECTS = ("stablehlo.", "mhlo.", "chlo.")
# What a computation that joins two numbers is called, by its only operator.
_REDUCTIONS = {"add": "sum", "maximum": "amax", "minimum": "amin", "multiply": "prod", "and": "all", "or": "any"}


def spelled(op: str) -> Spelled:
    """`stablehlo.dot_general`, `dot_general` and `dot-general` are one."""
    bare = next((op[len(prefix) :] for prefix in _DIALECTS if op.startswith(prefix)), op)
    return Spelled(tuple(dict.fromkeys((op, bare, bare.replace("_", "-")))))


def chains(graph: Graph) -> dict[int, Part]:
    """What the name alone does not say: which reduction it is, and which products a library computes."""
    strings = graph.pools.strings
    ops = {op: strings[op] for op in set(graph.node_op.tolist())}
    asked = {op for op, name in ops.items() if spelled(name).names[-1] in ("reduce", "custom-call")}
    found: dict[int, Part] = {}
    if not asked:
        return found
    for node, op in enumerate(graph.node_op.tolist()):
        if op in asked:
            attrs = graph.node(node).attrs
            part = _reduction(attrs) if spelled(ops[op]).names[-1] == "reduce" else _product(graph, node, attrs)
            if part is not None:
                found[node] = part
    return found


def _reduction(attrs: Mapping[str, Any]) -> Part | None:
    kind = _REDUCTIONS.get(str(attrs.get("applies", "")).rpartition(".")[2])
    return Part(kind=kind) if kind else None


def _product(graph: Graph, node: int, attrs: Mapping[str, Any]) -> Part | None:
    """A product of a library says in its settings which dimensions of the first matrix are summed over."""
    config = _inside(_inside(_inside(attrs, "backend_config"), "gemm_backend_config"), "dot_dimension_numbers")
    listed: Any = config.get("lhs_contracting_dimensions")
    uses, outputs = graph.node(node).uses, graph.node(node).outputs
    if not isinstance(listed, list) or not uses or uses[0].value is None or not outputs:
        return None
    a, results = uses[0].value.type.shape, outputs[0].type.elements
    if a is None or results is None:
        return None
    try:
        summed = [a[int(dim)] for dim in cast("list[Any]", listed)]
    except (ValueError, IndexError, TypeError):
        return None
    sizes = [size for size in summed if isinstance(size, int)]
    return Part(Cost(macs=results * prod(sizes)), "matmul") if len(sizes) == len(summed) else None


def _inside(attrs: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = attrs.get(name)
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


FRAMEWORK = Framework(TABLE, "JAX", spelled, chains=chains, composes=True)
