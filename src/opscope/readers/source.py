"""What a reader is given: the bytes of one file, or a folder, with a name for messages."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from opscope.errors import BadInput

HEAD = 4096


@dataclass(frozen=True)
class Options:
    """What a user may say about how to read."""

    profile: Path | None = None


@dataclass(frozen=True)
class Source:
    """A file, a folder, or bytes without a file (then `path` is None)."""

    name: str
    path: Path | None = None
    data: bytes | None = field(default=None, repr=False)

    @staticmethod
    def of(path: str | os.PathLike[str]) -> Source:
        """A path that exists and can be read."""
        path = Path(path)
        name = str(path)
        try:
            if not path.is_dir():
                if not path.is_file() and path.exists():
                    raise BadInput(f"{name}: neither a file nor a folder")
                with path.open("rb"):
                    pass
        except FileNotFoundError:
            raise BadInput(f"{name}: no such file or folder") from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise BadInput(f"{name}: cannot be read ({reason})") from None
        return Source(name, path)

    @property
    def is_folder(self) -> bool:
        return self.data is None and self.path is not None and self.path.is_dir()

    @cached_property
    def size(self) -> int:
        if self.data is not None:
            return len(self.data)
        return 0 if self.is_folder or self.path is None else self.path.stat().st_size

    @cached_property
    def head(self) -> bytes:
        """The first bytes, by which formats are told apart."""
        if self.is_folder:
            return b""
        with self.open() as file:
            return file.read(HEAD)

    def open(self) -> BinaryIO:
        if self.data is not None or self.path is None:
            return io.BytesIO(self.data or b"")
        return self.path.open("rb")

    def read(self) -> bytes:
        if self.data is not None:
            return self.data
        with self.open() as file:
            return file.read()
