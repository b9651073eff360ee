"""The zip files that PyTorch writes: one folder inside, named after the file, with everything in it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

from opscope.errors import BadInput, of_file
from opscope.readers.source import Source
from opscope.wire.archive import Archive, open_zip

Result = TypeVar("Result")

_LARGEST = 1 << 30  # of what is parsed; weights are not, and read only on request


def member_names(source: Source) -> list[str]:
    """The names in a zip file; none if it is not one, or damaged."""
    if not source.head.startswith(b"PK\x03\x04"):
        return []
    try:
        with source.open() as file:
            return open_zip(file).namelist()
    except Exception:  # zipfile meets damage with many kinds; whoever opens it for reading says so
        return []


class TorchArchive:
    """The members below the one folder, by their path in it."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.prefix = _prefix(archive.names)
        self.names = [name[len(self.prefix) :] for name in archive.names if name.startswith(self.prefix)]

    @staticmethod
    @contextmanager
    def of(source: Source) -> Generator[TorchArchive]:
        with source.open() as file:
            yield TorchArchive(Archive(file, source.size))

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self._archive.names

    def size(self, name: str) -> int:
        return self._archive.size(self.prefix + name)

    def read(self, name: str, largest: int = _LARGEST) -> bytes:
        if name in self and self.size(name) > largest:
            raise BadInput(f"member {name} claims {self.size(name):,} bytes; {largest:,} are the most")
        return self._archive.read(self.prefix + name)

    def pieces(self, name: str) -> Iterator[bytes]:
        """A member of any size, bit by bit."""
        return self._archive.pieces(self.prefix + name)

    def text(self, name: str) -> str:
        return self.read(name).decode("utf-8", "replace")


def _prefix(names: list[str]) -> str:
    """`resnet18/`, or nothing where members lie at the root."""
    first = names[0].partition("/")[0] + "/" if names and "/" in names[0] else ""
    return first if first and all(name.startswith(first) for name in names) else ""


def reading(source: Source, what: str, work: Callable[[], Result]) -> Result:
    """Run `work`; what is wrong with the file becomes one line that names it."""
    # Parsing makes hundreds of thousands of objects and no rings: the collector would only walk over them, for two
    # fifths of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        return work()
    except BadInput as error:
        raise of_file(error, source.name, what) from None
    except RecursionError:
        raise BadInput(f"{source.name}: {what}: it is nested too deep to be honest") from None
    finally:
        if collects:
            gc.enable()
