"""Whether the mask of an attention is causal: no query sees a key that comes after it."""

from __future__ import annotations

from typing import Any

_HIDDEN = -1e4  # what is added to a score that should vanish: minus infinity, or the least number of the dtype


def shown_by(torch: Any, mask: Any) -> int | None:
    """How many scores of one head a causal kernel computes; 0 for a mask that is not causal, None where it has no
    numbers.

    What else a mask hides (padding, what is far away) or adds (a bias) does not change that count. The places of
    queries and keys may be counted from the first of each, or from the last, as with a cache of keys.
    """
    if type(mask) not in (torch.Tensor, torch.nn.Parameter) or mask.is_meta or mask.dim() < 2:
        return None
    queries, keys = mask.shape[-2:]
    if not mask.numel() or queries == 1:
        return 0
    for dim in range(mask.dim() - 2):  # of a mask for all heads, one
        if mask.stride(dim) == 0:
            mask = mask.narrow(dim, 0, 1)
    shows = mask if mask.dtype == torch.bool else mask > _HIDDEN
    ones = torch.ones(queries, keys, dtype=torch.bool, device=mask.device)
    for diagonal in sorted({0, keys - queries}):
        causal = ones.tril(diagonal)
        if not bool((shows & ~causal).any()):
            return int(causal.sum())
    return 0
