"""What is different between two graphs: which operators are the same, changed, fused, split, rewritten, moved."""

from .changes import CLASSES, Change, Diff
from .compare import compare
from .stages import annotated, stage_diffs

__all__ = ["CLASSES", "Change", "Diff", "annotated", "compare", "stage_diffs"]
