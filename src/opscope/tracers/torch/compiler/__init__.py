"""Live capture of torch.compile: what was compiled while we watched, as the same records that TORCH_TRACE writes.

`stream` listens to PyTorch's own structured log; `nodes`, `passes` and `schedule` add what only the process knows;
`hooks` is where torch's private parts are held. The reader of the logs makes the capture of it.
"""

from .capture import capture_call
from .watch import Watch

__all__ = ["Watch", "capture_call"]
