"""Files, folders and outputs that mean harm or that fail: one clear line each, soon, and nothing lost or left behind.

`data/hostile` holds what once crashed a reader, ended the process or never came back. tests/fuzz.py makes more.
"""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import kills
import opscope
from commands import bad, run
from conftest import DATA
from fuzz_samples import compiler_samples
from mutations import mutate_arrow, tarred, zipped
from opscope.errors import BadInput, one_line
from opscope.files import replacing, replacing_folder
from opscope.ir import Capture, Frame, GraphBuilder, Pools, Stage
from opscope.ir.text import dump
from opscope.readers.deadline import deadline
from opscope.readers.pickles import load_plain
from opscope.readers.source import Source
from opscope.sources import Refused, embed, exact, in_folders
from opscope.wire import arrow, ipc

HOSTILE = DATA / "hostile"
SMALL = DATA / "jittor" / "simple_model.pkl"
LARGER = DATA / "jittor" / "simple_model_train.pkl"
PROGRAM = [sys.executable, "-m", "opscope"]


# -- files ------------------------------------------------------------------------------------------

REFUSED = {
    "arrow-abort.opscope": "graphs/0/nodes is not a readable Arrow table: a buffer of 4,294,967,448 bytes",
    "attrs-deep.opscope": "are not JSON",
    "attrs-digits.opscope": "are not JSON",
    "attrs-float.opscope": "are not JSON",
    "attrs-list.opscope": "not a JSON object",
    "attrs-not-json.opscope": "are not JSON",
    "hash-bomb.pkl": "neither a text nor a number of 64 bits",
    "ts-float.pt": "line 14: a number of 1,601 bits",
    "ts-hex.pt": "line 14: a number of 20,000 bits",
    "ts-lists.pt": "more than 100,000 parts",
}
READ = {
    "dims-1e400.opscope",
    "dims-2e30.opscope",
    "dims-2e61.pir.json",
    "dims-neg.opscope",
    "letters.dot",
    "spaces.log",
}


def test_every_hostile_file_is_tested() -> None:
    assert {path.name for path in HOSTILE.iterdir()} == REFUSED.keys() | READ


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_files_are_refused_in_one_line(name: str) -> None:
    assert REFUSED[name] in bad("ir", "--style", "text", HOSTILE / name)


@pytest.mark.parametrize("name", sorted(READ))
def test_hostile_files_that_can_be_read_are_counted(name: str) -> None:
    capture = opscope.open(HOSTILE / name)
    dump(capture)
    totals = capture.stats().totals()
    if name.startswith("dims"):
        assert totals["at_least"] or totals["params"] is not None  # whatever the sizes say, figures are figures
        assert all(abs(figure) < 2**62 for figure in totals.values() if isinstance(figure, int))


def test_elements_that_nothing_can_hold_are_not_known() -> None:
    types = [opscope.ir.Type("float32", shape) for shape in ((2**61,) * 4, (10**30,), (-3, 4), (2**30, 2**30))]
    assert [type_.elements for type_ in types] == [None] * 4
    assert opscope.ir.Type("float32", (0, 10)).elements == 0


def test_a_changed_arrow_member_is_read_or_refused() -> None:
    """Offsets, lengths, counts, kinds and cells at their limits; the process that reads them stays alive."""
    import random

    columns = {
        "number": np.arange(9, dtype=np.int32),
        "small": np.arange(9, dtype=np.int8),
        "known": np.arange(9) % 2 == 0,
        "text": [f"é{i}" for i in range(9)],
        "real": np.linspace(0, 1, 9),
    }
    data = arrow.to_bytes(arrow.to_table(columns))
    counts = {"read": 0, "refused": 0}
    for number in range(4000):
        try:
            table = ipc.Table(mutate_arrow(data, random.Random(number)))
            for name in table.names:
                column = table.column(name)
                assert column is not None
                column.rows()
            counts["read"] += 1
        except BadInput:
            counts["refused"] += 1
    assert counts["read"] > 200
    assert counts["refused"] > 200


def test_arrow_texts_lists_and_nulls_are_read() -> None:
    import arro3.core as ac

    start = ac.Array.from_numpy(np.array([0, 2, 2, 3, 3], dtype=np.int32))
    made = ac.Table.from_pydict(
        {
            "text": ac.Array(["a", None, "中文", ""], type=ac.DataType.utf8()),
            "number": ac.Array([1, None, 3, 4], type=ac.DataType.int64()),
            "list": ac.list_array(start, ac.Array.from_numpy(np.array([1.5, 2.5, 3.5]))),
        }
    )
    table = ipc.Table(arrow.to_bytes(made))
    rows = {name: column.rows() for name in table.names if (column := table.column(name)) is not None}
    assert rows == {"text": ["a", None, "中文", ""], "number": [1, None, 3, 4], "list": [[1.5, 2.5], [], [3.5], []]}
    assert len(table.names) == 3
    assert table.length == 4


def test_a_table_without_rows_or_batches_is_empty() -> None:
    data = arrow.to_bytes(arrow.to_table({"a": np.zeros(0, dtype=np.int32), "b": []}))
    table = ipc.Table(data)
    column = table.column("a")
    assert column is not None
    assert column.numbers().dtype == np.int32
    assert column.rows() == []
    schema = data.index(b"\xff\xff\xff\xff")
    (size,) = struct.unpack_from("<i", data, schema + 4)
    alone = ipc.Table(data[schema : schema + 8 + size]).column("a")
    assert alone is not None
    assert len(alone.numbers()) == 0


@pytest.mark.parametrize(
    "body",
    [
        b"\x8a\x0a" + b"\x01" * 10 + b"K\x01s",  # a number of 80 bits
        b"K\x01K\x02\x86K\x01s",  # a tuple
        b"(K\x01K\x02tK\x01s",
        b"(K\x01K\x02\x91K\x01s",  # a frozen set
        b"I" + b"9" * 40 + b"\nK\x01s",
    ],
)
def test_keys_that_may_take_for_ever_to_hash_are_refused(body: bytes) -> None:
    with pytest.raises(BadInput, match="a key of a dict or set"):
        load_plain(b"\x80\x04}" + body + b".", "x.pkl")


def test_a_zip_file_that_claims_a_long_directory_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("manifest.json", b"{}")
    data = bytearray(out.getvalue() + bytes(40 << 20))
    end = out.getvalue().rfind(b"PK\x05\x06")
    record = bytearray(out.getvalue()[end:])
    struct.pack_into("<II", record, 12, 30 << 20, 100)
    with pytest.raises(BadInput, match=r"list of its members takes 31,457,280 bytes"):
        opscope.opening.from_bytes("x.opscope", bytes(data) + bytes(record))


def test_a_text_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    for name, head in (
        ("x.pt2.json", b'{"graph_module": '),
        ("x.log", b"RunBackward: Start Backward\n"),
        ("x.pkl", b"\x80\x04"),
    ):
        path = tmp_path / name
        with path.open("wb") as file:
            file.write(head + b"\n" * 5000)
            file.truncate(2 << 30)  # it takes no room on the disk
        with pytest.raises(BadInput, match="are the most for a file of this kind"):
            opscope.open(path)


def test_a_long_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(b"RunBackward: Start Backward\n" + b"a" * (2 << 20))
    with pytest.raises(BadInput, match="line 2 is longer than"):
        opscope.open(tmp_path / "x.log")


def for_ever() -> None:
    with deadline("x", 0):
        while True:
            pass


def test_reading_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opscope.readers.deadline._SECONDS", 0.05)
    with pytest.raises(BadInput, match="x: reading it takes longer than"):
        for_ever()
    for _ in range(1000):  # nothing arrives later
        pass


def test_messages_are_one_line_of_bounded_length() -> None:
    error = BadInput("a\nb\x1b[31m\udcff" + "x" * 100_000 + " what to do")
    assert str(error).isprintable()
    assert len(str(error)) < 1100
    assert str(error).endswith("what to do")
    assert one_line("a" * 50, 20).count("\n") == 0


def test_names_of_files_may_hold_anything(tmp_path: Path) -> None:
    name = os.fsdecode(b"a\xff\n\x1b[31m.pkl")
    (tmp_path / name).write_bytes(b"\x80\x04N.")
    with pytest.raises(BadInput) as refused:
        opscope.open(tmp_path / name)
    assert str(refused.value).isprintable()
    (tmp_path / name).write_bytes(SMALL.read_bytes())
    done = run("info", tmp_path / name)
    assert done.returncode == 0, done.stderr


# -- what is no plain file --------------------------------------------------------------------------


def test_special_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path, words in (
            (tmp_path / "pipe", "a pipe: write what comes out of it to a file first"),
            (tmp_path / "socket", "a socket"),
            (Path("/dev/zero"), "a device"),
            (tmp_path / "missing", "no such file or folder"),
            (tmp_path / "x\0y", "null byte"),
        ):
            with pytest.raises(BadInput, match=words):
                opscope.open(path)
    with pytest.raises(BadInput, match="a pipe"):
        opscope.open(SMALL, profile=tmp_path / "pipe")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="only on Linux")
@pytest.mark.parametrize("name", ["/proc/self/mem", "/proc/self/status", "/proc/kmsg"])
def test_files_of_the_kernel_are_empty_files(name: str) -> None:
    with pytest.raises(BadInput):
        opscope.open(name)


def test_a_dump_folder_with_a_pipe_in_it_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1_backward_graph.dot")
    with pytest.raises(BadInput, match="a pipe"):
        opscope.open(tmp_path)


def test_a_file_that_shrinks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pkl"
    path.write_bytes(SMALL.read_bytes())
    source = Source.of(path)
    assert source.size == SMALL.stat().st_size
    path.write_bytes(SMALL.read_bytes()[:100])
    with pytest.raises(BadInput, match="became shorter"):
        source.read()


def test_a_model_that_shrinks_while_it_is_read_is_refused(tmp_path: Path) -> None:
    from opscope.readers.pages import mapped

    path = tmp_path / "x.mge"
    path.write_bytes(bytes(1 << 20))
    source = Source.of(path)
    with mapped(source) as (data, size):
        assert data[:4] == bytes(4)
        os.truncate(path, 100)
        with pytest.raises(BadInput, match="became shorter"):
            data[size - 4 : size]


DEBUG = Path("torch_compile_debug/run_2026_11_19_10_00_00_000000-pid_1/torchinductor/model__1_backward_2.1")


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_file_of_a_debug_folder_is_named_and_not_read(kind: str, tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(compiler_samples()["debug.tar"])) as archive:
        archive.extractall(tmp_path, filter="data")
    path = tmp_path / DEBUG / "output_code.py"
    path.unlink()
    {"pipe": os.mkfifo, "link": lambda path: path.symlink_to("/etc/passwd"), "folder": Path.mkdir}[kind](path)
    capture = opscope.open(tmp_path)
    assert any("output_code.py is a link, a folder or no file" in warning for warning in capture.all_warnings())
    assert "root:" not in dump(capture)


EVENT: dict[str, object] = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0}


@pytest.mark.parametrize("odd", [10**400, 1e308, float("nan"), float("inf"), "x", None, [], {}])
@pytest.mark.parametrize("field", ["ts", "dur"])
def test_no_clock_shows_such_a_time(field: str, odd: object) -> None:
    events = [EVENT, EVENT | {"ts": 5.0, field: odd}]
    data = json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()
    capture = opscope.opening.from_bytes("x.json", data)
    assert capture.graph.n_nodes == 1
    assert any("1 event" in warning for warning in capture.all_warnings()), capture.all_warnings()


def test_a_report_with_odd_figures_is_left_out(tmp_path: Path) -> None:
    report = json.loads((DATA / "jittor/quirks/profiled_report.json").read_text())
    for row, odd in zip(report[1:], (10**400, "nan", "inf", None, {}, []), strict=False):
        row[4] = odd
    report += [3, {}, [], None, ["a"]]
    (tmp_path / "report.json").write_text(json.dumps(report))
    path = DATA / "jittor/quirks/profiled_mlp_train.pkl"
    whole, found = opscope.open(path), opscope.open(path, profile=tmp_path / "report.json")
    measured = [capture.stats().to_dict("kernel")["rows"] for capture in (whole, found)]
    known = [[row["time"] for row in rows if row["time"] is not None] for rows in measured]
    assert 0 < len(known[1]) < len(known[0])
    assert all(0 <= time < 1e6 for time in known[1])


def test_a_profile_that_does_not_fit_is_named(tmp_path: Path) -> None:
    profile = tmp_path / "other.json"
    profile.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [EVENT | {"name": "aten::no_such_operator"}]}))
    assert f"{profile}: a profile of another program" in bad(
        "info", DATA / "torch" / "chakra.json", "--profile", profile
    )


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v")
def test_a_library_without_room_is_one_line() -> None:
    from opscope.errors import lacks_memory

    assert lacks_memory(MemoryError())
    assert lacks_memory(ImportError("x.so: failed to map segment from shared object"))
    assert not lacks_memory(ImportError("No module named x"))


@pytest.mark.parametrize("member", ["/etc/passwd", "../x", "a/../../x"])
def test_archives_write_nothing_outside(member: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="points outside the file"):
        opscope.opening.from_bytes("x.zip", zipped({"a": b"{}", member: b"{}"}))
    with pytest.raises(BadInput, match="points outside the file"):
        opscope.opening.from_bytes("x.tar", tarred({"a": b"{}", member: b"{}"}))


def test_packings_in_packings_are_named_once() -> None:
    data = b"{}"
    for number in range(6):
        data = zipped({f"{number}.zip": data})
    with pytest.raises(BadInput, match=r"^x\.zip/5\.zip/4\.zip/3\.zip: packed more than 3 times: refused$"):
        opscope.opening.from_bytes("x.zip", data)


# -- source files -----------------------------------------------------------------------------------


def naming(*files: str) -> Capture:
    b = GraphBuilder(Pools())
    x = b.input(b.pools.type("float32", (1,)))
    for file in files:
        b.node("relu", [x], stack=b.pools.stack([Frame(file, 1, "forward")]))
    return Capture(b.pools, [Stage("main", b.freeze())])


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    inside, outside = tmp_path / "project", tmp_path / "elsewhere"
    inside.mkdir()
    outside.mkdir()
    (inside / "model.py").write_text("x = 1\n")
    (inside / "passwords").write_text("secret\n")
    (inside / "binary.py").write_bytes(b"\0\1\2")
    (outside / "other.py").write_text("secret\n")
    (inside / "link.py").symlink_to(outside / "other.py")
    return inside


def test_sources_are_source_files_below_the_folders_that_were_named(folders: Path) -> None:
    capture = naming("/a/model.py", "/a/passwords", "/a/link.py", "/a/binary.py", "/etc/passwd")
    embed(capture, in_folders([folders]))
    assert capture.sources == {"/a/model.py": "x = 1\n"}
    said = " ".join(capture.warnings)
    assert "/a/passwords" in said
    assert "/a/link.py: it lies outside the folders" in said


def test_even_what_was_recorded_here_names_no_other_files(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's model that is traced here may carry stack frames of its own."""
    monkeypatch.chdir(folders)
    assert exact(str(folders / "model.py")) == "x = 1\n"
    assert exact(__file__) == Path(__file__).read_text("utf-8")
    assert isinstance(exact("/etc/passwd"), Refused)
    assert isinstance(exact(str(folders / "passwords")), Refused)
    assert exact("/no/such/file.py") is None
    assert exact("model.py") is None


# -- outputs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["info", "stats", "ir"])
def test_output_that_cannot_be_written_is_one_line(command: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PROGRAM, command, LARGER], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "opscope: the output cannot be written: No space left on device\n"
    closed = subprocess.run(
        [*PROGRAM, command, LARGER], stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(1)
    )
    assert closed.returncode == 2
    assert closed.stderr.count("\n") == 1
    assert "Traceback" not in closed.stderr


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    process = subprocess.Popen(
        [*PROGRAM, "ir", DATA / "jittor" / "resnet_train.pkl"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 141


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_narrow_outputs_get_ascii(encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    for command in (["info"], ["stats"], ["info", "--json"]):
        done = subprocess.run([*PROGRAM, *command, LARGER], capture_output=True, env=environment)
        assert done.returncode == 0, done.stderr
        done.stdout.decode(encoding)
    assert (b"#####" in subprocess.run([*PROGRAM, "info", LARGER], capture_output=True, env=environment).stdout) == (
        encoding != "utf-8"
    )


def test_an_interrupt_ends_it_quietly_even_while_it_loads() -> None:
    for wait in (0.02, 0.1, 0.25):
        script = "import opscope.__main__, sys; print('ready', flush=True); sys.argv = ['opscope', 'ir', sys.argv[1]]; "
        script += "opscope.__main__.main()"
        process = subprocess.Popen(
            [sys.executable, "-c", script, DATA / "jittor" / "resnet_train.pkl"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(wait)  # at any moment: each must end in one of the two ways below
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        assert b"Traceback" not in errors
        assert process.returncode in (130, 0, -signal.SIGINT)


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v")
def test_a_picture_without_room_for_its_addresses_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("py_mini_racer")
    import resource

    done = subprocess.run(
        [*PROGRAM, "export", SMALL, "-o", tmp_path / "x.svg"],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30)),
    )
    assert done.returncode == 2, done.stderr
    assert "bytes of address space" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="ulimit -f")
@pytest.mark.parametrize("ending", sorted(kills.KINDS))
def test_a_disk_that_is_full_is_one_line_and_leaves_nothing(ending: str, tmp_path: Path) -> None:
    for package, endings in {
        "py_mini_racer": (".svg", ".play.svg", ".png", ".pdf"),
        "resvg_py": (".png",),
        "reportlab": (".pdf",),
    }.items():
        if ending in endings:
            pytest.importorskip(package)
    import resource

    done = subprocess.run(
        kills.export(LARGER, tmp_path / f"x{ending}"),
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )
    assert done.returncode == 2, done.stderr
    assert "cannot write here (File too large)" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_is_written_to_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "x.dot").symlink_to(tmp_path / "real" / "y.dot")
    for data in (b"one", b"two"):
        with replacing(tmp_path / "x.dot") as file:
            file.write(data)
        assert (tmp_path / "x.dot").is_symlink()
        assert (tmp_path / "real" / "y.dot").read_bytes() == data
    (tmp_path / "a.dot").symlink_to("b.dot")
    (tmp_path / "b.dot").symlink_to("a.dot")
    with pytest.raises(opscope.OpscopeError, match="cannot write here"), replacing(tmp_path / "a.dot"):
        pass


def test_a_folder_with_links_in_a_circle_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "a folder without anything opscope knows" in bad("info", tmp_path)
    assert "cannot be read" in bad("info", tmp_path / "a")
    assert "a folder, not a file" in bad("info", SMALL, "--profile", tmp_path)


# -- killed, and at the same time -------------------------------------------------------------------


def test_killed_exports_lose_nothing_and_leave_nothing() -> None:
    found = kills.run(6, seed=3, kinds=(".opscope", ".parquet"))
    assert sum(count for what, count in found.items() if what != "temporaries seen") == 6


def test_what_a_killed_writer_left_is_removed_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    (tmp_path / ".x.dot.abc.opscope-part").write_text("left")
    folder = tmp_path / ".y.parquet.abc.opscope-part"
    folder.mkdir()
    (folder / "nodes.parquet").write_text("left")
    with replacing(tmp_path / "a.dot") as first:
        first.write(b"one")
        with replacing(tmp_path / "b.dot") as second, replacing_folder(tmp_path / "c.parquet") as third:
            second.write(b"two")
            (third / "x").write_text("three")
    assert {path.name for path in tmp_path.iterdir()} == {"a.dot", "b.dot", "c.parquet"}
    assert (tmp_path / "a.dot").read_bytes() == b"one"


@pytest.mark.parametrize("can_exchange", [True, False])
def test_folders_written_at_the_same_time_end_whole(
    tmp_path: Path, can_exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not can_exchange:
        monkeypatch.setattr("opscope.files._exchange", lambda one, other: False)
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for _ in range(10):
                with replacing_folder(tmp_path / "out") as folder:
                    for name in ("a", "b"):
                        (folder / name).write_text(str(number))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8 if can_exchange else 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert (tmp_path / "out" / "a").read_text() == (tmp_path / "out" / "b").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_debugger_works_after_a_file_was_opened() -> None:
    """The watch over the time of reading leaves nothing behind: CPython 3.11 would not end under a tracer."""
    code = (
        "import sys, opscope\n"
        f"opscope.open({str(DATA / 'jittor' / 'simple_model.pkl')!r})\n"
        "sys.settrace(lambda *event: None)\n"
        "print((lambda: 'done')())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "done\n", done.stderr
