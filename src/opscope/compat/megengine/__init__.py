"""MegEngine's tools for statistics and graphs, with the same calls, results and field names.

from opscope.compat.megengine import module_stats, visualize
"""

from __future__ import annotations

from .module_stats import module_stats, register_flops, register_hook_module
from .visualize import visualize

__all__ = ["module_stats", "register_flops", "register_hook_module", "visualize"]
