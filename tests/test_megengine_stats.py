"""MegEngine's visualizer, replaced: the figures of its own runs, from the file alone, without MegEngine."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opscope
from opscope import ops
from opscope.analysis.weights import weights
from opscope.compat.megengine import network_visualize, visualize
from opscope.compat.megengine.arrays import load_arrays
from opscope.compat.megengine.operators import Listed, flops
from opscope.errors import BadInput, OpscopeError
from opscope.export.megengine.rows import sizeof_fmt, table
from opscope.ir import Type
from opscope.ir.dtypes import bits_of
from opscope.readers.megengine.weights import statistics

DATA = Path(__file__).parent / "data" / "megengine"
TABLES = ("params", "flops", "activations")


def as_json(value: Any) -> Any:
    """As the samples were written: tuples are lists, types are their names."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, np.dtype):
        return value.name
    return value


def expected(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


def without(rows: list[Any], *keys: str) -> list[Any]:
    return [{key: value for key, value in row.items() if key not in keys} for row in rows]


@pytest.mark.parametrize("model", ["tiny", "resnet18_w8"])
def test_the_same_as_megengine_to_the_last_digit(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    total, details = visualize(str(DATA / f"{model}.mge"), None)
    sample = expected(f"{model}.visualize_noinput")
    assert total._asdict() == sample["total_stats"]
    for name in TABLES:
        assert as_json(getattr(details, name)) == sample["stats_details"][name], name
    printed = capsys.readouterr()
    assert not printed.err
    assert "total_param_dims" in printed.out


@pytest.mark.parametrize(
    ("path", "sample", "ignored"),
    [
        # Dumps without operator names: MegEngine makes some up (`conv(data,conv.weight)[8]`), the file has variables.
        ("tiny.default.mge", "tiny.visualize_default_noinput", ("name",)),
        ("tiny.opt.mge", "tiny.visualize_opt_noinput", ()),
        ("resnet18_w8.opt.mge.gz", "resnet18_w8.visualize_opt_noinput", ("mean", "std")),
        ("resnet18_w8.default.mge.gz", "resnet18_w8.visualize_default_noinput", ("name", "mean", "std")),
    ],
)
def test_optimized_dumps(path: str, sample: str, ignored: tuple[str, ...], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("opscope.compat.megengine.running.is_there", lambda: False)
    file = DATA / path
    if file.suffix == ".gz":
        file = tmp_path / "model.mge"
        file.write_bytes(gzip.decompress((DATA / path).read_bytes()))
    total, details = visualize(str(file), None, logging_to_stdout=False)
    want = expected(sample)
    assert total._asdict() == want["total_stats"]
    for name in TABLES:
        found = without(as_json(getattr(details, name)), *ignored)
        assert found == without(want["stats_details"][name], *ignored), name


def test_files_of_the_first_format_have_no_shapes(monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Without MegEngine parameters are counted, and what is not known is said."""
    monkeypatch.setattr("opscope.compat.megengine.running.is_there", lambda: False)
    total, details = visualize(str(DATA / "tiny.fbsv1.mge"), None)
    want = expected("tiny.visualize_fbsv1_noinput")
    assert total.param_dims == want["total_stats"]["param_dims"]
    assert as_json(details.params) == want["stats_details"]["params"]
    assert "not counted, as the shapes are not known: conv.Convolution" in capsys.readouterr().out


def test_what_to_calculate(capsys: pytest.CaptureFixture[str]) -> None:
    total, details = visualize(str(DATA / "tiny.mge"), None, cal_flops=False, cal_activations=False)
    assert (total.param_dims, total.flops, total.act_dims) == (443, 0, 0)
    assert [row["name"] for row in details.params][-1] == "total"
    assert "flops stats" not in capsys.readouterr().out
    assert type(total).__name__ == "total_stats"
    assert type(details).__name__ == "module_stats"


def test_tables_are_printed_as_megengine_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    visualize(str(DATA / "tiny.mge"), None)
    lines = capsys.readouterr().out.splitlines()
    shown = "conv.weight    float32  (4, 3, 3, 3)  0.0231   0.187  108        32     432.000 B  432.000 B  24.38%"
    assert f"{shown}      ######" in lines
    assert "total                                                 443               1.730 KiB" in lines
    assert table([("a", "bb"), (1, "")]) == "-  --\na  bb\n1\n-  --"


def test_an_input_needs_megengine(monkeypatch: Any) -> None:
    monkeypatch.setattr("opscope.compat.megengine.running.is_there", lambda: False)
    with pytest.raises(OpscopeError, match="only MegEngine can say: install it"):
        visualize(str(DATA / "tiny.mge"), None, input=np.zeros((1, 3, 8, 8), "float32"))


def test_products_are_counted_however_they_lie() -> None:
    """MegEngine takes the wrong dimension of a transposed factor, and fails on more than three."""

    def product(kind: str, first: tuple[int, ...], out: tuple[int, ...], **params: Any) -> float | None:
        return flops(Listed("", kind, params, [], [first, None], [out], "float32"))

    assert product("MatrixMul", (2, 7), (2, 3)) == 42
    assert product("MatrixMul", (7, 2), (2, 3), transposeA=True) == 42
    assert product("BatchedMatmul", (5, 2, 7), (5, 2, 3)) == 210
    assert product("BatchedMatmul", (4, 5, 2, 7), (4, 5, 2, 3)) == 840
    assert product("Reduce", (2, 7), (2, 1)) is None


def test_figures_in_words() -> None:
    assert sizeof_fmt(1780) == "1.738 KiB"
    assert sizeof_fmt(1833266664, "OPs") == "1.833 GOPs"
    assert sizeof_fmt(445, "") == "445.000 "
    assert [bits_of(d) for d in ("float32", "qint8", "quint4", "bool", "int32")] == [32, 8, 4, 8, 32]


def test_mean_and_std_on_request() -> None:
    found = statistics(str(DATA / "tiny.mge"))
    conv = found["conv.weight"]
    assert conv is not None
    assert f"{conv.mean:.3g} {conv.std:.3g}" == "0.0231 0.187"
    assert found["data"] is None  # an input has no numbers


# -- the command line -------------------------------------------------------------------------------------


def test_the_command_line(tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    model = str(DATA / "tiny.mge")
    assert network_visualize.main([model, "--log_path", "a", "--cal_flops", "--logging_to_stdout"]) == 0
    printed = capsys.readouterr().out
    assert "7.749 KOPs" in printed
    assert "param stats" not in printed
    assert network_visualize.main([model, "b", "--all"]) == 0  # the log as the manual shows it
    assert "activations stats" in capsys.readouterr().out
    assert network_visualize.main([model, "--all"]) == 0
    assert all(list((tmp_path / name).glob("events.out.tfevents.*")) for name in ("a", "b", "log"))
    assert network_visualize.main(["nothing.mge"]) == 2
    assert "no such file" in capsys.readouterr().err


@pytest.mark.parametrize("protocol", range(6))
def test_input_data(tmp_path: Path, protocol: int) -> None:
    array = np.arange(12, dtype="float32").reshape(3, 4)
    path = tmp_path / "data.pkl"
    path.write_bytes(pickle.dumps(array, protocol))
    assert np.array_equal(load_arrays(str(path)), array)
    path.write_bytes(pickle.dumps({"x": array, "y": array.T}, protocol))
    loaded = load_arrays(str(path))
    assert isinstance(loaded, dict)
    assert np.array_equal(loaded["y"], array.T)
    sample = load_arrays(str(DATA / "tiny.data.pickle"))
    assert isinstance(sample, np.ndarray)
    assert sample.shape == (1, 3, 8, 8)


class Evil:
    def __reduce__(self) -> Any:
        return (print, ("this must not be printed",))


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(Evil()),
        pickle.dumps({"x": Evil()}),
        pickle.dumps([1, 2]),
        pickle.dumps(np.array([None, Evil], dtype=object)),
        b"\x80\x04r\xff\xff\xff\x7f.",
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"",
        pickle.dumps(np.zeros(4))[:-20],
    ],
)
def test_input_data_that_is_something_else(tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "data.pkl"
    path.write_bytes(content)
    with pytest.raises(BadInput):
        load_arrays(str(path))
    assert "must not" not in capsys.readouterr().out


# -- opscope stats --style megengine ------------------------------------------------------------------------


def stats(*args: str) -> str:
    from click.testing import CliRunner

    from opscope.cli import cli

    done = CliRunner().invoke(cli, ["stats", *args, "--style", "megengine"])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_style_for_any_framework() -> None:
    """A MegEngine model by operator, and a PyTorch program by module: bars, shares, running sums."""
    text = stats(str(DATA / "tiny.mge"), "--by", "node")
    assert "mean" not in text  # the numbers are not known here
    (line,) = [line for line in text.splitlines() if line.startswith("conv.Convolution") and "KOPs" in line]
    assert "6.912 KOPs" in line
    assert line.endswith("#" * 20)
    assert "total_param_dims  441.000" in text
    text = stats(str(DATA.parent / "torch" / "net.pt2"))
    assert "flops stats:" in text
    assert "#" * 20 in text
    assert "%" in text


def test_the_style_says_what_it_does_not_count(tmp_path: Path) -> None:
    text = stats(str(DATA / "tiny.fbsv1.mge"))
    assert "not counted: Elemwise.ADD ×2, Convolution ×1" in text
    printed = json.loads(stats(str(DATA / "tiny.mge"), "--json"))
    assert printed["total"]["param_dims"] == 441
    assert [row["name"] for row in printed["flops"]][-1] == "total"


def test_stats_golden(overwrite: bool) -> None:
    """What the operators cost by opscope's own conventions: exact, all of them."""
    capture = opscope.open(DATA / "resnet18_w8.mge")
    found = opscope.stats(capture)
    assert not found.total.at_least
    # MegEngine's count of products and convolutions is the same; it adds element-wise operations to them.
    assert found.total.macs == 3_367_552
    text = str(found.by_op()) + "\n"
    golden = Path(__file__).parent / "golden" / "stats" / "megengine_resnet18_w8.op.txt"
    if overwrite:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("op", "inputs", "out", "attrs", "cost"),
    [
        ("Convolution", [(1, 4, 8, 8), (2, 4, 2, 3, 3)], (1, 8, 6, 6), {"sparse": "GROUP"}, (288 * 18, 0)),
        (
            "ConvBias",
            [(1, 4, 8, 8), (8, 4, 3, 3), (1, 8, 1, 1)],
            (1, 8, 6, 6),
            {"nonlineMode": "RELU"},
            (288 * 36, 576),
        ),
        ("ConvTranspose", [(8, 4, 2, 2), (1, 8, 6, 6)], (1, 4, 12, 12), {}, (288 * 16, 0)),
        ("MatrixMul", [(7, 2), (3, 7)], (2, 3), {"transposeA": True, "transposeB": True}, (42, 0)),
        ("BatchedMatmul", [(5, 2, 7), (5, 7, 3)], (5, 2, 3), {}, (210, 0)),
        ("Pooling.MAX", [(1, 2, 8, 8)], (1, 2, 4, 4), {"window_h": 3, "window_w": 2}, (0, 192)),
        ("ElemwiseMultiType.QADD", [(2, 3), (2, 3)], (2, 3), {}, (0, 6)),
        ("Reduce.SUM_SQR", [(2, 3)], (2, 1), {}, (0, 12)),
        ("Convolution", [(1, 1, 8, 8, 4), (2, 1, 3, 3, 4, 4)], (1, 2, 6, 6, 4), {"format": "NCHW44"}, None),
        ("WarpPerspective", [(1, 3, 8, 8)], (1, 3, 4, 4), {}, None),
    ],
)
def test_costs(op: str, inputs: Any, out: Any, attrs: Any, cost: tuple[int, int] | None) -> None:
    given = [ops.Argument(str(i), Type("float32", shape)) for i, shape in enumerate(inputs)]
    found = ops.cost_of("megengine", op, given, [Type("float32", out)], attrs)
    assert (found.how == "unknown") if cost is None else (found.macs, found.other) == cost


def test_statistics_of_weights_as_facts() -> None:
    path = DATA / "resnet18_w8.mge"
    known = statistics(str(path))
    found = {one.name: one.figures for one in weights(opscope.open(path, weights=True))}
    assert len(found) > 60
    for name, figures in found.items():
        expected = known[name]
        assert expected is not None
        assert figures["mean"] == pytest.approx(expected.mean, abs=1e-7)
