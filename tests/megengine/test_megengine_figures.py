"""MegEngine's statistics, replaced: beside MegEngine's own in the same process, and beside the samples."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
import pytest
from megengine.quantization import ema_fakequant_qconfig, quantize, quantize_qat
from megengine.tools.network_visualize import visualize as their_visualize
from megengine.utils.module_stats import module_stats as their_module_stats
from models import OwnWeight, ResNet18, Tiny, dump

import opscope
from effort import PEAK
from opscope.compat.megengine import module_stats, network_visualize, register_flops, register_hook_module, visualize
from opscope.compat.megengine.arrays import load_arrays

DATA = Path(__file__).parent.parent / "data" / "megengine"
TABLES = ("params", "flops", "activations")
W8 = (1, 3, 64, 64)


def as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, np.dtype):
        return value.name
    return value.item() if isinstance(value, np.generic) else value


def expected(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


def without(rows: list[Any], *keys: str) -> list[Any]:
    return [{key: value for key, value in row.items() if key not in keys} for row in rows]


def same(ours: Any, theirs: Any) -> None:
    assert ours[0]._asdict() == as_json(theirs[0]._asdict())
    for name in TABLES:
        assert as_json(getattr(ours[1], name)) == as_json(getattr(theirs[1], name)), name


@pytest.mark.parametrize(
    ("sample", "make", "shape"),
    [
        ("tiny", Tiny, (1, 3, 8, 8)),
        ("resnet18_w8", lambda: ResNet18(8, 10), W8),
        ("resnet18_224", ResNet18, (1, 3, 224, 224)),
    ],
)
def test_module_stats_of_the_samples(sample: str, make: Any, shape: tuple[int, ...], capsys: Any) -> None:
    """Everything but mean and std: the weights are others."""
    total, details = module_stats(make(), inputs=np.random.rand(*shape).astype("float32"))
    want = expected(f"{sample}.module_stats")
    assert total._asdict() == want["total_stats"]
    for name in TABLES:
        found = without(as_json(getattr(details, name)), "mean", "std")
        assert found == without(want["stats_details"][name], "mean", "std"), name
    assert f"{total.param_dims:,}" in ("445", "177,362", "11,689,512")
    if sample == "resnet18_224":
        assert (total.param_dims, total.flops, total.act_dims) == (11_689_512, 1_833_266_664, 5_169_128)
    assert "flops stats" in capsys.readouterr().out


class Mixed(M.Module):
    """Modules of many kinds, one of them called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = M.Conv2d(4, 8, 3, groups=2)
        self.up = M.ConvTranspose2d(8, 4, 2, stride=2)
        self.norm = M.GroupNorm(2, 4)
        self.instance = M.InstanceNorm(4)
        self.pool = M.MaxPool2d(3, 2)
        self.adaptive = M.AdaptiveAvgPool2d((2, 2))
        self.shared = M.Linear(16, 16)
        self.layer_norm = M.LayerNorm(16)
        self.embedding = M.Embedding(3, 4)

    def forward(self, x: Any) -> Any:
        x = F.relu(self.norm(self.up(self.conv(x))))
        x = F.flatten(self.adaptive(self.pool(self.instance(x))), 1)
        return self.layer_norm(F.softmax(self.shared(self.shared(x))))


@pytest.mark.parametrize("how", ["inputs", "input_shapes"])
def test_the_same_as_megengine_on_many_modules(how: str) -> None:
    model = Mixed()
    x = np.random.rand(2, 4, 16, 16).astype("float32")
    given: dict[str, Any] = {"inputs": x} if how == "inputs" else {"input_shapes": (2, 4, 16, 16)}
    same(
        module_stats(model, **given, logging_to_stdout=False),
        their_module_stats(model, **given, logging_to_stdout=False),
    )


class Small(M.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant = M.QuantStub()
        self.conv = M.ConvBnRelu2d(4, 8, 3)
        self.more = M.Conv2d(8, 4, 1)
        self.dequant = M.DequantStub()

    def forward(self, x: Any) -> Any:
        return self.dequant(self.more(self.conv(self.quant(x))))


def test_float_qat_and_qint8() -> None:
    x = np.random.rand(1, 4, 8, 8).astype("float32")
    model = Small()
    same(module_stats(model, x, logging_to_stdout=False), their_module_stats(model, x, logging_to_stdout=False))
    model = quantize_qat(model, ema_fakequant_qconfig)
    model.train()
    model(mge.tensor(x))
    same(module_stats(model, x, logging_to_stdout=False), their_module_stats(model, x, logging_to_stdout=False))
    model = quantize(model)
    model.eval()
    ours = module_stats(model, x, logging_to_stdout=False)
    same(ours, their_module_stats(model, x, logging_to_stdout=False))
    assert ours[1].params[0]["nbits"] == 8


def test_fused_modules_stand_beside_megengines_figure(capsys: pytest.CaptureFixture[str]) -> None:
    """MegEngine counts nothing of a ConvBn module that trains: the figure of the float model is the true one."""
    x = np.random.rand(1, 4, 8, 8).astype("float32")
    model = Small()
    whole = module_stats(model, x, logging_to_stdout=False)[0]
    assert whole.fused_flops == 0
    capsys.readouterr()
    total = module_stats(quantize_qat(model, ema_fakequant_qconfig), x)[0]
    assert total.flops == 4 * 36 * (8 + 1), "MegEngine's own: the plain convolution"
    assert total.flops + total.fused_flops == whole.flops
    printed = capsys.readouterr().out
    assert "total_flops, all modules" in printed
    assert "MegEngine counts them as nothing" in printed


def test_the_mode_of_modules_is_left_as_it_was() -> None:
    model = Tiny()
    model.train()
    model.bn.eval()
    module_stats(model, input_shapes=[(1, 3, 8, 8)], logging_to_stdout=False)
    assert model.training
    assert not model.bn.training
    assert len(model.conv._forward_hooks) == 0


def test_where_megengine_crashes() -> None:
    own = OwnWeight()
    x = np.random.rand(2, 3).astype("float32")
    with pytest.raises(KeyError):
        their_module_stats(own, x, logging_to_stdout=False)
    total, details = module_stats(own, x, logging_to_stdout=False)
    assert total.param_dims == 4 * 3 + 4 + 4 * 2 + 2  # all that the model has
    assert {row["name"] for row in details.params} >= {"-w", "-shift", "fc-w", "fc-b"}

    lstm = M.LSTM(3, 4)
    sequence = np.random.rand(5, 2, 3).astype("float32")
    with pytest.raises(KeyError):
        their_module_stats(lstm, sequence, logging_to_stdout=False)
    total, _ = module_stats(lstm, sequence, logging_to_stdout=False)
    assert total.param_dims == 4 * 4 * (3 + 4 + 2)  # once, though MegEngine keeps them a second time, by cell

    # The same with no hooked module at all, where shares of nothing are asked for.
    total, details = module_stats(M.ReLU(), x, logging_to_stdout=False)
    assert total == (0, 0, 0, 0, 0)
    assert details.flops == [{"name": "total", "flops": "0.000 OPs", "output_shapes": 0}]


def test_multi_head_attention() -> None:
    attention = M.MultiHeadAttention(8, 2)

    class Attending(M.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = attention

        def forward(self, x: Any) -> Any:
            return self.attention(x, x, x)[0]

    total, _ = module_stats(Attending(), np.random.rand(2, 5, 8).astype("float32"), logging_to_stdout=False)
    assert total.param_dims == sum(int(np.prod(p.shape)) for p in attention.parameters())


def test_formulas_and_types_of_ones_own() -> None:
    class Double(M.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    @register_flops(Double)
    def flops(module: Any, inputs: Any, outputs: Any) -> float:
        return int(np.prod(outputs[0].shape))

    register_hook_module(Double)
    total, details = module_stats(Double(), input_shapes=[(2, 3)], logging_to_stdout=False)
    assert (total.flops, total.act_dims) == (6, 6)
    assert details.flops[0]["class_name"] == "Double"
    with pytest.raises(TypeError):
        register_hook_module(3)


def test_no_input_at_all() -> None:
    with pytest.raises(opscope.OpscopeError, match="needs inputs, or input_shapes"):
        module_stats(Tiny())


# -- visualize --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["tiny", "resnet18_w8"])
@pytest.mark.parametrize("kind", ["noinput", "default_noinput", "opt_noinput", "fbsv1_noinput"])
def test_visualize_of_the_samples(model: str, kind: str, tmp_path: Path) -> None:
    """With MegEngine also the names it makes up, and the shapes that the first format does not have."""
    label = kind.removesuffix("noinput").rstrip("_")
    path = DATA / (f"{model}.{label}.mge" if label else f"{model}.mge")
    ignored: tuple[str, ...] = ()
    if not path.exists():  # packed, and without its weights
        path = tmp_path / path.name
        path.write_bytes(gzip.decompress((DATA / f"{path.name}.gz").read_bytes()))
        ignored = ("mean", "std")
    total, details = visualize(str(path), None, logging_to_stdout=False)
    want = expected(f"{model}.visualize_{kind}")
    assert total._asdict() == want["total_stats"]
    for name in TABLES:
        found = without(as_json(getattr(details, name)), *ignored)
        assert found == without(want["stats_details"][name], *ignored), name


@pytest.mark.parametrize("model", ["tiny", "resnet18_w8"])
def test_visualize_with_an_input(model: str, tmp_path: Path) -> None:
    """MegEngine crashes here; the sample is of a patched one, which still takes the input for a parameter."""
    want = expected(f"{model}.visualize_input_patched")
    array = load_arrays(str(DATA / f"{model}.data.pickle"))
    assert isinstance(array, np.ndarray)
    total, details = visualize(str(DATA / f"{model}.mge"), str(tmp_path), input=array, logging_to_stdout=False)
    sample = want["stats_details"]
    first, *params, _ = sample["params"]
    assert first["name"] == "data"
    shares = ("size_cum", "ratio", "percentage", "size_bar")  # of another total
    assert without(as_json(details.params[:-1]), *shares) == without(params, *shares)
    assert total.param_dims == want["total_stats"]["param_dims"] - first["param_dim"]
    assert total.flops == want["total_stats"]["flops"]
    assert as_json(details.flops) == sample["flops"]
    assert without(as_json(details.activations), "class_name") == without(sample["activations"], "class_name")
    assert details.activations[0]["class_name"] == "Host2DeviceCopy"


def test_the_batch_is_that_of_the_input(tmp_path: Path) -> None:
    path = str(tmp_path / "m.mge")
    dump(Tiny(), path, (2, 3, 8, 8))
    own, _ = visualize(path, None, logging_to_stdout=False)
    four, details = visualize(path, None, inp_dict={"data": np.ones((4, 3, 8, 8), "float32")}, logging_to_stdout=False)
    theirs, _ = their_visualize(path, "", logging_to_stdout=False)
    assert theirs.flops * 2 == own.flops
    assert own.flops * 2 == four.flops
    assert details.activations[0]["shape"] == (4, 3, 8, 8)
    with pytest.raises(opscope.OpscopeError, match="the model has the inputs data; data is given for other"):
        visualize(path, None, inp_dict={"other": np.ones(1, "float32")})


class Attention(M.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = M.Linear(8, 8)
        self.norm = M.LayerNorm(8)

    def forward(self, x: Any) -> Any:
        q = self.q(x)
        return self.norm(F.matmul(F.softmax(F.matmul(q, x, transpose_b=True)), x)).mean()


class Grouped(M.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = M.Conv2d(4, 8, 3, groups=2, dilation=2)
        self.up = M.ConvTranspose2d(8, 4, 2, stride=2)

    def forward(self, x: Any) -> Any:
        x = F.sigmoid(self.up(self.conv(x)))
        return F.concat([x, F.max_pool2d(x, 3, 1, 1)], axis=1).astype("float16")


def test_beside_megengines_own(tmp_path: Path) -> None:
    """Fresh dumps of other models, without an input: the same to the last digit."""
    models = [(Grouped(), (1, 4, 16, 16)), (Attention(), (1, 5, 8)), (ResNet18(4, 3), (1, 3, 32, 32))]
    for number, (model, shape) in enumerate(models):
        path = str(tmp_path / f"{number}.mge")
        dump(model, path, shape)
        with contextlib.redirect_stderr(io.StringIO()):
            theirs = their_visualize(path, "", logging_to_stdout=False)
        same(visualize(path, None, logging_to_stdout=False), theirs)


def test_the_command_line_with_input_data(tmp_path: Path, capsys: Any) -> None:
    log = tmp_path / "log"
    argv = [str(DATA / "tiny.mge"), "--log_path", str(log), "--load_input_data", str(DATA / "tiny.data.pickle")]
    flags = ["--cal_flops", "--cal_params", "--cal_activations", "--logging_to_stdout"]
    assert network_visualize.main([*argv, *flags]) == 0
    printed = capsys.readouterr().out
    assert "443" in printed
    assert "635" not in printed
    assert list(log.glob("events.out.tfevents.*"))


# -- a large file -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "resnet18.mge"
    dump(ResNet18(), str(path), (1, 3, 224, 224))
    assert path.stat().st_size > 46_000_000
    return path


def test_a_large_file_is_mapped(large: Path) -> None:
    """46 MB take at most 60 MB beyond the mapping (and beyond Python with numpy)."""
    code = (
        f"{PEAK}\n"
        "import opscope, opscope.readers.megengine, opscope.wire\n"
        "from opscope.readers import registry\nlist(registry.readers())\n"
        "before = peak()\n"
        f"for _ in range(5): c = opscope.open({str(large)!r})\n"
        "print(c.graph.n_nodes, peak() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    nodes, kilobytes = done.stdout.split()
    assert int(nodes) == 78
    assert int(kilobytes) <= 60 * 1024


def test_visualize_of_resnet18_at_224(large: Path) -> None:
    total, details = visualize(str(large), None, logging_to_stdout=False)
    want = expected("resnet18_224.visualize_noinput")
    assert total._asdict() == want["total_stats"]
    for name in TABLES:
        found = without(as_json(getattr(details, name)), "mean", "std", "name")
        assert found == without(want["stats_details"][name], "mean", "std", "name"), name
