"""Writing files so that a failure leaves what was there before."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from opscope.errors import OpscopeError


@contextmanager
def replacing(path: str | Path) -> Generator[BinaryIO]:
    """A file to write to, made beside `path` and moved into its place when all went well."""
    path = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent or ".")
    except OSError as error:
        raise OpscopeError(f"{path}: cannot write here ({error.strerror})") from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp gives 0600, which others could not read
        os.replace(temporary, path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OpscopeError(f"{path}: cannot write here ({error.strerror})") from None
        raise


@contextmanager
def replacing_folder(path: str | Path) -> Generator[Path]:
    """A folder to fill, moved to `path` when all went well. A folder that is there must be one we wrote."""
    path = Path(path)
    marker = ".opscope-folder"
    if path.exists() and not (path / marker).is_file() and (not path.is_dir() or any(path.iterdir())):
        raise OpscopeError(f"{path}: exists and was not written by opscope; name another folder or remove it first")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise OpscopeError(f"{path}: cannot write here ({error.strerror})") from None
    try:
        yield temporary
        (temporary / marker).touch()
        temporary.chmod(0o777 & ~_umask())
        if path.exists():
            shutil.rmtree(path)
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
