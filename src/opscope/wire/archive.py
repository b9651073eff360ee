"""An untrusted zip file, opened with care: sizes and names are checked before anything is read."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import BinaryIO, cast

from opscope.errors import BadInput

# Deflate can blow one byte up to a thousand. Real captures reach about 10; this leaves room and keeps
# the memory that a hostile file can ask for in proportion to its size.
_MOST_TIMES = 200
_ALWAYS_ALLOWED = 64 << 20
_LONGEST_DIRECTORY = 16 << 20  # of the names and places of members, which take twenty times as much in memory


class ShortReads:
    """A file whose single reads are short while the list of its members is read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _LONGEST_DIRECTORY:
            raise BadInput(f"the list of its members takes {size:,} bytes: refused")
        return self._file.read(size if size >= 0 else _LONGEST_DIRECTORY)


def open_zip(file: BinaryIO) -> zipfile.ZipFile:
    """A zip file of which only the list of members was read, if that is not too long."""
    opened = zipfile.ZipFile(cast("BinaryIO", ShortReads(file)))
    opened.fp = file
    return opened


class Archive:
    """The members of a zip file by name."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        try:
            self._zip = open_zip(file)
            infos = [info for info in self._zip.infolist() if not info.is_dir()]
        except BadInput:
            raise
        except Exception as error:  # zipfile meets damage with many kinds: BadZipFile, IndexError, struct.error …
            raise BadInput(f"not a whole zip file ({error}); it may have been cut off: copy it again") from None
        self.names = [info.filename for info in infos]
        total = sum(info.file_size for info in infos)
        if total > _ALWAYS_ALLOWED + _MOST_TIMES * size:
            raise BadInput(f"its members claim {total:,} bytes, {total // max(size, 1)} times the file: refused")
        if len(set(self.names)) != len(self.names):
            raise BadInput("two members have the same name: refused")
        for info in infos:
            path = PurePosixPath(info.filename)
            if path.is_absolute() or ".." in path.parts or "\\" in info.filename:
                raise BadInput(f"member {info.filename!r} points outside the file: refused")
            if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise BadInput(f"member {info.filename!r} is encrypted or compressed in a way opscope does not write")

    def size(self, name: str) -> int:
        """What a member claims to hold."""
        return self._zip.getinfo(name).file_size

    def read(self, name: str) -> bytes:
        """All of a member."""
        try:
            return self._zip.read(name)
        except Exception as error:
            raise _unreadable(name, error) from None

    def pieces(self, name: str, size: int = 1 << 20) -> Iterator[bytes]:
        """A member bit by bit."""
        try:
            with self._zip.open(name) as member:
                while piece := member.read(size):
                    yield piece
        except Exception as error:
            raise _unreadable(name, error) from None


def _unreadable(name: str, error: Exception) -> BadInput:
    if isinstance(error, KeyError):
        return BadInput(f"member {name} is missing; the file is damaged: export it again")
    # zipfile meets damage with many kinds; a wrong checksum is a BadZipFile
    return BadInput(f"member {name} is damaged ({error}); copy or export the file again")
