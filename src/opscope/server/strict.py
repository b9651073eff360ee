"""HTTP as its standard writes it: what Python's server forgives, a proxy in front of it may read in another way."""

from __future__ import annotations

import re
from email.message import Message
from io import BufferedIOBase

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class StrictLines:
    """The lines of a request. `is_bad` once a header did not end in CR LF, or went on with the one before."""

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
        if self.in_headers and line and (not line.endswith(b"\r\n") or line[:1] in b" \t" or b"\r" in line[:-2]):
            self.is_bad = True
        return line


def is_ambiguous(headers: Message) -> bool:
    """A name with a blank in it, or a header that decides where a request ends, twice."""
    names = headers.keys()
    return any(_NAME.fullmatch(name) is None for name in names) or any(
        len(headers.get_all(name, [])) > 1 for name in ("Content-Length", "Transfer-Encoding")
    )
