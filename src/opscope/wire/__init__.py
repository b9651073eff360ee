"""Capture <-> .opscope file."""

from .file import VERSION, read, write

__all__ = ["VERSION", "read", "write"]
