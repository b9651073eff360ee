"""Packed files and standard input: they are opened as what they hold, within bounds."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import opscope
from commands import bad
from conftest import DATA
from opscope.errors import BadInput
from opscope.ir.text import dump
from opscope.opening import from_bytes
from opscope.readers import packed

MODEL = DATA / "jittor" / "simple_model.pkl"
PASSES = DATA / "hidet" / "0.6.1" / "outs"
PROGRAM = [sys.executable, "-m", "opscope"]


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def tarred(files: dict[str, bytes], mode: str = "w", change: Callable[[tarfile.TarInfo], None] = id) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            change(info)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zstd(data: bytes) -> bytes:
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)


def folder(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path.parent)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


# -- what is in them --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        lambda data: gzip.compress(data[:900]) + gzip.compress(data[900:]),
        zstd,
        lambda data: zstd(data[:900]) + zstd(data[900:]),
        lambda data: zipped({"a folder/model.bin": data, "__MACOSX/a folder/._model.bin": b"x", ".DS_Store": b"y"}),
        lambda data: tarred({"model": data}),
        lambda data: tarred({"./model": data}, "w:gz"),
        lambda data: gzip.compress(zipped({"model.gz": gzip.compress(data)})),
    ],
    ids=["gz", "gz gz", "zst", "zst zst", "zip", "tar", "tar.gz", "gz zip gz"],
)
def test_a_packed_file_is_what_it_holds(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_bytes(pack(MODEL.read_bytes()))
    plain = dump(opscope.open(MODEL))
    assert dump(opscope.open(path)) == plain
    assert dump(from_bytes("dropped", path.read_bytes())) == plain
    done = subprocess.run([*PROGRAM, "ir", "--style", "text", "-"], input=path.read_bytes(), capture_output=True)
    assert done.stdout.decode() == plain, done.stderr


@pytest.mark.parametrize("pack", [zipped, tarred], ids=["zip", "tar"])
@pytest.mark.parametrize("of", [PASSES, DATA / "paddle" / "example_dump"], ids=["hidet", "paddle"])
def test_a_packed_folder_is_that_folder(pack: Callable[[dict[str, bytes]], bytes], of: Path, tmp_path: Path) -> None:
    path, plain = tmp_path / "it", tmp_path / "plain"
    path.write_bytes(pack(folder(of)))
    shutil.copytree(of, plain)  # without what lies beside it
    assert dump(opscope.open(path)) == dump(opscope.open(plain))


def test_what_does_not_fit_into_memory_is_read_from_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_IN_MEMORY", 1000)
    for sample in (MODEL, DATA / "megengine" / "tiny.mge", DATA / "torch" / "net.pt2", *DATA.glob("torch/trace/*.gz")):
        path = tmp_path / "it"
        data = sample.read_bytes()
        path.write_bytes(data if data.startswith(packed.GZIP) else gzip.compress(data))
        assert dump(opscope.open(path)) == dump(opscope.open(sample)), sample


def test_readers_of_what_is_on_the_disk_have_places_of_their_own() -> None:
    data = os.urandom(100_000)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        spooled = packed.Spooled(file, len(data))
        one, other = spooled.open(), spooled.open()
        other.seek(-10, os.SEEK_END)
        assert one.read(70_000) == data[:70_000]
        assert other.read() == data[-10:]
        assert one.read() == data[70_000:]
        assert one.seek(5) == 5
        assert one.read(3) == data[5:8]


# -- what is refused --------------------------------------------------------------------------------


def symbolic(info: tarfile.TarInfo) -> None:
    info.type, info.linkname, info.size = tarfile.SYMTYPE, "/etc/passwd", 0


def device(info: tarfile.TarInfo) -> None:
    info.type, info.size = tarfile.CHRTYPE, 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(MODEL.read_bytes())[:-20], "a gzip file that is cut off or damaged"),
        (packed.GZIP + b"\0" * 20, "a gzip file that is cut off or damaged"),
        (packed.ZSTANDARD + b"abc" * 50, "Zstandard file"),
        (gzip.compress(b""), "an empty file"),
        (gzip.compress(bytes(100 << 20)), r"more than [0-9,]+ bytes when unpacked, \d+ times the file: refused"),
        (zipped({"x.pkl": bytes(100 << 20)}), "its members claim 104,857,600 bytes"),
        (zipped({"../x.pkl": b"a"}), "member '../x.pkl' points outside"),
        (tarred({"../x.pkl": b"a"}), "member '../x.pkl' points outside"),
        (tarred({"/x.pkl": b"a"}), "points outside"),
        (tarred({"x.pkl": b""}, change=symbolic), "there is no file in it"),
        (tarred({"x.pkl": b""}, change=device), "there is no file in it"),
        (tarred({"x.pkl": b"abc" * 5000})[:2000], "cut off"),
        (zipped({"a": b"b", "a/b": b"c"}), "a/b cannot be unpacked"),
        (zipped({"a": b"b", "c": b"d"}), r"unpack it and name one of them \(a, c\)"),
        (tarred({f"{i}": b"" for i in range(20_002)}), "20,000 are the most"),
        (b"BZh91AY&SY", "a bzip2 file: unpack it first"),
        (b"\xfd7zXZ\0\0", "an xz file: unpack it first"),
    ],
    # Not by the bytes: gzip writes the time into them, and the workers of a run have to agree on the names.
    ids=lambda given: given if isinstance(given, str) else f"{len(given)}-bytes",
)  # fmt: skip
def test_bad_ones_are_refused(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=words) as refused:
        opscope.open(path)
    assert str(refused.value).startswith(str(path))


def test_five_layers_are_refused(tmp_path: Path) -> None:
    data = MODEL.read_bytes()
    for _ in range(5):
        data = zipped({"it": data})
    (tmp_path / "x.zip").write_bytes(data)
    assert "packed more than 3 times" in bad("info", tmp_path / "x.zip")


def test_a_tar_member_that_claims_to_be_enormous_is_refused(tmp_path: Path) -> None:
    data = bytearray(tarred({"x.pkl": b"abc"}))
    data[124:136] = b"\x80" + struct.pack(">3xQ", 1 << 60)
    data[148:156] = b" " * 8
    data[148:156] = f"{sum(data[:512]):06o}\0 ".encode()
    (tmp_path / "x.tar").write_bytes(data)
    assert "x.tar" in bad("info", tmp_path / "x.tar")


def test_without_a_package_for_zstandard_it_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("zstandard", "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "x.zst").write_bytes(packed.ZSTANDARD + b"x")
    with pytest.raises(BadInput, match=r"pip install 'opscope\[zstd\]'"):
        opscope.open(tmp_path / "x.zst")


def test_standard_input_that_gives_nothing_is_refused() -> None:
    for options in ({"stdin": subprocess.DEVNULL}, {"preexec_fn": lambda: os.close(0)}):
        done = subprocess.run([*PROGRAM, "info", "-"], capture_output=True, text=True, **options)  # type: ignore[call-overload]
        assert done.returncode == 2
        assert done.stderr.startswith("opscope: standard input: ")
        assert done.stderr.count("\n") == 1


def test_a_disk_without_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_IN_MEMORY", 1000)
    monkeypatch.setattr(packed, "_ROOM_LEFT", 1 << 60)
    (tmp_path / "x.gz").write_bytes(gzip.compress(MODEL.read_bytes()))
    with pytest.raises(BadInput, match="set TMPDIR to a folder that has"):
        opscope.open(tmp_path / "x.gz")
