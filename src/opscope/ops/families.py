"""What kinds of operators are about: a kind has the family of its formula's module, and a few are named here."""

from __future__ import annotations

from functools import cache

from opscope.ir.enumerations import FAMILIES

from .kinds import RULES

_BY_FORMULA = {"optimizers": "optimizer", "communication": "movement", "estimates": "other", "pointwise": "elementwise"}
_NAMED = {
    "activation": (
        "relu relu6 leaky_relu prelu rrelu elu celu selu gelu silu mish sigmoid log_sigmoid tanh softplus softsign"
        " hardtanh hardswish hardsigmoid hardshrink softshrink tanhshrink threshold glu softmax log_softmax softmin"
        " masked_softmax"
    ),
    "reduction": (
        "sum prod mean max min amax amin max_dim min_dim argmax argmin any all nansum nanmean count_nonzero trace"
        " cumsum cumprod cummax cummin vector_norm aminmax squared_sum logcumsumexp var std logsumexp var_mean"
        " std_mean sort"
        " topk median kthvalue mode"
    ),
    "loss": (
        "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy"
        " binary_cross_entropy_with_logits gaussian_nll_loss poisson_nll_loss soft_margin_loss hinge_embedding_loss"
        " ctc_loss multi_margin_loss multilabel_margin_loss triplet_loss"
    ),
    "random": "random dropout multinomial",
}
_BY_KIND = {kind: family for family, kinds in _NAMED.items() for kind in kinds.split()}


@cache
def family_of(kind: str) -> int:
    """Its place in FAMILIES; of a gradient, that of what it is the gradient of."""
    plain = kind.removesuffix("_backward")
    rule = RULES.get(kind) or RULES.get(plain)
    module = rule.__module__.rpartition(".")[2] if rule is not None else "other"
    family = _BY_KIND.get(plain) or _BY_FORMULA.get(module, module)
    return FAMILIES.index(family) if family in FAMILIES else FAMILIES.index("other")
