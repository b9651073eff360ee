"""The errors that opscope raises on purpose: one clear line each, meant for the person who reads it."""

from __future__ import annotations

_LONGEST = 1000


def one_line(text: str, longest: int = _LONGEST) -> str:
    """Text on one line that no terminal interprets, short enough to read: names in a file may hold anything."""
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


def of_file(error: BadInput, name: str, what: str = "") -> BadInput:
    """The same error with the file in front, and `what` it is not, unless that is said already."""
    text = str(error)
    if text.startswith((f"{one_line(name)}: ", f"{one_line(name)}/")):
        return error
    return BadInput(": ".join(part for part in (name, what, text) if part))


def lacks_memory(error: BaseException) -> bool:
    """Whether something failed because there was no memory, or no address space, for it: a library too needs some."""
    return isinstance(error, MemoryError) or (isinstance(error, ImportError) and "failed to map segment" in str(error))
