"""What is different between two graphs: which operators are the same, changed, fused, split, rewritten, moved."""

from .changes import Change, Diff
from .compare import compare
from .stages import stage_diffs, with_changes

__all__ = ["Change", "Diff", "compare", "stage_diffs", "with_changes"]
