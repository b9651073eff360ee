"""Compressed files, unpacked as they are read: in memory where that is little, else in a file without a name.

What comes out is bounded by what goes in, so that a small file cannot fill the disk, and is never in memory as a whole.
"""

from __future__ import annotations

import gzip
import importlib
import io
import shutil
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, BinaryIO, cast

from opscope.errors import BadInput

_IN_MEMORY = 32 << 20  # bytes; what is longer goes to the disk
_LARGEST = 64 << 30
_PIECE = 1 << 20
# Honest traces reach about 30.
_MOST_TIMES = 200
_ALWAYS_ALLOWED = 64 << 20
_ROOM_LEFT = 256 << 20  # on the disk

GZIP = b"\x1f\x8b"
ZSTANDARD = b"\x28\xb5\x2f\xfd"


class Spooled:
    """Bytes in a file without a name, which is gone when nobody holds this any more, however the process ends."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._lock = threading.Lock()
        self.size = size

    def open(self) -> BinaryIO:
        """A reader with a position of its own."""
        return cast("BinaryIO", io.BufferedReader(_Reader(self), 1 << 16))

    def read_at(self, at: int, size: int) -> bytes:
        with self._lock:
            self._file.seek(at)
            return self._file.read(size)


class _Reader(io.RawIOBase):
    def __init__(self, spooled: Spooled) -> None:
        self._spooled = spooled
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        at = offset + (0, self._at, self._spooled.size)[whence]
        if at < 0:
            raise ValueError("a place before the beginning")
        self._at = at
        return at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = self._spooled.read_at(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def spool(name: str, pieces: Iterable[bytes], packed: int | None = None) -> bytes | Spooled:
    """All pieces one after the other. `packed`: the size of what they come from, which bounds them."""
    most = _LARGEST if packed is None else min(_LARGEST, _ALWAYS_ALLOWED + _MOST_TIMES * packed)
    file = tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="opscope.")  # noqa: SIM115 — it goes with its reader
    size, checked = 0, 0
    try:
        for piece in pieces:
            size += len(piece)
            if size > most:
                raise BadInput(_too_large(name, most, packed))
            if size - checked > _IN_MEMORY:
                _check_room(name, size)
                checked = size
            file.write(piece)
        if size <= _IN_MEMORY:
            file.seek(0)
            return file.read()
        return Spooled(cast("IO[bytes]", file), size)
    except OSError as error:
        raise BadInput(f"{name}: cannot be unpacked into {tempfile.gettempdir()} ({error.strerror or error})") from None


def _too_large(name: str, most: int, packed: int | None) -> str:
    if packed is None or most == _LARGEST:
        return f"{name}: more than {most:,} bytes: refused"
    return f"{name}: more than {most:,} bytes when unpacked, {most // max(packed, 1):,} times the file: refused"


def _check_room(name: str, size: int) -> None:
    folder = tempfile.gettempdir()
    if shutil.disk_usage(folder).free < _ROOM_LEFT:
        raise BadInput(
            f"{name}: more than {size:,} bytes when unpacked, for which {folder} has no room: set TMPDIR to a folder "
            "that has, or unpack it there"
        )


# -- kinds of compression ---------------------------------------------------------------------------


def unpacking(head: bytes) -> Callable[[str, BinaryIO], Iterator[bytes]] | None:
    """What unpacks a file that begins so; None where it is not compressed."""
    return next((unpack for magic, unpack in _KINDS.items() if head.startswith(magic)), None)


def pieces_of(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _gzip(name: str, file: BinaryIO) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield from pieces_of(cast("IO[bytes]", unpacked))
    except (OSError, EOFError, zlib.error):
        raise BadInput(f"{name}: a gzip file that is cut off or damaged: copy it again") from None


def _zstandard(name: str, file: BinaryIO) -> Iterator[bytes]:
    try:
        try:
            yield from pieces_of(importlib.import_module("compression.zstd").ZstdFile(file))  # Python 3.14
        except ImportError:
            yield from _frames(_package(name), file)
    except BadInput:
        raise
    except Exception as error:  # each package has errors of its own
        if isinstance(error, EOFError) or type(error).__name__ == "ZstdError":
            raise BadInput(f"{name}: a Zstandard file that is cut off or damaged: copy it again") from None
        raise


def _package(name: str) -> Any:
    try:
        return importlib.import_module("zstandard")
    except ImportError:
        raise BadInput(
            f"{name}: a Zstandard file: install what reads it (pip install 'opscope[zstd]') "
            "or unpack it first (zstd -d)"
        ) from None


# A block of 4 bytes can stand for 128 KiB: what is fed at a time bounds what comes out at a time.
_FED = 1 << 10
_WINDOW = 1 << 27  # that much memory a frame may ask for; `zstd --long` needs no more


def _frames(package: Any, file: BinaryIO) -> Iterator[bytes]:
    """The frames of a file, one after the other."""
    left = b""
    while data := left or file.read(_FED):
        frame = package.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
        while not frame.eof:
            yield frame.decompress(data)
            if not frame.eof:
                data = file.read(_FED)
                if not data:
                    raise EOFError
        left = frame.unused_data


_KINDS: dict[bytes, Callable[[str, BinaryIO], Iterator[bytes]]] = {GZIP: _gzip, ZSTANDARD: _zstandard}
