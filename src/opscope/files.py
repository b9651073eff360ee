"""Writing files so that a failure leaves what was there before, and a killed process nothing that stays.

What is being written has a name of its own, beside its target, and is locked while its writer lives. Whoever writes to
the same folder next removes what is not locked any more.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from opscope.errors import OpscopeError

if sys.platform != "win32":
    import fcntl

_PART = ".opscope-part"
_BEFORE = ".opscope-before"
_MARKER = ".opscope-folder"
_LONGEST_NAME = 40  # of the target, in the name of what is being written


@contextmanager
def replacing(path: str | Path) -> Generator[BinaryIO]:
    """A file to write to, made beside `path` and moved into its place when all went well. A link stays one."""
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            raise OpscopeError(f"{path}: is there and is no file; name another")
        if path.is_symlink():
            path = Path(os.path.realpath(path))
            if path.is_symlink():
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        _sweep(path.parent)
        handle, temporary = _locked_file(path)
    except OSError as error:
        raise _cannot_write(path, error) from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.chmod(temporary, 0o666 & ~_umask())  # mkstemp gives 0600, which others could not read
            if sys.platform != "win32":
                os.replace(temporary, path)  # still locked: nobody takes it for left behind
        if sys.platform == "win32":
            os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise _cannot_write(path, error) from None
        raise


@contextmanager
def replacing_folder(path: str | Path) -> Generator[Path]:
    """A folder to fill, moved to `path` when all went well. A folder that is there must be one we wrote."""
    path = Path(path)
    try:
        _put_back(path)
        _check_ours(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path.parent)
        handle, temporary = _locked_folder(path.parent, f".{path.name[:_LONGEST_NAME]}.")
    except OSError as error:
        raise _cannot_write(path, error) from None
    try:
        yield temporary
        (temporary / _MARKER).touch()
        temporary.chmod(0o777 & ~_umask())
        _move_folder(temporary, path)
    except OSError as error:
        raise _cannot_write(path, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # what could not be moved, or what was in its place before
        if handle is not None:
            os.close(handle)


@contextmanager
def scratch_folder() -> Generator[Path]:
    """A folder for files of another program. One that a killed process left is removed by the next."""
    place = Path(tempfile.gettempdir())
    _sweep(place)
    handle, folder = _locked_folder(place, "opscope.")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _cannot_write(path: Path, error: OSError) -> OpscopeError:
    return OpscopeError(f"{path}: cannot write here ({error.strerror or error})")


def _check_ours(path: Path) -> None:
    if path.exists() and not (path / _MARKER).is_file() and (not path.is_dir() or any(path.iterdir())):
        raise OpscopeError(f"{path}: exists and was not written by opscope; name another folder or remove it first")


# -- what is being written --------------------------------------------------------------------------


def _locked_file(path: Path) -> tuple[int, str]:
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:_LONGEST_NAME]}.", suffix=_PART, dir=path.parent)
        if _lock(handle, wait=True) and os.fstat(handle).st_nlink:
            return handle, name
        os.close(handle)  # somebody swept it away before it was locked


def _locked_folder(place: Path, prefix: str) -> tuple[int | None, Path]:
    while True:
        name = tempfile.mkdtemp(prefix=prefix, suffix=_PART, dir=place)
        if sys.platform == "win32":
            return None, Path(name)
        with suppress(FileNotFoundError):
            handle = os.open(name, os.O_RDONLY)
            if _lock(handle, wait=True) and os.path.isdir(name):
                return handle, Path(name)
            os.close(handle)


def _sweep(folder: Path) -> None:
    """Remove what killed writers left behind in this folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_PART):
                with suppress(OSError):
                    _remove_abandoned(entry)


def _remove_abandoned(entry: os.DirEntry[str]) -> None:
    if entry.is_symlink():
        return
    if sys.platform == "win32":  # an open file cannot be removed there, so that no lock is needed
        if entry.is_file():
            os.unlink(entry.path)
        return
    handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if os.fstat(handle).st_uid == os.getuid() and _lock(handle, wait=False):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)
    finally:
        os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool:
    """Whether this process has it now; a lock ends with its process, however that ends."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: keep what is ours, and leave alone what may be another's
        return wait
    return True


# -- moving a folder --------------------------------------------------------------------------------


def _move_folder(made: Path, path: Path) -> None:
    """Put the folder in its place in one step, whatever several processes do at once; afterwards `made` is what was
    there before, if there was something."""
    for _ in range(1000):
        _check_ours(path)
        try:
            if not path.exists():
                made.rename(path)  # onto an empty folder at most
                return
            if _exchange(made, path):
                return
            path.rename(_aside(path))
            made.rename(path)
            shutil.rmtree(_aside(path), ignore_errors=True)
            return
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOENT) or not made.exists():
                raise
    raise OpscopeError(f"{path}: cannot write here (others write there all the time)")


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name[:_LONGEST_NAME]}{_BEFORE}")


def _put_back(path: Path) -> None:
    """A process that was killed between the two steps of moving a folder left the old one beside its place."""
    if _aside(path).is_dir():
        if path.exists():
            shutil.rmtree(_aside(path), ignore_errors=True)
        else:
            _aside(path).rename(path)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step, where the system can: nobody ever sees none."""
    names = os.fsencode(one), os.fsencode(other)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            failed = library.renamex_np(*names, 2)  # RENAME_SWAP
        else:
            failed = library.renameat2(-100, names[0], -100, names[1], 2)  # AT_FDCWD, RENAME_EXCHANGE
    except (AttributeError, OSError, TypeError):  # Windows, or an older system
        return False
    if failed and ctypes.get_errno() == errno.ENOENT:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return not failed


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
