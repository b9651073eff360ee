"""PyTorch: aten, prims, and the Python functions, methods and modules of fx and Dynamo.

An operator is looked for by its whole name (`torch.nn.functional.unfold`, `nn.Conv2d`), then by its own name without
namespace and overload (`add`), and then without the `_` of in-place operators and the `_foreach_` of lists.
"""

from __future__ import annotations

from . import Framework, Spelled

TABLE = """
# -- products ------------------------------------------------------------------------------------------------
matmul a:self b:mat2 < mm bmm _int_mm
matmul a:self b:other|tensor|tensor2|vec < matmul linalg_matmul __matmul__ dot vdot mv
matmul b:self a:other < __rmatmul__
vecdot < linalg_vecdot
matmul bias:self a:mat1|batch1 b:mat2|batch2 < addmm baddbmm
matmul bias:self a:mat b:vec < addmv
matmul bias:self a:mat1 b:mat2 < _addmm_activation
matmul/sparse bias:self a:mat1 b:mat2 < _sparse_addmm sspaddmm
matmul/sparse a:sparse b:dense < _sparse_mm
matmul/sparse a:self b:mat2 < smm
matmul/sparse a:mat1 b:mat2 < hspmm
sampled_matmul bias:self a:mat1 b:mat2 < sparse_sampled_addmm sparse.sampled_addmm
reduced_matmul a:self b:other < _sparse_mm_reduce_impl
matmul a:self b:mat2 bias@6 < _scaled_mm _scaled_mm_v2
grouped_matmul a:self b:mat2 offs bias < _grouped_mm _scaled_grouped_mm _scaled_grouped_mm_v2 grouped_mm
summed_matmul bias:self a:batch1 b:batch2 < addbmm
outer a:self b:vec2 < outer ger
outer bias:self a:vec1 b:vec2 < addr
linear x:input weight bias < linear mkldnn_linear nn.Linear nn.NonDynamicallyQuantizableLinear
linear x:self weight:other < inner
linear x:self weight:mat2 < _weight_int8pack_mm
linear_backward grad:grad_output weight x:self < linear_backward mkldnn_linear_backward
linear/packed x:self < _weight_int4pack_mm _weight_int4pack_mm_for_cpu _dyn_quant_matmul_4bit
linear/packed x:X|input|qx < quantized.linear quantized.linear_dynamic quantized.linear_relu
    quantized.linear_relu_dynamic quantized.linear_dynamic_fp16
    quantized.linear_with_input_q_dq_qweight_dq_output_fp32 onednn.qlinear_pointwise mkldnn._linear_pointwise
linear/packed x:input < fbgemm_linear_int8_weight fbgemm_linear_fp16_weight
tensordot a:self|a b:other|b < tensordot
multi_dot tensors:tensors|matrices < linalg_multi_dot chain_matmul
einsum equation tensors:tensors|operands < einsum
bilinear x1:input1 x2:input2 weight bias < bilinear nn.Bilinear
trilinear i1 i2 i3 expand1 expand2 expand3 sumdim < _trilinear
cdist x1 x2 p compute_mode < cdist _cdist_forward
cdist/as-product x1 x2 < _euclidean_dist
cdist_backward grad x1 x2 < _cdist_backward
cdist_backward grad x1:self < _pdist_backward
pdist self < pdist _pdist_forward
# -- convolutions --------------------------------------------------------------------------------------------
conv x:input|self weight bias transposed@6 < convolution _convolution convolution_overrideable
conv x:input|self weight bias < conv1d conv2d conv3d _convolution_mode nn.Conv1d nn.Conv2d nn.Conv3d
    cudnn_convolution mkldnn_convolution miopen_convolution thnn_conv2d miopen_depthwise_convolution
    _mps_convolution mkldnn._convolution_pointwise
conv x:input|self weight kernel_size bias < _conv_depthwise2d conv_depthwise3d _slow_conv2d_forward slow_conv3d
    slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d
conv_relu x:self weight bias < cudnn_convolution_relu miopen_convolution_relu
conv_add_relu x:self weight z alpha bias < cudnn_convolution_add_relu miopen_convolution_add_relu
conv/time-first x:self weight bias < conv_tbc
conv_transpose x:input|self weight bias < conv_transpose1d conv_transpose2d conv_transpose3d
conv_transpose x:input weight bias < nn.ConvTranspose1d nn.ConvTranspose2d nn.ConvTranspose3d
conv_transpose x:self weight kernel_size bias < slow_conv_transpose2d slow_conv_transpose3d
conv_transpose x:self weight < cudnn_convolution_transpose miopen_convolution_transpose
conv_backward grad:grad_output x:input weight transposed@7 output_mask@10 < convolution_backward
    convolution_backward_overrideable
conv_backward grad:grad_output x:self weight < _slow_conv2d_backward
# -- attention -----------------------------------------------------------------------------------------------
attention q:query k:key v:value mask:attn_mask|attn_bias dropout_p is_causal < scaled_dot_product_attention
    _scaled_dot_product_attention_math
attention q:query k:key v:value mask:attn_bias < _scaled_dot_product_efficient_attention
    _scaled_dot_product_cudnn_attention _scaled_dot_product_fused_attention_overrideable
attention q:query k:key v:value dropout_p is_causal < _scaled_dot_product_flash_attention
attention q:query k:key v:value dropout_p is_causal mask:attn_mask < _scaled_dot_product_flash_attention_for_cpu
attention q:query k:key v:value mask:attn_mask < _scaled_dot_product_attention_math_for_mps
attention_backward grad:grad_out|grad_out_ q:query k:key v:value < _scaled_dot_product_flash_attention_backward
attention_backward grad:grad_out|grad_out_ q:query k:key v:value mask:attn_mask|attn_bias@-1 <
    _scaled_dot_product_flash_attention_for_cpu_backward _scaled_dot_product_efficient_attention_backward
    _scaled_dot_product_cudnn_attention_backward _scaled_dot_product_fused_attention_overrideable_backward
attention/heads-last q:query k:key v:value mask:bias < _flash_attention_forward _efficient_attention_forward
attention_backward/heads-last grad:grad_out|grad_out_ q:query k:key v:value mask:bias < _flash_attention_backward
    _efficient_attention_backward
attention/heads-last q k v < flash_attn._flash_attn_forward flash_attn.fwd
flex_attention q:query|0 k:key|1 v:value|2 < higher_order.flex_attention flex_attention
flex_attention_backward q:query|0 k:key|1 v:value|2 < higher_order.flex_attention_backward flex_attention_backward
multi_head_attention q:query k:key v:value embed_dim num_heads:num_head in_weight:qkv_weight <
    _native_multi_head_attention
multi_head_attention/time-first q:query k:key v:value embed_dim_to_check num_heads in_weight:in_proj_weight <
    multi_head_attention_forward
multi_head_attention q:query k:key v:value in_weight:in_proj_weight < nn.MultiheadAttention
encoder_layer q:src embed_dim num_heads qkv_weight ffn1:ffn_weight_1@14 ffn2:ffn_weight_2@16 use_gelu@7 <
    _transformer_encoder_layer_fwd
encoder_layer q:src ffn1:linear1.weight ffn2:linear2.weight < nn.TransformerEncoderLayer
# -- recurrent layers ----------------------------------------------------------------------------------------
lstm x:input|data hx params < lstm nn.LSTM
gru x:input|data hx params < gru nn.GRU
rnn x:input|data hx params < rnn_tanh rnn_relu nn.RNN
lstm_cell x:input < lstm_cell nn.LSTMCell
gru_cell x:input < gru_cell nn.GRUCell
rnn_cell x:input < rnn_tanh_cell rnn_relu_cell nn.RNNCell
fused_rnn x:input params:weight mode < mkldnn_rnn_layer _cudnn_rnn miopen_rnn
fused_rnn_backward x:input params:weight mode < mkldnn_rnn_layer_backward _cudnn_rnn_backward miopen_rnn_backward
lstm_gates input_gates hidden_gates cx input_bias < _thnn_fused_lstm_cell
lstm_gates_backward cx@2 < _thnn_fused_lstm_cell_backward _thnn_fused_lstm_cell_backward_impl
gru_gates input_gates hidden_gates hx input_bias < _thnn_fused_gru_cell
gru_gates_backward grad_hy < _thnn_fused_gru_cell_backward
# -- normalization -------------------------------------------------------------------------------------------
batch_norm x:input weight bias running_mean running_var training < batch_norm native_batch_norm cudnn_batch_norm
    miopen_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional
instance_norm x:input weight bias running_mean running_var use_input_stats < instance_norm
instance_norm x:input weight bias running_mean running_var training < nn.InstanceNorm1d nn.InstanceNorm2d
    nn.InstanceNorm3d
batch_norm x:input weight bias running_mean running_var training < _batch_norm_impl_index nn.BatchNorm1d
    nn.BatchNorm2d nn.BatchNorm3d nn.SyncBatchNorm
batch_norm/training x:input weight bias < _batch_norm_with_update _batch_norm_with_update_functional
batch_norm/evaluation x:input weight bias < _native_batch_norm_legit_no_training _batch_norm_no_update batch_norm_elemt
    quantized_batch_norm
batch_norm_statistics x:input < batch_norm_stats batch_norm_update_stats
layer_norm x:input normalized_shape weight bias < layer_norm native_layer_norm nn.LayerNorm
group_norm x:input weight bias < native_group_norm nn.GroupNorm
group_norm x:input num_groups weight bias < group_norm
rms_norm x:input normalized_shape weight < rms_norm _fused_rms_norm nn.RMSNorm
rms_norm_backward grad_out x:input < _fused_rms_norm_backward
layer_norm_backward grad_out x:input < native_layer_norm_backward
group_norm_backward grad_out x:input < native_group_norm_backward
batch_norm_backward grad_out x:input < native_batch_norm_backward batch_norm_backward _batch_norm_impl_index_backward
batch_norm_backward x:input < cudnn_batch_norm_backward miopen_batch_norm_backward
weight_norm < _weight_norm _weight_norm_interface
weight_norm_backward < _weight_norm_interface_backward _weight_norm_differentiable_backward
local_response_norm < local_response_norm nn.LocalResponseNorm
# -- pooling and resampling ----------------------------------------------------------------------------------
max_pool x:self kernel_size < max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices
    max_pool3d_with_indices mkldnn_max_pool2d mkldnn_max_pool3d quantized_max_pool1d quantized_max_pool2d
    quantized_max_pool3d boolean_dispatch fractional_max_pool2d fractional_max_pool3d
max_pool x:input < nn.MaxPool1d nn.MaxPool2d nn.MaxPool3d
avg_pool x:self kernel_size < avg_pool1d avg_pool2d avg_pool3d
avg_pool x:input < nn.AvgPool1d nn.AvgPool2d nn.AvgPool3d
avg_pool_backward grad:grad_output x:self kernel_size < avg_pool2d_backward avg_pool3d_backward
max_pool_backward grad:grad_output < max_pool2d_with_indices_backward max_pool3d_with_indices_backward
    fractional_max_pool2d_backward fractional_max_pool3d_backward max_pool2d_backward mkldnn_max_pool2d_backward
    mkldnn_max_pool3d_backward
adaptive_pool x:self < adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d
    _adaptive_avg_pool3d mkldnn_adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
adaptive_pool x:input < nn.AdaptiveAvgPool1d nn.AdaptiveAvgPool2d nn.AdaptiveAvgPool3d nn.AdaptiveMaxPool1d
    nn.AdaptiveMaxPool2d nn.AdaptiveMaxPool3d
adaptive_pool_backward/max grad:grad_output < adaptive_max_pool2d_backward adaptive_max_pool3d_backward
adaptive_pool_backward grad:grad_output < _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward
    adaptive_avg_pool3d_backward mkldnn_adaptive_avg_pool2d_backward
upsample_nearest < upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d
upsample_nearest_backward grad:grad_output < upsample_nearest1d_backward upsample_nearest2d_backward
    upsample_nearest3d_backward _upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward
    _upsample_nearest_exact3d_backward
upsample_linear < upsample_linear1d
upsample_linear_backward grad:grad_output < upsample_linear1d_backward
upsample_bilinear < upsample_bilinear2d _upsample_bilinear2d_aa
upsample_bilinear_backward grad:grad_output < upsample_bilinear2d_backward _upsample_bilinear2d_aa_backward
upsample_trilinear < upsample_trilinear3d
upsample_trilinear_backward grad:grad_output < upsample_trilinear3d_backward
upsample_bicubic < upsample_bicubic2d _upsample_bicubic2d_aa
upsample_bicubic_backward grad:grad_output < upsample_bicubic2d_backward _upsample_bicubic2d_aa_backward
interpolate x:input < interpolate upsample nn.Upsample __interpolate __upsample
grid_sample x:input grid mode:mode|interpolation_mode < grid_sample grid_sampler grid_sampler_2d grid_sampler_3d
grid_sample x:input grid < _grid_sampler_2d_cpu_fallback cudnn_grid_sampler
grid_sample_backward grad:grad_output x:input grid interpolation_mode < grid_sampler_2d_backward
    grid_sampler_3d_backward
affine_grid < affine_grid_generator affine_grid
max_unpool < max_unpool2d max_unpool3d
# -- activations, one element at a time ----------------------------------------------------------------------
cross < linalg_cross
add_relu < _add_relu
sub < rsub subtract __sub__ __rsub__ isub __isub__
fma < fma
add < __add__ __radd__ iadd __iadd__ bias_add accumulate_grad
mul < multiply __mul__ __rmul__ imul __imul__ _masked_scale
div < divide true_divide truediv __truediv__ __rtruediv__ itruediv __itruediv__
floor_divide < floordiv __floordiv__ __rfloordiv__ ifloordiv
remainder < mod __mod__
pow < __pow__ __rpow__ pow_backward
neg < negative __neg__
abs < absolute __abs__
reciprocal < __rdiv__
bitwise_and < __and__ __rand__ __iand__ and_ iand
bitwise_or < __or__ __ror__ __ior__ or_ ior
bitwise_xor < __xor__ __rxor__ __ixor__ xor ixor
bitwise_not < __invert__ invert inv
bitwise_left_shift < __lshift__ lshift shift_left __ilshift__
bitwise_right_shift < __rshift__ rshift shift_right_arithmetic __irshift__
eq < __eq__
ne < __ne__ not_equal
lt < __lt__ less
le < __le__ less_equal
gt < __gt__ greater
ge < __ge__ greater_equal
clamp < clip
trunc < fix
asin < arcsin
acos < arccos
atan < arctan
asinh < arcsinh
acosh < arccosh
atanh < arctanh
atan2 < arctan2
lgamma < gammaln special_gammaln mvlgamma special_multigammaln
digamma < special_digamma special_psi psi
polygamma < special_polygamma special_zeta special_gammainc special_gammaincc igamma igammac
erf < special_erf
erfc < special_erfc special_erfcx
erfinv < special_erfinv erf_inv
i0 < special_i0 special_i0e special_i1 special_i1e bessel_i0 bessel_i1 bessel_i0e bessel_i1e special_bessel_j0
    special_bessel_j1 special_bessel_y0 special_bessel_y1 special_airy_ai special_modified_bessel_i0
    special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 special_spherical_bessel_j0
    bessel_j0 bessel_j1 special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 frexp
    special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
    special_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he
    special_laguerre_polynomial_l special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t
    special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
    special_shifted_chebyshev_polynomial_w
exp2 < special_exp2
expm1 < special_expm1
log1p < special_log1p
sinc < special_sinc
round < special_round
sigmoid < special_expit nn.Sigmoid
xlogy < special_xlogy
xlog1py < special_xlog1py
logit < special_logit
entr < special_entr
ndtr < special_ndtr
ndtri < special_ndtri
log_ndtr < special_log_ndtr
logaddexp < logaddexp2
relu < nn.ReLU
relu6 < nn.ReLU6
tanh < nn.Tanh
silu < nn.SiLU swish
gelu x:self approximate < nn.GELU gelu
gelu_backward grad_output self approximate < gelu_backward
hardswish < nn.Hardswish
hardsigmoid < nn.Hardsigmoid
hardtanh < nn.Hardtanh
hardshrink < nn.Hardshrink
softshrink < nn.Softshrink
tanhshrink < nn.Tanhshrink
softsign < nn.Softsign
softplus < nn.Softplus
leaky_relu < nn.LeakyReLU
elu < nn.ELU
selu < nn.SELU
celu < nn.CELU
mish < nn.Mish
glu < nn.GLU
threshold < nn.Threshold
rrelu < nn.RReLU rrelu_with_noise rrelu_with_noise_functional
prelu < nn.PReLU _prelu_kernel
prelu_backward < _prelu_kernel_backward
log_sigmoid < nn.LogSigmoid log_sigmoid_forward logsigmoid
leaky_relu_backward < rrelu_with_noise_backward
hardshrink_backward < softshrink_backward
dropout_backward < native_dropout_backward
fake_quantize < fake_quantize_per_tensor_affine fake_quantize_per_channel_affine
    fake_quantize_per_tensor_affine_cachemask fake_quantize_per_channel_affine_cachemask
    _fake_quantize_per_tensor_affine_cachemask_tensor_qparams fused_moving_avg_obs_fake_quant
    _fake_quantize_learnable_per_tensor_affine _fake_quantize_learnable_per_channel_affine
    _fused_moving_avg_obs_fq_helper _fused_moving_avg_obs_fq_helper_functional
fake_quantize_backward < fake_quantize_per_tensor_affine_cachemask_backward
    fake_quantize_per_channel_affine_cachemask_backward _fake_quantize_learnable_per_tensor_affine_backward
    _fake_quantize_learnable_per_channel_affine_backward
quantize < quantize_per_tensor quantize_per_tensor_dynamic quantized_decomposed.quantize_per_tensor
dequantize < quantized_decomposed.dequantize_per_tensor
quantize_per_channel < quantized_decomposed.quantize_per_channel quantized_decomposed.dequantize_per_channel
add < quantized.add quantized.mul quantized.add_scalar quantized.mul_scalar
hardtanh < quantized.add_relu quantized.mul_relu quantized.relu6
cat < quantized.cat
# -- dropout: nothing in evaluation --------------------------------------------------------------------------
dropout x:input p train:train|training < dropout feature_dropout alpha_dropout feature_alpha_dropout
    native_dropout _fused_dropout
dropout x:input p training < dropout1d dropout2d dropout3d
dropout x:input < nn.Dropout nn.Dropout1d nn.Dropout2d nn.Dropout3d nn.AlphaDropout
# -- reductions ----------------------------------------------------------------------------------------------
sum < sum_to_size _grad_sum_to_size xor_sum hash_tensor _nested_sum_backward
any < _is_any_true
all < _is_all_true equal is_nonzero allclose
vector_norm < norm linalg_vector_norm linalg_norm linalg_matrix_norm frobenius_norm native_norm renorm
    clip_grad_norm dist norm_except_dim linalg__powsum
aminmax < _aminmax
nanmean < nanmean
cummax < _cummax_helper
cummin < _cummin_helper
logcumsumexp < _logcumsumexp
cumsum < cumulative_trapezoid trapezoid trapz diff gradient
logsumexp < special_logsumexp
var < nanvar cov corrcoef
softmax < _softmax special_softmax _safe_softmax nn.Softmax nn.Softmax2d softmin nn.Softmin
log_softmax < _log_softmax special_log_softmax nn.LogSoftmax
masked_softmax < _masked_softmax
softmax_backward < _softmax_backward_data _masked_softmax_backward
log_softmax_backward < _log_softmax_backward_data
segment_reduce < _segment_reduce_backward
# -- losses --------------------------------------------------------------------------------------------------
mse_loss self target reduction < nn.MSELoss mse_loss
l1_loss self target reduction < nn.L1Loss l1_loss
smooth_l1_loss self target reduction < nn.SmoothL1Loss smooth_l1_loss
huber_loss self target reduction < nn.HuberLoss huber_loss
binary_cross_entropy self target weight reduction < nn.BCELoss binary_cross_entropy
binary_cross_entropy_with_logits self target weight pos_weight reduction < nn.BCEWithLogitsLoss
    binary_cross_entropy_with_logits
kl_div self target reduction < nn.KLDivLoss kl_div
cross_entropy self target < cross_entropy_loss cross_entropy nn.CrossEntropyLoss
nll_loss self target < nll_loss nll_loss_forward nll_loss2d nll_loss2d_forward nll_loss_nd nn.NLLLoss
nll_loss_backward grad:grad_output self target < nll_loss_backward nll_loss2d_backward
cosine_similarity x1 < cosine_similarity cosine_embedding_loss nn.CosineSimilarity
distance < pairwise_distance nn.PairwiseDistance
triplet_loss < triplet_margin_loss margin_ranking_loss
ctc_loss log_probs targets < ctc_loss _ctc_loss _cudnn_ctc_loss nn.CTCLoss
ctc_loss_backward grad log_probs targets < _ctc_loss_backward
multilabel_margin_loss < multilabel_margin_loss_forward multilabel_margin_loss_backward
# -- indices -------------------------------------------------------------------------------------------------
embedding weight indices:indices|input < embedding nn.Embedding
embedding_backward grad:grad_output|grad < embedding_dense_backward embedding_backward embedding_sparse_backward
embedding_bag weight indices:indices|input offsets per_sample_weights@6 mode@4 < _embedding_bag embedding_bag
    _embedding_bag_forward_only nn.EmbeddingBag
embedding_bag_backward grad indices < _embedding_bag_backward _embedding_bag_dense_backward
    _embedding_bag_sparse_backward
embedding_bag_backward grad indices@2 < _embedding_bag_per_sample_weights_backward
gather < index index_select gather take take_along_dim _unsafe_index _unsafe_masked_index
scatter self dim index src:src|source|value < scatter scatter_reduce index_copy
scatter self dim index src:source|src < index_reduce
scatter self index:indices src:values|source accumulate < index_put _index_put_impl _unsafe_index_put put
scatter_add self dim index src:src|source < scatter_add index_add _unsafe_masked_index_put_accumulate
scatter_add grad self dim index < gather_backward index_select_backward value_selecting_reduction_backward
masked_fill < index_fill masked_scatter masked_scatter_backward masked_select_backward fill_diagonal
nonzero < nonzero_static argwhere nonzero_numpy
searchsorted borders:sorted_sequence < searchsorted
searchsorted self borders:boundaries < bucketize
# -- estimates -----------------------------------------------------------------------------------------------
sort < argsort
unique < _unique _unique2 unique_dim unique_consecutive unique_dim_consecutive
median < nanmedian
quantile < nanquantile
histogram < _histogramdd_bin_edges histc histogramdd _histogramdd_from_bin_cts _histogramdd_from_bin_tensors
fft < _fft_c2c _fft_r2c _fft_c2r fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft prims.fft_r2c prims.fft_c2c
    prims.fft_c2r fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_fftn fft_ifftn fft_rfftn fft_irfftn stft istft
cholesky < linalg_cholesky linalg_cholesky_ex
lu < linalg_lu linalg_lu_factor linalg_lu_factor_ex _lu_with_info linalg_ldl_factor linalg_ldl_factor_ex
qr < linalg_qr geqrf linalg_householder_product orgqr
inverse < linalg_inv linalg_inv_ex linalg_pinv pinverse cholesky_inverse
det < linalg_det _linalg_det slogdet linalg_slogdet _linalg_slogdet logdet
eigh < linalg_eigh _linalg_eigh linalg_eigvalsh
eig < linalg_eig linalg_eigvals _linalg_eigvals
svd < linalg_svd _linalg_svd linalg_svdvals linalg_matrix_rank linalg_cond nuclear_norm
solve a:A b:B < linalg_solve linalg_solve_ex _linalg_solve_ex
solve b:self a:input2 < cholesky_solve _cholesky_solve_helper
triangular_solve a:LU b:B@2 < linalg_lu_solve
least_squares a:self|A b:b < linalg_lstsq
ldl_solve a:LD b:B@2 < linalg_ldl_solve
orthogonal_product reflectors:self tau:input2 other:input3 < ormqr
triangular_solve a:self b:B < linalg_solve_triangular
triangular_solve b:self a:A < triangular_solve
matrix_power self n < linalg_matrix_power
# -- optimizers ----------------------------------------------------------------------------------------------
adam param:self < _fused_adam _fused_adamw
sgd param:self < _fused_sgd
adagrad param:self < _fused_adagrad
unscale param:self < _amp_foreach_non_finite_check_and_unscale
scalar < _amp_update_scale
# -- new tensors ---------------------------------------------------------------------------------------------
empty < empty_like empty_strided empty_permuted new_empty new_empty_strided empty_quantized _efficientzerotensor
    _empty_affine_quantized _empty_per_channel_affine_quantized
fill < zeros zeros_like ones ones_like full full_like new_zeros new_ones new_full zero scalar_tensor arange linspace
    _new_zeros_with_same_feature_meta
    logspace range eye tril_indices triu_indices vander tensor as_tensor iota hann_window hamming_window
    bartlett_window blackman_window kaiser_window fft_fftfreq fft_rfftfreq new_tensor _list_to_tensor
    _shape_as_tensor _dim_arange NumToTensor lift_scalar
random < rand randn rand_like randn_like randint randint_like randperm normal uniform bernoulli log_normal
    exponential geometric cauchy poisson binomial normal_functional philox_rand _standard_gamma _sample_dirichlet
    _cudnn_init_dropout_state inductor_random trunc_normal
# -- copies --------------------------------------------------------------------------------------------------
overwrite self src < copy _copy_from _copy_from_and_resize copy_to
copy < lu_unpack spdiags _spdiags sparse_resize sparse_resize_and_clear _sparse_broadcast_to
copy < clone _lazy_clone lift_fresh_copy device_put pin_memory _pin_memory fill_like conj_physical _conj_physical
    resolve_conj resolve_neg to_device
cast < _to_copy convert_element_type _autocast_to_reduced_precision _autocast_to_full_precision _cast_Float
    _cast_Double _cast_Half _cast_Int _cast_Long chalf
to < to type float double half bfloat16 int long short char byte bool cpu cuda type_as
cat < concat concatenate hstack vstack dstack column_stack row_stack _chunk_cat cartesian_prod
stack < _stack
repeat < tile
repeat_interleave < kron
flip < fliplr flipud rev
pad < constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
    replication_pad3d _pad_circular _pad_enum nn.ZeroPad2d nn.ConstantPad2d nn.ReflectionPad2d
pad_backward < reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward
    replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward
diag < diagflat
diag_embed < trace_backward
pixel_shuffle < pixel_unshuffle nn.PixelShuffle nn.PixelUnshuffle
channel_shuffle < native_channel_shuffle nn.ChannelShuffle
im2col < torch.nn.functional.unfold nn.Unfold
col2im < torch.nn.functional.fold fold nn.Fold
slice_scatter < slice_inverse
fftshift < fft_fftshift fft_ifftshift
to_dense < _to_dense
to_sparse < _to_sparse to_sparse_csr _to_sparse_csr coalesce _coalesce sparse_mask sparse_coo_tensor
    _sparse_coo_tensor_unsafe _sparse_coo_tensor_with_dims_and_tensors sparse_csr_tensor
nested < _nested_tensor_from_tensor_list _nested_tensor_from_mask nested_to_padded_tensor to_padded_tensor
    _nested_from_padded _nested_from_padded_tensor _jagged_to_padded_dense_forward _padded_dense_to_jagged_forward
pack_sequence < _pack_padded_sequence _pad_packed_sequence pad_sequence _pack_padded_sequence_backward
# -- ranks that communicate ----------------------------------------------------------------------------------
all_reduce brings:input|tensors|inputs|self < _c10d_functional.all_reduce _c10d_functional.all_reduce_coalesced
    c10d.allreduce c10d.allreduce_coalesced c10d_functional.all_reduce c10d_functional.all_reduce_coalesced
reduce_scatter brings:input|inputs|input_tensor|input_tensors gets:out|output_tensor|outputs|output_tensors
    < _c10d_functional.reduce_scatter_tensor _c10d_functional.reduce_scatter_tensor_out
    _c10d_functional.reduce_scatter_tensor_coalesced _c10d_functional_autograd.reduce_scatter_tensor
    c10d._reduce_scatter_base c10d.reduce_scatter c10d.reduce_scatter_tensor_coalesced
    c10d_functional.reduce_scatter_tensor c10d_functional.reduce_scatter_tensor_coalesced
all_gather brings:input|inputs|input_tensor|input_tensors|input_list|shard
    gets:out|output_tensor|outputs|output_tensors|output_lists
    < _c10d_functional.all_gather_into_tensor _c10d_functional.all_gather_into_tensor_out
    _c10d_functional.all_gather_into_tensor_coalesced _c10d_functional_autograd.all_gather_into_tensor
    c10d._allgather_base c10d.allgather c10d.allgather_coalesced c10d.allgather_into_tensor_coalesced
    c10d_functional.all_gather_into_tensor c10d_functional.all_gather_into_tensor_coalesced
all_to_all brings:input|input_tensors gets:output|output_tensors splits:input_split_sizes
    < _c10d_functional.all_to_all_single _c10d_functional_autograd.all_to_all_single c10d.alltoall_base c10d.alltoall
    c10d_functional.all_to_all_single _dtensor.shard_dim_alltoall
broadcast_ranks brings:input|tensors|self < _c10d_functional.broadcast c10d.broadcast c10d_functional.broadcast
reduce_ranks brings:tensors < c10d.reduce
gather_ranks brings:input_tensors gets:output_tensors < c10d.gather
scatter_ranks brings:output_tensors < c10d.scatter
send brings:tensors|tensor|self < c10d.send _c10d_functional.isend c10d_functional.isend
receive brings:tensors|tensor|self < c10d.recv c10d.recv_any_source _c10d_functional.irecv c10d_functional.irecv
send_receive tensors ops:op_list < _c10d_functional.batch_p2p_ops c10d_functional.batch_p2p_ops
barrier < c10d.barrier c10d.monitored_barrier
copy/into from:all_gather_inputs|all_gather_output|tensors < fsdp.all_gather_copy_in fsdp.chunk_cat
copy/into from:all_gather_output < fsdp.split_with_sizes_copy
overwrite self:tensor src:data < fsdp.copy
questions < _dtensor.mesh_get_process_group
assert < c10d.check_for_nan
wait < _c10d_functional.wait_tensor c10d_functional.wait_tensor
# -- views, and what computes nothing ------------------------------------------------------------------------
view < _unsafe_view view_as _reshape_alias reshape_as _mkldnn_reshape _nested_view_from_buffer collapse
    as_strided_view nn.Flatten nn.Unflatten nn.Identity split_dim collapse_view view_of view_element_type
    _nested_view_from_jagged _nested_get_values _nested_get_offsets _nested_get_lengths
    _c10d_functional._wrap_tensor_autograd _c10d_functional_autograd._wrap_tensor_autograd
squeeze < atleast_1d atleast_2d atleast_3d
transpose < swapaxes swapdims adjoint mT mH numpy_T T H matrix_H moveaxis
expand < expand_as broadcast_to broadcast_tensors broadcast_in_dim
split < split_with_sizes unsafe_split unsafe_split_with_sizes tensor_split hsplit vsplit dsplit
chunk < unsafe_chunk
detach < data requires_grad _fw_primal _make_dual _unpack_dual
alias < positive retain_grad record_stream
conj < _conj
neg_view < _neg_view
sparse_parts < _indices _values indices values crow_indices col_indices _nnz _dimI _dimV sparse_dim dense_dim
    is_coalesced
questions < sym_size sym_numel sym_stride sym_storage_offset is_same_size is_floating_point is_complex is_pinned
    result_type can_cast dtype device layout shape is_cuda get_device element_size _version prim.dtype prim.device
    is_contiguous sym_is_contiguous len __len__ __contains__ __not__ __is__ __isnot__ not_ is_ is_not nbytes
    prim.layout prim.unchecked_cast prim.ListConstruct prim.TupleConstruct prim.ListUnpack prim.TupleUnpack
    prim.Constant prim.GetAttr prim.NumToTensor prim.RaiseException prim.Uninitialized prim.min prim.max
    prim.is_cuda prim.TupleIndex prim.DictConstruct prim.isinstance prim.data prim.shape prim.ndim
    prim.requires_grad
item < _local_scalar_dense Int Float Bool ScalarImplicit IntImplicit FloatImplicit tolist numpy
questions < _has_same_storage_numel _nested_tensor_size _nested_tensor_strides _nested_tensor_storage_offsets
    _nested_get_min_seqlen _nested_get_max_seqlen _nested_get_ragged_idx _nested_get_jagged_dummy
    _nested_tensor_from_mask_left_aligned _nested_compute_contiguous_strides_offsets
questions < int_repr is_conj is_neg is_leaf is_inference is_signed is_set_to is_non_overlapping_and_dense
    is_scripting is_strides_like_format q_scale q_zero_point q_per_channel_scales q_per_channel_zero_points qscheme
    get_autocast_dtype is_autocast_enabled is_autocast_cpu_enabled is_grad_enabled promote_types __getitem__
    __derive_index __range_length append list dict keys values_of items get pop str join maximum_value minimum_value
    _get_tracing_state _fused_sdp_choice
assert < _assert_async _functional_assert_async _assert_scalar _assert_tensor_metadata sym_constrain_range
    sym_constrain_range_for_size _functional_sym_constrain_range warn format _linalg_check_errors _print
    _make_dep_token _assert sym_constrain _set_grad_enabled set_grad_enabled
resize < resize_as
"""

_COMPUTES = ("aten", "prims", "torch", "Tensor", "operator", "F", "math", "_operator", "builtins")


def spelled(op: str) -> Spelled:
    head, *rest = op.split(".")
    if not rest:
        return Spelled((op,))
    if head in ("torch", "Tensor", "operator", "F", "math", "_operator", "builtins", "nn"):
        whole, name, overload = op, rest[-1], ""
    else:
        whole, name, overload = f"{head}.{rest[0]}", rest[0], rest[1] if len(rest) > 1 else ""
    known = head in _COMPUTES
    names = [whole, *([name] if known else [])]
    in_place = lists = False
    # `add_`, but not `__and__`; `_fused_adam_` and c10d's are in place too
    if name.endswith("_") and not name.endswith("__"):
        in_place = True
        names += [whole[:-1], *([name[:-1]] if known else [])]
    plain = name.rstrip("_") if in_place else name
    if known and plain.startswith("_foreach_"):
        lists = True
        names.append(plain.removeprefix("_foreach_"))
    if known and plain.endswith("_copy"):
        names.append("clone")  # `view_copy`, `expand_copy`: a view, but copied
    return Spelled(tuple(names), in_place, lists, overload == "out" or overload.endswith("_out"))


FRAMEWORK = Framework(TABLE, "PyTorch", spelled)
