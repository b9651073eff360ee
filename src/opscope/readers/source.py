"""What a reader is given: the bytes of one file, or a folder, with a name for messages."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from opscope.errors import BadInput

from .packed import Spooled, pieces_of, spool, unpacking

HEAD = 4096
STANDARD_INPUT = "-"
LARGEST = 1 << 30  # bytes that are read as a whole; weights beside a graph are not
_LONGEST_LINE = 1 << 20
_KINDS = {
    stat.S_IFDIR: "a folder, not a file",
    stat.S_IFIFO: "a pipe: write what comes out of it to a file first, or give it as standard input (-)",
    stat.S_IFSOCK: "a socket, not a file",
    stat.S_IFCHR: "a device, not a file",
    stat.S_IFBLK: "a device, not a file",
}


@dataclass(frozen=True)
class Options:
    """What a user may say about how to read."""

    profile: Path | None = None
    visit: Callable[[Sequence[Any]], None] | None = None
    """Called with the tensors of a checkpoint, while their numbers can be read."""
    weights: bool = False  # statistics of the weights in the file, see `ir.tally`: all of them are read


@dataclass(frozen=True)
class Source:
    """A file, a folder, or bytes, in memory or unpacked to the disk; then `path` is the file they come from, if any."""

    name: str
    path: Path | None = None
    data: bytes | None = field(default=None, repr=False)
    spooled: Spooled | None = field(default=None, repr=False)

    @staticmethod
    def of(path: str | os.PathLike[str]) -> Source:
        """A path that exists and can be read, or "-", the standard input."""
        path = Path(path)
        if str(path) == STANDARD_INPUT:
            return _standard_input()
        source = Source(str(path), path)
        try:
            if not source.is_folder:
                source.open().close()
        except ValueError as error:  # a zero byte in the name
            raise BadInput(f"{source.name}: cannot be read ({error})") from None
        return source

    @property
    def is_folder(self) -> bool:
        return self.data is None and self.spooled is None and self.path is not None and self.path.is_dir()

    @cached_property
    def size(self) -> int:
        """Of a folder, that of the files right in it."""
        if self.data is not None:
            return len(self.data)
        if self.spooled is not None:
            return self.spooled.size
        if self.path is None:
            return 0
        try:
            if self.is_folder:
                with os.scandir(self.path) as entries:
                    return sum(_size(entry) for entry in entries)
            return self.path.stat().st_size
        except OSError as error:
            raise _unreadable(self.name, error) from None

    @cached_property
    def head(self) -> bytes:
        """The first bytes, by which formats are recognised. What has no size, as in /proc, has none."""
        if self.is_folder or not self.size:
            return b""
        with self.open() as file:
            return file.read(HEAD)

    def open(self) -> BinaryIO:
        """The file, if it is one: whoever opens a pipe waits for its other end, and a device for ever."""
        if self.spooled is not None:
            return self.spooled.open()
        if self.data is not None or self.path is None:
            return io.BytesIO(self.data or b"")
        try:
            _refuse_special(self.name, self.path.stat().st_mode)
            handle = os.open(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
            file = os.fdopen(handle, "rb")
            _refuse_special(self.name, os.fstat(handle).st_mode)  # it may have become another one
        except OSError as error:
            raise _unreadable(self.name, error) from None
        return file

    def read(self, most: int = LARGEST) -> bytes:
        """All of it, where that is not more than `most`: memory is asked for only then."""
        self._check_size(most)
        if self.data is not None:
            return self.data
        try:
            with self.open() as file:
                data = file.read(self.size)
        except OSError as error:
            raise _unreadable(self.name, error) from None
        if len(data) < self.size:
            raise BadInput(f"{self.name}: it became shorter while it was read: read it again when it is complete")
        return data

    def unpacked(self) -> Source:
        """What a compressed file holds, under the name of the file; any other source as it is."""
        unpack = unpacking(self.head)
        if unpack is None:
            return self
        with self.open() as file:
            return self.holding(spool(self.name, unpack(self.name, file), self.size))

    def holding(self, content: bytes | Spooled) -> Source:
        """A source with this content and the same name."""
        if isinstance(content, bytes):
            return Source(self.name, self.path, data=content)
        return Source(self.name, self.path, spooled=content)

    def lines(self, most: int = LARGEST) -> Iterator[str]:
        """The lines of a text, one after the other: it is never in memory as a whole."""
        self._check_size(most)
        with self.open() as raw, io.TextIOWrapper(raw, "utf-8", errors="replace") as text:
            number = 0
            while line := text.readline(_LONGEST_LINE):
                number += 1
                if len(line) == _LONGEST_LINE:
                    raise BadInput(f"{self.name}: line {number:,} is longer than {_LONGEST_LINE:,} characters: refused")
                yield line.rstrip("\n")

    def only(self, *patterns: str) -> Source | None:
        """Of a folder, the one file right in it that is called so, by the first pattern that any is called by."""
        if not self.is_folder or self.path is None:
            return None
        for pattern in patterns:
            found = sorted(path for path in self.path.glob(pattern) if path.is_file())
            if found:
                return Source.of(found[0]) if len(found) == 1 else None
        return None

    def _check_size(self, most: int) -> None:
        if self.size > most:
            raise BadInput(f"{self.name}: {self.size:,} bytes; {most:,} are the most for a file of this kind")


def _standard_input() -> Source:
    name = "standard input"
    stream = sys.stdin
    if stream is None or stream.closed:
        raise BadInput(f"{name}: it is closed")
    if stream.isatty():
        raise BadInput(f"{name}: it is a terminal: let a file or another program give it (opscope info - < FILE)")
    try:
        return Source(name).holding(spool(name, pieces_of(stream.buffer)))
    except OSError as error:
        raise _unreadable(name, error) from None


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size if entry.is_file() else 0
    except OSError:  # a link in a circle, or gone
        return 0


def _refuse_special(name: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise BadInput(f"{name}: {_KINDS.get(stat.S_IFMT(mode), 'neither a file nor a folder')}")


def _unreadable(name: str, error: OSError) -> BadInput:
    if isinstance(error, FileNotFoundError):
        return BadInput(f"{name}: no such file or folder")
    return BadInput(f"{name}: cannot be read ({error.strerror or error})")
