"""HTTP as its standard writes it: what Python's server forgives, a proxy in front of it may read in another way."""

from __future__ import annotations

import re
from email.message import Message
from io import BufferedIOBase

_HEADER = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*)?\r\n")


class StrictLines:
    """The lines of a request. `is_bad` once one of its headers is not `Name: value` and CR LF."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self.in_headers = False
        self.is_bad = False
        self.read, self.close = file.read, file.close

    @property
    def closed(self) -> bool:
        return self._file.closed

    def readline(self, size: int = -1) -> bytes:
        line = self._file.readline(size)
        if self.in_headers and line and _HEADER.fullmatch(line) is None:
            self.is_bad = True
        return line


def is_ambiguous(headers: Message) -> bool:
    """A header that decides where a request ends, twice."""
    return any(len(headers.get_all(name, [])) > 1 for name in ("Content-Length", "Transfer-Encoding"))
