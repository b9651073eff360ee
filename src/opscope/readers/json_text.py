"""JSON from a file of unknown origin: read, or one line about what is wrong with it."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable
from typing import Any

from opscope.errors import BadInput

# How a profile of ONNX Runtime begins: a Chrome trace, but of no use without its model.
ONNX_RUNTIME = re.compile(rb'\s*\[\s*\{\s*"cat"\s*:\s*"Session"')

LARGEST = 512 << 20  # bytes; what JSON says takes ten times as much in memory


def parse(data: bytes, *, parse_int: Callable[[str], int | float] | None = None) -> Any:
    enabled = gc.isenabled()
    gc.disable()  # it would look at every object again and again while the tree grows
    try:
        return json.loads(data.decode("utf-8-sig"), parse_int=parse_int)
    except UnicodeDecodeError as error:
        raise BadInput(f"byte {error.start} is not UTF-8") from None
    except RecursionError:
        raise BadInput("its JSON is nested too deep") from None
    except ValueError as error:  # also a number of thousands of digits
        raise BadInput(f"bad JSON ({error}); it may have been cut off: copy or save it again") from None
    finally:
        if enabled:
            gc.enable()
