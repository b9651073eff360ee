"""What people do with PyTorch besides calling a model, by subject."""

import importlib

from .common import SCENARIOS

__all__ = ["SCENARIOS"]

SUBJECTS = ("training", "gradients", "functions", "modules", "kinds", "programs", "threads", "operators")
for subject in SUBJECTS:
    importlib.import_module(f"{__name__}.{subject}")
