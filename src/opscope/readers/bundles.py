"""Files in a .zip or .tar: the one that is inside, or the folder that they make."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple, cast

from opscope.errors import BadInput, of_file
from opscope.files import scratch_folder
from opscope.wire.archive import Archive, ShortReads

from .packed import Spooled, pieces_of, spool
from .source import Source
from .unsupported import is_bundle

_TAR = 257, b"ustar"  # where its name stands
_MOST_FILES = 20_000  # dump folders of compilers have thousands


class _Member(NamedTuple):
    name: str
    size: int
    pieces: Callable[[], Iterator[bytes]]


def is_tar(source: Source) -> bool:
    at, name = _TAR
    return source.head[at : at + len(name)] == name


@contextmanager
def inside(source: Source) -> Generator[Source | None]:
    """What is in it as a source, a folder for as long as the block lasts; None where it is neither zip nor tar."""
    is_zip = is_bundle(source)
    if not (is_zip or is_tar(source)):
        yield None
        return
    with source.open() as file, _naming(source.name):
        members = _zip_members(file, source.size) if is_zip else _tar_members(file)
        if not members:
            raise BadInput(f"{source.name}: there is no file in it")
        if len(members) == 1:
            name = f"{source.name}/{members[0].name}"
            yield _named(name, spool(name, members[0].pieces(), source.size))
            return
        if len(members) > _MOST_FILES:
            raise BadInput(f"{source.name}: {len(members):,} files in it; {_MOST_FILES:,} are the most")
        with scratch_folder() as folder, _naming(source.name, folder):
            yield Source(source.name, _unpacked(source.name, members, folder))


@contextmanager
def _naming(name: str, folder: Path | None = None) -> Generator[None]:
    """Errors say what the user named, and not where that was unpacked to."""
    try:
        yield
    except BadInput as error:
        text = str(error).replace(str(folder), name) if folder is not None else str(error)
        raise of_file(BadInput(text), name) from None


def _named(name: str, content: bytes | Spooled) -> Source:
    return Source(name, data=content) if isinstance(content, bytes) else Source(name, spooled=content)


def _unpacked(name: str, members: list[_Member], folder: Path) -> Path:
    """The folder with all files in it; if everything lies in one folder, that."""
    for member in members:
        path = folder.joinpath(*PurePosixPath(member.name).parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                for piece in member.pieces():
                    file.write(piece)
        except OSError as error:
            raise BadInput(f"{name}: {member.name} cannot be unpacked ({error.strerror or error})") from None
        except ValueError:
            raise BadInput(f"{name}: {member.name} is no name of a file") from None
    first = {PurePosixPath(member.name).parts[0] for member in members}
    only = folder / first.pop() if len(first) == 1 else folder
    return only if only.is_dir() else folder


def _is_wanted(name: str) -> bool:
    """What systems add to an archive is none of its files."""
    parts = PurePosixPath(name).parts
    return bool(parts) and parts[0] != "__MACOSX" and not parts[-1].startswith(".")


def _zip_members(file: BinaryIO, size: int) -> list[_Member]:
    archive = Archive(file, size)

    def pieces(name: str) -> Callable[[], Iterator[bytes]]:
        return lambda: archive.pieces(name)

    return [_Member(name, archive.size(name), pieces(name)) for name in archive.names if _is_wanted(name)]


def _tar_members(file: BinaryIO) -> list[_Member]:
    """Only plain files: links and devices could lead anywhere."""
    members: list[_Member] = []
    try:
        archive = tarfile.open(fileobj=cast("BinaryIO", ShortReads(file)), mode="r:")  # noqa: SIM115 — with `file`
        for info in archive:
            if not info.isreg() or info.issparse() or not _is_wanted(info.name):
                continue
            path = PurePosixPath(info.name)
            if path.is_absolute() or ".." in path.parts or "\\" in info.name:
                raise BadInput(f"member {info.name!r} points outside the file: refused")
            members.append(_Member(info.name, info.size, _tar_pieces(archive, info)))
            if len(members) > _MOST_FILES:
                break
    except (tarfile.TarError, ValueError, EOFError, IndexError, OverflowError, OSError) as error:
        raise BadInput(f"a tar file that is cut off or damaged ({error}): copy it again") from None
    return members


def _tar_pieces(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        member = archive.extractfile(info)
        assert member is not None
        try:
            yield from pieces_of(member)
        except tarfile.TarError:
            raise BadInput(f"member {info.name!r} is cut off: copy the file again") from None

    return pieces
