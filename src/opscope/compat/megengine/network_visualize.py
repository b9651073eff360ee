"""python -m opscope.compat.megengine.network_visualize MODEL [LOG] [--log_path LOG] …

The command line of `megengine.tools.network_visualize`. The log folder may also stand second, as its manual shows it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from opscope.errors import OpscopeError

from .arrays import load_arrays
from .visualize import visualize

__all__ = ["main", "visualize"]

_FLAGS = {
    "cal_params": "calculate and record the size of parameters",
    "cal_flops": "calculate and record the FLOPs of operators",
    "cal_activations": "calculate and record the size of activations",
    "logging_to_stdout": "print all statistics",
}


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    flags: dict[str, Any] = {name: getattr(args, name) or args.all for name in _FLAGS}
    log = args.log_path or args.log or ("./log" if args.all else None)
    try:
        data: Any = load_arrays(args.load_input_data) if args.load_input_data else None
        given: dict[str, Any] = {"inp_dict" if isinstance(data, dict) else "input": data}
        visualize(args.model_path, log, bar_length_max=args.bar_length_max, **given, **flags)
    except OpscopeError as error:
        print(f"opscope: {error}", file=sys.stderr)
        return 2
    if log:
        print(f"{args.model_path}: read; its graph is in {log}: tensorboard --logdir {log}", file=sys.stderr)
    elif not any(flags.values()):
        asked = ", ".join(f"--{name}" for name in _FLAGS)
        print(
            f"{args.model_path}: read; nothing was asked for: --all, or some of {asked}; --log_path LOG writes a log for "
            "TensorBoard",
            file=sys.stderr,
        )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m opscope.compat.megengine.network_visualize",
        description="Statistics of a dumped MegEngine model, and its graph for TensorBoard.",
    )
    parser.add_argument("model_path", help="the dumped model")
    parser.add_argument("log", nargs="?", metavar="log_path", help="the folder of the TensorBoard log")
    parser.add_argument("--log_path", help="the same")
    parser.add_argument(
        "--load_input_data",
        metavar="FILE",
        help="a pickled numpy array, or a dict of arrays by input name",
    )
    parser.add_argument("--bar_length_max", type=int, default=20, help="the length of the longest bar (20)")
    for name, text in _FLAGS.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    parser.add_argument("--all", action="store_true", help="all of these; the log is ./log unless given")
    return parser


if __name__ == "__main__":
    sys.exit(main())
