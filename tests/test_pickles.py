"""Pickles from anywhere: nothing in them runs, nothing takes more memory than the file could need."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opscope
from conftest import DATA
from opscope.readers.pickles import load_plain, scan

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)

plain: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False), st.text()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=30,
)


@settings(deadline=None)
@given(plain, st.sampled_from(PROTOCOLS))
def test_plain_data_is_read_as_pickle_reads_it(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    assert load_plain(data, "x") == value


class Reduced:
    def __init__(self, function: Any, *args: Any) -> None:
        self.call = (function, args)

    def __reduce__(self) -> Any:
        return self.call


class Mine:
    pass


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Reduced(os.system, "touch ran"), r"(posix|nt)\.system"),
        (Reduced(eval, "open('ran', 'w')"), r"(builtins|__builtin__)\.eval"),
        ({"node_data": {0: Reduced(exec, "1")}, "execute_op_info": {}}, r"(builtins|__builtin__)\.exec"),
        (Mine(), r"(Mine|_reconstructor)"),
        (len, r"\.len"),
    ],
)
def test_calls_are_refused_and_named(value: Any, words: str, protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "evil.pkl"
    path.write_bytes(pickle.dumps(value, protocol))
    with pytest.raises(opscope.BadInput, match=rf"evil\.pkl: refused: this pickle asks to call \S*{words}"):
        opscope.open(path)
    assert not Path("ran").exists()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "data",
    [
        b"cos\nsystem\n(S'touch ran'\ntR.",
        b"\x80\x02cos\nsystem\nU\x09touch ran\x85R.",
        b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93\x8c\x09touch ran\x85R.",
        b"(ios\nsystem\nS'touch ran'\n.",
    ],
)
def test_hand_written_calls_are_named(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "evil.pkl"
    path.write_bytes(data)
    with pytest.raises(opscope.BadInput, match=r"asks to call os\.system"):
        opscope.open(path)


def test_names_fetched_from_the_memo_are_found() -> None:
    data = b"\x80\x04\x8c\x02os\x94\x8c\x06system\x940h\x00h\x01\x93."
    with pytest.raises(opscope.BadInput, match=r"os\.system"):
        scan(data, "x")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x80\x04", "without its STOP mark"),
        (b"\x80\x04]", "without its STOP mark"),
        (b"\x80\x02]r\xff\xff\xff\x7f.", "memo index 2,147,483,647 in a file of 9 bytes"),
        (b"\x80\x02]r\xff", "ends in the middle of an opcode"),
        (b"(lp99999999999\n.", "memo index 99999999999"),
        (
            b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"a.",
            "4,611,686,018,427,387,904 bytes are announced, 2 are left",
        ),
        (b"\x80\x04X\xff\xff\xff\xffa.", "4,294,967,295 bytes are announced"),
        (b"\x80\x04\x8c\xffabc.", "255 bytes are announced"),
        (b"\x80\x04\x95" + struct.pack("<Q", 2**40) + b"].", "a frame that is longer than the file"),
        (b"\x80\x02\x8b" + struct.pack("<I", 5000) + b"\x01" * 5000 + b".", "5,000 bytes are announced"),
        (b"\x80\x02\xff.", "0xff is no pickle opcode"),
        (b"\x80\x02\x96" + struct.pack("<Q", 2**40) + b".", "BYTEARRAY8"),
        (b"\x80\x02e.", "not a readable pickle"),
        (b"\x80\x02]]s.", "not a readable pickle"),
        (b"\x80\x02j\xff\xff\xff\xff.", "not a readable pickle"),
        (b"\x80\x02(I" + b"9" * 5000 + b"\n.", "a number of 5,000 digits"),
        (b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".", "a pickled list, not a dict"),
        (b"\x80\x02" + b"(" * 200_000 + b".", "not a readable pickle"),
    ],
)
def test_damaged_and_hostile_pickles(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.pkl"
    path.write_bytes(data)
    with pytest.raises(opscope.BadInput) as error:
        opscope.open(path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_list_shared_a_million_times_is_refused(tmp_path: Path) -> None:
    """Every operator reads the same long list: small in the file, endless as a graph."""
    inputs = list(range(20_000))
    nodes = {
        i: {"id": i, "inputs": inputs, "outputs": [], "stacks": [], "attrs": {"is_var": "0", "name": "x"}}
        for i in range(20_000)
    }
    path = tmp_path / "shared.pkl"
    path.write_bytes(pickle.dumps({"node_data": nodes, "execute_op_info": {}}))
    with pytest.raises(opscope.BadInput, match="more ids than a file of this size can hold"):
        opscope.open(path)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            {"state_dict": {}, "epoch": 3},
            r"key 'node_data' is missing or not a dict \(found: 'state_dict', 'epoch'\)\. If this is a checkpoint",
        ),
        ([1, 2], "a pickled list, not a dict"),
        ({"node_data": {}}, "key 'execute_op_info' is missing"),
        ({"node_data": 5, "execute_op_info": {}}, "key 'node_data' is missing or not a dict"),
        ({}, "found: an empty dict"),
    ],
)
def test_other_pickles_are_told_apart(value: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "other.pkl"
    path.write_bytes(pickle.dumps(value))
    with pytest.raises(opscope.BadInput, match=words):
        opscope.open(path)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_stays_in_proportion() -> None:
    """Opening the largest sample takes at most 20 times its size and 50 MB above an idle interpreter."""
    sample = DATA / "jittor" / "resnet_train.pkl"
    program = (
        "import re, sys, numpy, opscope, opscope.readers.jittor, opscope.readers.registry\n"
        # Not getrusage: its peak is inherited from the process that started this one.
        "peak = lambda: 1024 * int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "before = peak()\n"
        "cap = opscope.open(sys.argv[1])\n"
        "print(peak() - before)\n"
    )
    out = subprocess.run([sys.executable, "-c", program, str(sample)], capture_output=True, text=True, check=True)
    assert 0 < int(out.stdout) < 20 * sample.stat().st_size + 50 * 2**20
