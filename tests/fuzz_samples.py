"""What tests/fuzz.py changes: real files of every reader, alone, in folders and packed."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import tempfile
import zipfile
from pathlib import Path

import numpy as np

import opscope
from measured_files import HISTORY, nsight, snapshot
from mutations import tarred, zipped
from opscope.readers.torch.compiler import log

try:
    import zstandard
except ImportError:  # Zstandard files are left out
    zstandard = None

DATA = Path(__file__).parent / "data"
LARGEST = 300_000


def samples() -> dict[str, bytes]:
    """Real traces, and the same as .opscope files and as Model Explorer's JSON."""
    found = {p.name: p.read_bytes() for p in sorted((DATA / "jittor").rglob("*.pkl")) if 0 < p.stat().st_size < LARGEST}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("simple_model.pkl", "vardata_mlp.pkl", "profiled_mlp_train.pkl"):
            out = Path(folder, f"{name}.opscope")
            opscope.open(next(DATA.rglob(name))).save(out)
            found[out.name] = out.read_bytes()
        for name in ("simple_model.pkl", "simple_model_train.pkl"):
            out = Path(folder, f"{name}.json")
            opscope.open(next(DATA.rglob(name))).save(out)
            found[out.name] = out.read_bytes()
            # As another tool would write it: then our reader takes all attributes as they are.
            found[f"other.{out.name}"] = found[out.name].replace(b"opscope 1", b"other", 1)
    plain = found | xla_samples() | torch_samples() | megengine_samples() | hidet_samples() | paddle_samples()
    plain |= file_samples()
    return plain | opscope_samples() | compiler_samples() | packed_samples() | report_samples() | tool_samples()


def file_samples() -> dict[str, bytes]:
    """ONNX, TensorFlow and checkpoints: as their writers made them; archives with the names that give them away."""
    found = {
        path.name: path.read_bytes()
        for folder in ("onnx", "tensorflow", "checkpoints")
        for path in sorted((DATA / folder).glob("*.*"))
        if path.is_file() and path.stat().st_size < LARGEST
    }
    found["saved_model.pb"] = (DATA / "tensorflow" / "saved" / "saved_model.pb").read_bytes()
    arrays = {"fc.weight": np.arange(12, dtype=np.float32).reshape(3, 4), "bn._mean": np.zeros(3)}
    found["arrays.pdparams"] = pickle.dumps(arrays, 4)
    out = io.BytesIO()
    np.savez(out, **arrays)
    return found | {"arrays.npz": out.getvalue()}


def opscope_samples() -> dict[str, bytes]:
    """Captures with all there is: stages, links, bodies, groups, times, values, costs, texts; and older versions."""
    paths = [path for name in ("page", "measured", "older") for path in sorted((DATA / name).glob("*.opscope"))]
    return {f"{path.parent.name}-{path.name}": path.read_bytes() for path in paths}


def xla_samples() -> dict[str, bytes]:
    """HLO as text and proto, StableHLO, a dump in a .tar, a profile."""
    found = {path.name: path.read_bytes() for path in sorted((DATA / "xla").glob("step.*"))}
    profile = gzip.decompress((DATA / "xla" / "h200.xplane.pb.gz").read_bytes())
    return found | {"h200.xplane.pb": profile, "xla.tar": gzip.decompress((DATA / "xla" / "dump.tar.gz").read_bytes())}


def compiler_samples() -> dict[str, bytes]:
    """TORCH_TRACE logs, an output code alone, and a folder as TORCH_COMPILE_DEBUG makes it, in a .tar."""
    paths = sorted((DATA / "torch" / "trace").glob("*.gz"))
    logs = {path.name.replace(".log.gz", ".trace.log"): gzip.decompress(path.read_bytes()) for path in paths}
    folder = debug_folder(logs["loss-h200.trace.log"])
    code = next(data for name, data in folder.items() if name.endswith("output_code.py"))
    return logs | {"output_code.py": code, "debug.tar": tarred(folder)}


# What of a log stands in which file of a debug folder.
_IN_FOLDER = {
    "before_post_grad_graph": "fx_graph_readable.py",
    "inductor_post_grad_graph": "fx_graph_transformed.py",
    "inductor_output_code": "output_code.py",
    "inductor_provenance_tracking_node_mappings": "inductor_provenance_tracking_node_mappings.json",
}


def debug_folder(trace: bytes) -> dict[str, bytes]:
    """The files of a log's graphs as torch_compile_debug has them, with what the scheduler said beside them."""
    run = "torch_compile_debug/run_2026_11_19_10_00_00_000000-pid_1"
    found, graphs = {}, 0
    for entry in log.parse(trace.splitlines(keepends=True)).entries:
        graphs += entry.kind == "before_post_grad_graph"
        if entry.kind in _IN_FOLDER and graphs:
            model = f"model__1_{'forward' if graphs == 1 else 'backward'}_{graphs}.{graphs - 1}"
            found[f"{run}/torchinductor/{model}/{_IN_FOLDER[entry.kind]}"] = entry.text.encode()
    said = "[__fusion] ===== attempting fusion (1/10): 3 nodes =====\n"
    said += "[__fusion] SchedulerNode(name='op0'), x {'origins=OrderedSet([add, mul])'}\n"
    said += "[__fusion] cannot fuse op0 with op1: no shared data\n"
    return found | {f"{run}/fusion.log": (said * 2).encode()}


def packed_samples() -> dict[str, bytes]:
    """Dump folders in zip and tar files, and compressed files; a packed file in a packed file."""
    found = {}
    for path in (DATA / "hidet" / "0.2.1" / "outs", DATA / "paddle" / "example_dump", DATA / "paddle" / "stacks_dump"):
        found[f"{path.parent.name}-{path.name}.zip"] = zipped(files_of(path))
    found["dump.tar"] = tarred(files_of(DATA / "paddle" / "example_dump"))
    small = [DATA / "jittor" / "simple_model.pkl", DATA / "torch" / "chakra.json", DATA / "torch" / "net.pt2"]
    for path in small:
        found[f"{path.name}.gz"] = gzip.compress(path.read_bytes())
    found["trace.log.gz.zip"] = zipped({"rank0.trace.log.gz": (DATA / "torch/trace/loss-h200.log.gz").read_bytes()})
    found["dump.tar.gz"] = gzip.compress(found["dump.tar"])
    if zstandard is not None:
        for path in small:
            found[f"{path.name}.zst"] = zstandard.ZstdCompressor().compress(path.read_bytes())
    return found


def report_samples() -> dict[str, bytes]:
    """What is given as `--profile`: each begins with the name of the capture that it belongs to (`fuzz.MEASURED`)."""
    found = {
        "profile-of-jittor.json": (DATA / "jittor" / "quirks" / "profiled_report.json").read_bytes(),
        "profile-of-hidet.log": (DATA / "hidet" / "0.2.1" / "profile_pass.log").read_bytes(),
    }
    with gzip.open(DATA / "torch" / "profile" / "eager.trace.json.gz") as file:
        trace = json.load(file)
    events = [event for event in trace["traceEvents"] if event.get("cat") in ("cpu_op", "kernel", "cuda_runtime")]
    some = events[:: max(len(events) // 150, 1)]
    return found | {"profile-of-torch.json": json.dumps({**trace, "traceEvents": some}).encode()}


def tool_samples() -> dict[str, bytes]:
    """A snapshot of the CUDA allocator, alone and as a profile, and an export of Nsight Systems."""
    memory = snapshot(HISTORY, [(0, 16384)])
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.sqlite")
        nsight(report)
        return {"memory.pkl": memory, "profile-of-torch.pkl": memory, report.name: report.read_bytes()}


def files_of(folder: Path) -> dict[str, bytes]:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size < LARGEST]
    return {str(path.relative_to(folder.parent)): path.read_bytes() for path in paths}


def megengine_samples() -> dict[str, bytes]:
    """Dumped models of both formats; they are small, so that a changed byte is seldom one of a weight."""
    return {p.name: p.read_bytes() for p in sorted((DATA / "megengine").glob("tiny*.mge"))}


def torch_samples() -> dict[str, bytes]:
    """Exported programs, TorchScript archives, an execution trace; and the JSON of a program by itself."""
    found = {
        p.name: p.read_bytes()
        for p in sorted((DATA / "torch").iterdir())
        if p.suffix in (".pt2", ".pt", ".ptl") or p.name == "chakra.json"
    }
    for name in ("net", "branches", "sized", "joint"):
        with zipfile.ZipFile(DATA / "torch" / f"{name}.pt2") as archive:
            found[f"{name}.model.json"] = archive.read(f"{name}/models/model.json")
    return found | profile_samples()


def profile_samples() -> dict[str, bytes]:
    """A profile, as PyTorch writes it and as a bare list: some of its operators, kernels and Python functions."""
    with gzip.open(DATA / "torch" / "profile" / "compile.trace.json.gz") as file:
        trace = json.load(file)
    events = [*trace["traceEvents"][:40], *(event for event in trace["traceEvents"] if event.get("cat") == "kernel")][
        :140
    ]
    whole = json.dumps({**trace, "traceEvents": events}, indent=2)
    return {"kineto.json": whole.encode(), "kineto-list.json": json.dumps(events).encode()}


def paddle_samples() -> dict[str, bytes]:
    """Dumps, logs (the beginning of long ones) and PIR programs."""
    paths = [path for path in sorted((DATA / "paddle").iterdir()) if path.suffix in (".dot", ".log")]
    found = {path.name: path.read_bytes()[:60_000] for path in paths}
    for name in ("branches", "example", "example_train"):
        found[f"{name}.json"] = (DATA / "paddle" / f"{name}.json").read_bytes()
    return found


def hidet_samples() -> dict[str, bytes]:
    """Graphs as JSON and as text, of both dialects, with fused operators and without; and a run that printed two."""
    found: dict[str, bytes] = {}
    for version, fused in (("0.2.1", "5_FuseOperatorPass"), ("0.6.1", "6_FuseOperatorPass")):
        folder = DATA / "hidet" / version
        for name in ("outs/0_Origin.json", f"outs/{fused}.json", "graph_before.txt", "graph_after.txt"):
            found[f"hidet-{version}-{Path(name).name}"] = (folder / name).read_bytes()
        other = "a step is done in 3 ms\n" * 300
        texts = [(folder / f"graph_{when}.txt").read_text() for when in ("before", "after")]
        found[f"hidet-{version}-run.txt"] = "".join(f"{other}{text}\n" for text in texts).encode()
    return found
