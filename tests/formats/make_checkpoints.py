"""Writes tests/data/checkpoints: files of the real writers.

python tests/formats/make_checkpoints.py        (in the lane "formats")
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import torch
from gguf.constants import GGMLQuantizationType as Kind
from safetensors.torch import save_file

OUT = Path(__file__).parents[1] / "data" / "checkpoints"


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    writer = gguf.GGUFWriter(OUT / "blocks.gguf", "llama")
    writer.add_block_count(2)
    writer.add_array("tokenizer.ggml.tokens", [f"t{i}" for i in range(20)])
    for kind in (Kind.F32, Kind.F16, Kind.BF16, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q8_0):
        numbers = random.normal(size=(2, 64)).astype(np.float32)
        writer.add_tensor(f"blk.0.attn_{kind.name.lower()}.weight", gguf.quants.quantize(numbers, kind), raw_dtype=kind)
    for kind, scales in ((Kind.Q4_K, (0, 2)), (Kind.Q5_K, (0, 2)), (Kind.Q6_K, (208,)), (Kind.Q2_K, (80, 82))):
        _, width = gguf.GGML_QUANT_SIZES[kind]
        blocks = random.integers(0, 256, size=(2, width)).astype(np.uint8)  # any bits are numbers, but for the scales
        for at in scales:
            blocks[:, at : at + 2] = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
        writer.add_tensor(f"blk.1.ffn_{kind.name.lower()}.weight", blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    save_file(model.state_dict(), OUT / "small.safetensors", metadata={"format": "pt"})
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    torch.save(
        {"epoch": 1, "state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}, OUT / "training.ckpt"
    )


if __name__ == "__main__":
    main()
