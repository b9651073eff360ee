"""The search language of `opscope find` and of the page: what is asked, and which operators answer it."""

from .find import find
from .query import FIELDS, BadQuery, parse

__all__ = ["FIELDS", "BadQuery", "find", "parse"]
