"""Symbolic sizes as people write them: `Mul(Integer(2), Symbol('s0', integer=True))` is `2*s0`.

Newer files hold sympy's constructor calls, older ones its printed form, which is kept.
"""

from __future__ import annotations

import ast
from functools import lru_cache

_LONGEST = 2000  # longer ones stay as they are; they are not readable
_INFIX = {
    "Add": (" + ", 1), "Mul": ("*", 2), "FloorDiv": ("//", 2), "CleanDiv": ("//", 2), "PythonMod": (" % ", 2),
    "Mod": (" % ", 2), "Pow": ("**", 3), "PowByNatural": ("**", 3), "And": (" & ", 0), "Or": (" | ", 0),
    "IntTrueDiv": ("/", 2), "FloatTrueDiv": ("/", 2), "GreaterThan": (" >= ", 0), "LessThan": (" <= ", 0),
    "StrictGreaterThan": (" > ", 0), "StrictLessThan": (" < ", 0), "Equality": (" == ", 0), "Unequality": (" != ", 0),
}  # fmt: skip


@lru_cache(maxsize=10_000)
def readable(expression: str) -> str:
    """
    >>> readable("Add(Symbol('u0', integer=True), Integer(1))")
    'u0 + 1'
    """
    if "(" not in expression or len(expression) > _LONGEST:
        return expression
    try:
        return _text(ast.parse(expression, mode="eval").body)[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError, _NotSympy):
        return expression


class _NotSympy(Exception):
    """Something that sympy's constructor form does not have."""


def _text(node: ast.expr) -> tuple[str, int]:
    """The text, and how strongly its outermost operator binds."""
    if isinstance(node, ast.Constant):
        return str(node.value), 9
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"-{_text(node.operand)[0]}", 2
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise _NotSympy
    name = node.func.id
    if name in ("Symbol", "Integer", "Float", "Dummy"):
        return _text(node.args[0]) if node.args else (name, 9)
    if name == "Rational" and len(node.args) == 2:
        return "/".join(_text(arg)[0] for arg in node.args), 2
    parts = [_text(arg) for arg in node.args]
    if name in _INFIX and len(parts) > 1:
        sign, strength = _INFIX[name]
        texts = [text if inner > strength else f"({text})" for text, inner in parts]
        return sign.join(texts).replace(" + -", " - "), strength
    return f"{name}({', '.join(text for text, _ in parts)})", 9
