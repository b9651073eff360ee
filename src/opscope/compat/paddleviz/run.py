"""python -m opscope.compat.paddleviz.run example.py: what `python paddleviz/run.py example.py` did.

The script runs here, in this process: its log is not needed. In it, `paddleviz` is opscope's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import opscope.compat.paddleviz as own
from opscope.compat.paddleviz import viz
from opscope.errors import OpscopeError
from opscope.tracers.failing import report_of
from opscope.tracers.script import as_main, execute


def main(argv: list[str] | None = None) -> int:
    args = sys.argv[1:] if argv is None else argv
    if not args or args[0] in ("-h", "--help"):
        print(__doc__, file=sys.stderr)
        return 0 if args else 2
    path = Path(args[0])
    if not path.is_file():
        print(f"error: {args[0]}: no such script", file=sys.stderr)
        return 2
    own.on()
    before = {name: sys.modules.get(name) for name in ("paddleviz", "paddleviz.viz")}
    sys.modules["paddleviz"], sys.modules["paddleviz.viz"] = own, viz
    try:
        with as_main(args[0], args[1:], path.absolute().parent):
            execute(path.absolute())
    except OpscopeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 1 if leaving.code else 0
    except BaseException as error:
        sys.stderr.write(report_of(error)[0])
        return 1
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    return 0


if __name__ == "__main__":
    sys.exit(main())
