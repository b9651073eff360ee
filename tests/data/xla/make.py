"""Makes the files beside this one with JAX on a CPU, in this folder, so that no path of a machine gets into them:

python -c "exec(compile(open('make.py').read(), 'train.py', 'exec'), {'__name__': '__main__', '__file__': 'train.py'})"

The profile is of an H200: the program of the issue's sample, cut to the device and the module that ran.
"""

import io
import tarfile
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp

HERE = Path(__file__).parent


def loss(params, x):
    for name, w in params.items():
        with jax.named_scope(name):
            x = jnp.tanh(x @ w)

    def step(h, row):
        return h * 0.5 + row, h.sum()

    with jax.named_scope("smooth"):
        return jax.lax.scan(step, jnp.zeros(4), x)[1].mean()


def main() -> None:
    params = {"first": jnp.ones((8, 16)), "second": jnp.ones((16, 4))}
    lowered = jax.jit(jax.value_and_grad(loss)).lower(params, jnp.ones((6, 8)))
    (HERE / "step.stablehlo.mlir").write_text(lowered.as_text(debug_info=True), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        options = {"xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_proto": True, "xla_dump_hlo_as_text": True}
        compiled = lowered.compile({"xla_dump_to": folder, **options})
        (HERE / "step.hlo.txt").write_text(compiled.as_text(), encoding="utf-8")
        with tarfile.open(HERE / "dump.tar.gz", "w:gz") as bundle:
            for path in sorted(Path(folder).iterdir()):
                if path.suffix in (".txt", ".pb") and "ir-" not in path.name:
                    info = tarfile.TarInfo(f"dump/{path.name}")
                    content = path.read_bytes()
                    info.size = len(content)
                    bundle.addfile(info, io.BytesIO(content))
            final = next(path for path in Path(folder).iterdir() if path.name.endswith("after_optimizations.hlo.pb"))
            (HERE / "step.hlo.pb").write_bytes(final.read_bytes())


if __name__ == "__main__":
    main()
