"""The .opscope file as one more readable format."""

from __future__ import annotations

from opscope.errors import BadInput
from opscope.ir import Capture
from opscope.wire import file

from .source import Options, Source

NAME = "opscope"


def match(source: Source) -> bool:
    """A zip file whose first member is our manifest."""
    head = source.head
    return head.startswith(b"PK\x03\x04") and head[30 : 30 + len(file.MANIFEST)] == file.MANIFEST.encode()


def read(source: Source, options: Options) -> Capture:
    try:
        with source.open() as opened:
            return file.read(opened, source.size)
    except BadInput as error:
        raise error.named(source.name) from None
