"""Jittor: a few general operators (`binary.…`, `reduce.…`) and the libraries it hands products to.

Its own products are chains of broadcast, multiply and reduce, found by products.py.
"""

from __future__ import annotations

from opscope.ops.aliases import Framework, Spelled

from .products import products

TABLE = """
# -- products by a library -----------------------------------------------------------------------------------
matmul/by-sizes < mkl_matmul cublas_matmul cublas_batched_matmul cublas_acc_matmul mkl_batched_matmul acl_matmul
conv x:0 weight:1 < mkl_conv cudnn_conv cudnn_conv3d
conv_backward/of-input weight:0 grad:1 < mkl_conv_backward_x cudnn_conv_backward_x cudnn_conv3d_backward_x
conv_backward/of-weight x:0 grad:1 < mkl_conv_backward_w cudnn_conv_backward_w cudnn_conv3d_backward_w
# -- element by element --------------------------------------------------------------------------------------
add < binary.add
sub < binary.subtract
mul < binary.multiply
div < binary.divide
floor_divide < binary.floor_divide
remainder < binary.mod
pow < binary.pow
maximum < binary.maximum
minimum < binary.minimum
eq < binary.equal
ne < binary.not_equal
lt < binary.less
le < binary.less_equal
gt < binary.greater
ge < binary.greater_equal
logical_and < binary.logical_and
logical_or < binary.logical_or
logical_xor < binary.logical_xor
bitwise_and < binary.bitwise_and
bitwise_or < binary.bitwise_or
bitwise_xor < binary.bitwise_xor
bitwise_left_shift < binary.left_shift
bitwise_right_shift < binary.right_shift
neg < unary.negative
abs < unary.abs
logical_not < unary.logical_not
bitwise_not < unary.bitwise_not
exp < unary.exp
log < unary.log
sqrt < unary.sqrt
round < unary.round unary.round_int
floor < unary.floor unary.floor_int
ceil < unary.ceil unary.ceil_int
sin < unary.sin
cos < unary.cos
tan < unary.tan
asin < unary.asin unary.arcsin
acos < unary.acos unary.arccos
atan < unary.atan unary.arctan
sinh < unary.sinh
cosh < unary.cosh
tanh < unary.tanh
asinh < unary.asinh unary.arcsinh
acosh < unary.acosh unary.arccosh
atanh < unary.atanh unary.arctanh
sigmoid < unary.sigmoid
erf < unary.erf
erfinv < unary.erfinv
clamp < safe_clip
cast < unary.cast unary.float32 unary.float64 unary.int32 unary.int64 unary.bool unary.float16 unary.bfloat16
where < ternary
# -- reductions ----------------------------------------------------------------------------------------------
sum < reduce.add reindex_reduce.add
mean < reduce.mean
prod < reduce.multiply reindex_reduce.multiply
amax < reduce.maximum reindex_reduce.maximum
amin < reduce.minimum reindex_reduce.minimum
all < reduce.logical_and
any < reduce.logical_or
sum < reduce.bitwise_and reduce.bitwise_or reduce.bitwise_xor reduce.logical_xor
argmax < arg_reduce cub_arg_reduce cub_argreduce
sort < argsort cub_argsort
cumsum < cub_cumsum
# -- C++ ----------------------------------------------------------------------------------------------------
code < code
# -- data ----------------------------------------------------------------------------------------------------
fill < array number index tape_constant
random < random curand_random
empty < empty
expand/copied < broadcast_to
reindex < reindex
gather < getitem
copy < setitem setitem.void setitem.bool copy
permute/copied < fuse_transpose transpose cutt_transpose cub_transpose cutt
scatter_add self src < setitem.add setitem.subtract setitem.multiply
view < reshape clone
nonzero < where candidate cub_where
identity < tape tapes share_with swap
"""


def spelled(op: str) -> Spelled:
    """`reduce.add`; an operator with an ending that changes nothing is known without it (`setitem.bool`)."""
    return Spelled((op, op.partition(".")[0]))


FRAMEWORK = Framework(TABLE, "Jittor", spelled, chains=products, composes=True)
