"""The errors that opscope raises on purpose: one clear line each, meant for the person who reads it."""

from __future__ import annotations

_LONGEST = 1000


def one_line(text: str, longest: int = _LONGEST) -> str:
    """Text on one line that no terminal interprets and nobody scrolls through: names in a file may hold anything."""
    words = " ".join(text.split())
    if len(words) > longest:  # the beginning says where, the end what to do
        words = f"{words[: longest * 2 // 3]} … {words[-(longest // 4) :]}"
    return "".join(c if c.isprintable() else "\ufffd" for c in words)


class OpscopeError(Exception):
    """Something a user can act on. The command line prints its text and exits with 2."""


class BadInput(OpscopeError):
    """A file or object that cannot be read: the text says what was found, where, and what to do."""

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))

    def named(self, name: str, what: str = "") -> BadInput:
        """The same with the file in front, and `what` it is not, unless that is said already."""
        text = str(self)
        if text.startswith(f"{one_line(name)}: "):
            return self
        return BadInput(": ".join(part for part in (name, what, text) if part))
