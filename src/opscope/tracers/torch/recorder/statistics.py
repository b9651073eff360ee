"""Statistics of every tensor while it is there: computed where the tensor is, kept as a row of numbers. No tensor is
kept, and the program never waits for a device."""

from __future__ import annotations

from typing import Any

from opscope.ir.measurements import Figures

from .figures_cpu import OnCpu
from .figures_device import OnDevice


class Statistics:
    """Takes tensors and gives figures by value."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._strided = torch.strided
        self._cpu = OnCpu(torch)
        self._devices: dict[Any, OnDevice] = {}
        self._unset: set[int] = set()  # storages that hold no numbers yet
        self._whole: dict[int, int] = {}  # storage -> a value that shows all of it, and was not written since
        self._same: dict[int, int] = {}  # value -> another one that shows the same numbers

    def made_empty(self, storage: int) -> None:
        """An operator took memory and wrote nothing there: what lies in it is no number of the program's."""
        self._unset.add(storage)

    def take(self, value: int, tensor: Any, storage: int, is_write: bool) -> None:
        """A tensor that an operator made, wrote, or reads for the first time."""
        if is_write:
            self._unset.discard(storage)
            self._whole.pop(storage, None)
        if storage in self._unset:
            return
        tensor = tensor.detach()
        if tensor.layout is not self._strided:
            tensor = _numbers_of_sparse(self._torch, tensor)
        count = tensor.numel()
        try:
            shows_all = tensor.untyped_storage().nbytes() == count * tensor.element_size()
        except (RuntimeError, NotImplementedError):
            shows_all = False
        if shows_all and 0 in tensor.stride():  # a few of them, many times
            shows_all = False
        if shows_all and not is_write and (known := self._whole.get(storage)) is not None:
            self._same[value] = known  # another view of the same numbers
            return
        device = tensor.device
        if device.type == "meta" or type(tensor).__name__ == "FakeTensor":
            return
        if tensor.is_quantized:
            tensor = tensor.dequantize()
        if device.type == "cpu":
            self._cpu.take(value, tensor)
        else:
            block = self._devices.get(device)
            if block is None:
                block = self._devices[device] = OnDevice(self._torch, device)
            block.take(value, tensor)
        if shows_all:
            self._whole[storage] = value

    def has_nan(self) -> bool:
        """Whether any number so far is NaN; devices are waited for."""
        return any(found.nan for found in self.finish().values())

    def finish(self) -> dict[int, Figures]:
        """The figures by value; now devices are waited for."""
        found = dict(self._cpu.finish())
        for block in self._devices.values():
            found |= block.finish()
        for value, known in self._same.items():
            if known in found:
                found[value] = found[known]
        return found


def _numbers_of_sparse(torch: Any, tensor: Any) -> Any:
    if tensor.layout is torch.sparse_coo:
        return tensor._values()
    return tensor.to_dense() if str(tensor.layout) in ("torch._mkldnn", "torch.jagged") else tensor.values()
