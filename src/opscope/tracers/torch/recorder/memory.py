"""Which value a tensor is: follows views and in-place writes through the memory that tensors share.

A value is what an operator made, for ever; a tensor is a window on memory that later operators may write.
So a tensor is looked up by its memory (the storage), its window (offset, shape, strides, dtype) and, where
two tensors have the same window on the same memory (`x` and `x.detach()`), by the tensor object.

No tensor is kept alive. A storage is held by a weak reference of torch's own: its memory goes when its last
tensor goes, but its address is not given to another storage while we record.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple

from opscope.tracers.torch import private

WINDOW_BITS = 24  # of a place: the rest is the storage
_ALL = -1  # the window of a write to a whole storage
_MOST_PARTS = 64  # writes to parts of one storage before the next write takes them all in
_NO_STORAGE = (RuntimeError, NotImplementedError)  # what a tensor without one raises
_address: Callable[[Any], int] = attrgetter("_cdata")


class Window(NamedTuple):
    """The part of a storage that a tensor shows, and how. Where a tensor has no one shape and no strides, the last
    fields say what it has instead."""

    offset: Any
    shape: Any  # None: not known
    stride: Any
    dtype: Any
    parts: tuple[tuple[int, ...], ...] | None = None  # of a nested tensor: the sizes of each of its tensors
    layout: str = ""  # of a sparse tensor: `sparse_csr`
    entries: int | None = None  # of a sparse tensor: how many numbers it stores


class Extent(NamedTuple):
    """Where a window begins and ends in its storage, in bytes, and whether it fills all between."""

    start: int
    end: int
    is_dense: bool


class Memory:
    """Values in the order they were made, and the way from a tensor to its value."""

    def __init__(self, torch: Any) -> None:
        self._tensor: type[Any] = torch.Tensor
        self._storage: Any = torch.Tensor.untyped_storage
        self._free: Any = torch.UntypedStorage._free_weak_ref
        self._expired: Any = torch.UntypedStorage._expired
        self.window_ids: dict[Any, int] = {}
        self.windows: list[Window] = []
        self._extents: dict[int, Extent | None] = {}
        # Torch's address of a storage -> our number. Nothing else has that address before `release`.
        self.storage_ids: dict[int, int] = {}
        self._addresses: list[int] = []
        self._devices: list[Any] = []
        self._odd: dict[int, tuple[Any, int]] = {}  # tensors without a storage (sparse): id -> (weak reference, number)
        # By value:
        self.place: list[int] = []  # storage and window; a list, whose append is twice as fast as an array's
        self.address: list[int] = []  # of the storage; one below zero where a tensor has none
        self.writes: set[int] = set()  # values that an operator wrote over others
        # The newest value by place, and by the tensor object that was seen with it.
        self.newest_at: dict[int, int] = {}
        self.by_object: dict[int, int] = {}
        # Address of a storage -> the writes to it (window, value) since one that wrote it all, or that one alone (a
        # number); and the last of them.
        self.parts: dict[int, list[tuple[int, int]] | int] = {}
        self.last_write: dict[int, int] = {}
        self.crowded: set[int] = set()  # addresses with so many writes to parts that the next one takes them all in
        self._is_whole: dict[int, bool] = {}  # place -> whether its window is all of its storage
        self._first: dict[int, int] = {}  # storage -> the first value in it, among those looked at
        self._looked_at = 0
        self._taken_in: set[int] = set()  # addresses whose next write reads all the writes before it
        self.seen_through: dict[int, int] = {}  # a value -> the write that made it through another window
        # A value that is older than its number -> the last value that was there when it was new: what a write made of a
        # tensor is as old as the write, and what no operator made is older than all.
        self.since: dict[int, int] = {}
        self.outside: list[tuple[int, Any]] = []  # values that no recorded operator made, with a weak reference

    # -- the hot path ---------------------------------------------------------------------------

    def place_of(self, tensor: Any) -> int:
        """Storage and window in one number."""
        return self._located(tensor)[1]

    def _located(self, tensor: Any) -> tuple[int, int]:
        """The address of the storage, and the place."""
        try:
            held = tensor.untyped_storage()
            address = held._cdata
        except _NO_STORAGE:
            storage = self._odd_storage(tensor)
            return ~storage, storage << WINDOW_BITS | self._window(tensor)
        storage = self.storage_ids.get(address)
        if storage is None:
            storage = self.new_storage(tensor, held, address)
        try:
            window = self.window_ids[tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype]
        except (KeyError, TypeError, RuntimeError):
            window = self._window(tensor)
        return address, storage << WINDOW_BITS | window

    def read(self, tensor: Any) -> int | list[int]:
        """The value that this tensor shows now; several where its memory was written in parts."""
        address, place = self._located(tensor)
        value = self.by_object.get(id(tensor))
        if value is None or self.place[value] != place:
            value = self.newest_at.get(place, -1)
        if address in self.parts:
            found = self._read_written(tensor, address, place, value)
        else:
            found = value if value >= 0 else self._from_outside(tensor, address, place)
        # What stands in `by_object` after a read is what the tensor shows, or nothing: see `wrote`.
        if isinstance(found, int) and self.place[found] == place:
            self.by_object[id(tensor)] = found
        else:
            self.by_object.pop(id(tensor), None)
        return found

    def shown(self, tensors: Sequence[Any]) -> list[int]:
        """What each tensor of a list shows, or -1 where it has to be looked up: a list is hundreds of parameters, and
        nearly all of them are the same objects on the same memory as when they were seen last. So each question is
        asked about all of them at once, which no loop of Python's has to do."""
        try:
            storages: Iterable[Any] = map(self._storage, tensors)
            addresses = list(map(_address, storages))
        except (*_NO_STORAGE, TypeError, AttributeError):
            return [-1] * len(tensors)
        found = list(map(self.by_object.get, map(id, tensors), repeat(-1)))
        written = list(map(self.last_write.get, addresses, repeat(-1)))
        if -1 not in found and addresses == list(map(self.address.__getitem__, found)):
            if written == found:  # each was written last by what it shows
                return found
            if max(written, default=-1) < 0:  # none was ever written
                return found
        known, since = self.address, self.since
        for i, (value, address, write) in enumerate(zip(found, addresses, written, strict=True)):
            if value >= 0 and (known[value] != address or write > value or (write >= 0 and value in since)):
                found[i] = -1
        return found

    def made(self, tensor: Any, is_write: bool) -> int:
        """A new value for a tensor that an operator returned or wrote."""
        address, place = self._located(tensor)
        value = self._new_value(tensor, address, place)
        if is_write:
            self.writes.add(value)
            self._written(tensor, address, place, value)
        return value

    def wrote(self, tensor: Any) -> int:
        """A new value for a tensor that was read for the same operator, which wrote it and left its window alone."""
        shown = self.by_object.get(id(tensor))
        if shown is None:
            return self.made(tensor, True)
        address, place = self.address[shown], self.place[shown]
        value = self._new_value(tensor, address, place)
        self.writes.add(value)
        if self._is_whole.get(place):
            self._taken_in.discard(address)
            self.crowded.discard(address)
            self.parts[address] = self.last_write[address] = value
        else:
            self._written(tensor, address, place, value)
        return value

    def wrote_all(self, tensors: Sequence[Any]) -> Iterable[int]:
        """`wrote` for each tensor of a list, where it can be at once."""
        objects = list(map(id, tensors))
        shown = list(map(self.by_object.get, objects))
        if None in shown:
            return [self.wrote(tensor) for tensor in tensors]
        known: list[Any] = shown
        places = list(map(self.place.__getitem__, known))
        if not all(map(self._is_whole.get, places)):
            return [self.wrote(tensor) for tensor in tensors]
        addresses = list(map(self.address.__getitem__, known))
        values = range(len(self.place), len(self.place) + len(objects))
        self.place += places
        self.address += addresses
        self.newest_at.update(zip(places, values, strict=True))
        self.by_object.update(zip(objects, values, strict=True))
        self.writes.update(values)
        self.last_write.update(zip(addresses, values, strict=True))
        self.parts.update(zip(addresses, values, strict=True))
        for marked in (self._taken_in, self.crowded):
            if marked:
                marked.difference_update(addresses)
        return values

    # -- what happens less often ----------------------------------------------------------------

    def _new_value(self, tensor: Any, address: int, place: int) -> int:
        value = len(self.place)
        self.place.append(place)
        self.address.append(address)
        self.newest_at[place] = self.by_object[id(tensor)] = value
        return value

    def new_storage(self, tensor: Any, held: Any, address: int) -> int:
        storage = self.storage_ids[address] = len(self._addresses)
        # The weak reference is the address itself, with torch's weak count one up until `release`.
        self._addresses.append(held._weak_ref())
        self._devices.append(tensor.device)
        return storage

    def _odd_storage(self, tensor: Any) -> int:
        """A sparse tensor has no storage: it is known as an object."""
        reference, storage = self._odd.get(id(tensor), (None, -1))
        if reference is None or reference() is not tensor:
            storage = len(self._addresses)
            self._addresses.append(0)
            self._devices.append(tensor.device)
            self._odd[id(tensor)] = weakref.ref(tensor), storage
        return storage

    def _window(self, tensor: Any) -> int:
        try:
            shown = Window(tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
            if tensor.is_sparse:  # has strides, which say nothing
                shown = _odd_window(tensor)
        except (RuntimeError, NotImplementedError):
            shown = _odd_window(tensor)
        try:
            # As `place_of` looks them up, where it can.
            key: Any = tuple(shown) if shown.parts is not None or shown.layout else tuple(shown[:4])
            hash(key)
        except TypeError:  # symbolic sizes
            key = str(shown)
        window = self.window_ids.setdefault(key, len(self.windows))
        if window == len(self.windows):
            self.windows.append(shown)
        return window

    def _from_outside(self, tensor: Any, address: int, place: int) -> int:
        value = self._new_value(tensor, address, place)
        self.since[value] = -1
        self.outside.append((value, weakref.ref(tensor)))
        return value

    def _writes_to(self, address: int) -> list[tuple[int, int]]:
        """The writes to a storage since one that wrote it all, in time."""
        written = self.parts.get(address, [])
        return [(_ALL, written)] if isinstance(written, int) else written

    def _read_written(self, tensor: Any, address: int, place: int, own: int) -> int | list[int]:
        """Own value, and what was written since over the same bytes. Values are numbered in time."""
        window = place & (1 << WINDOW_BITS) - 1
        since = self.since.get(own, own)
        found: list[int] = []
        for written, value in reversed(self._writes_to(address)):
            if value <= since:
                break
            if self._covers(written, window):
                is_own = self.window_number(value) == window
                found.append(value if is_own else self._seen_through(tensor, address, place, value))
                return found[::-1] if len(found) > 1 else found[0]
            if self._overlap(written, window):
                found.append(value)
        found.append(own if own >= 0 else self._from_outside(tensor, address, place))
        return found[::-1] if len(found) > 1 else found[0]

    def _seen_through(self, tensor: Any, address: int, place: int, write: int) -> int:
        """What a write through another window (`x.view(-1).add_(1)`) made of this tensor, in its own shape."""
        value = self._new_value(tensor, address, place)
        self.seen_through[value] = self.since[value] = write
        return value

    def _written(self, tensor: Any, address: int, place: int, value: int) -> None:
        window = place & (1 << WINDOW_BITS) - 1
        extent = self._extent(window)
        try:
            is_all = extent is not None and extent.is_dense and extent.end - extent.start == _bytes(tensor)
        except _NO_STORAGE:
            is_all = False
        self._is_whole[place] = is_all
        self.last_write[address] = value
        if is_all or address in self._taken_in:
            self._taken_in.discard(address)
            self.crowded.discard(address)
            self.parts[address] = value
        else:
            writes = self.parts[address] = self._writes_to(address)
            writes.append((window, value))
            if len(writes) >= _MOST_PARTS:
                self.crowded.add(address)

    def pending(self, tensor: Any) -> list[int]:
        """Writes to parts of this tensor's memory, once there are so many that the next one should take them in."""
        shown = self.by_object.get(id(tensor))
        address = self._located(tensor)[0] if shown is None else self.address[shown]
        if address not in self.crowded:
            return []
        self._taken_in.add(address)
        return [value for _, value in self._writes_to(address)]

    def made_of(self, tensor: Any) -> list[int]:
        """The values whose bytes a tensor shows that has just been made as a window on memory."""
        address, place = self._located(tensor)
        storage, window = place >> WINDOW_BITS, place & (1 << WINDOW_BITS) - 1
        found: list[int] = []
        for written, value in reversed(self._writes_to(address)):
            covers = self._covers(written, window)
            if covers or self._overlap(written, window):
                found.append(value)
            if covers:
                return found[::-1]
        for value in range(self._looked_at, len(self.place)):
            self._first.setdefault(self.storage(value), value)
        self._looked_at = len(self.place)
        return [self._first.get(storage, -1), *found[::-1]]

    def _extent(self, window: int) -> Extent | None:
        if window not in self._extents:
            shown = self.windows[window]
            try:
                self._extents[window] = _extent(shown)
            except (TypeError, RuntimeError):  # symbolic sizes
                self._extents[window] = None
        return self._extents[window]

    def _covers(self, written: int, window: int) -> bool:
        if written in (window, _ALL):
            return True
        a, b = self._extent(written), self._extent(window)
        return a is not None and b is not None and a.is_dense and a.start <= b.start and b.end <= a.end

    def _overlap(self, written: int, window: int) -> bool:
        a, b = self._extent(written), self._extent(window)
        if a is None or b is None:
            return True  # not known: then it may
        if a.end <= b.start or b.end <= a.start:
            return False
        return not _apart(self.windows[written], self.windows[window])

    # -- after the recording ----------------------------------------------------------------------

    def __len__(self) -> int:
        """How many values there are."""
        return len(self.place)

    def storage(self, value: int) -> int:
        return self.place[value] >> WINDOW_BITS

    def window_number(self, value: int) -> int:
        return self.place[value] & (1 << WINDOW_BITS) - 1

    def device(self, value: int) -> str:
        """Where a value is, if not on the CPU."""
        device = self._devices[self.storage(value)]
        return "" if device.type == "cpu" else str(device)

    def storage_of(self, tensor: Any) -> int:
        try:
            held = tensor.untyped_storage()
            address = held._cdata
        except (RuntimeError, NotImplementedError):
            return self._odd_storage(tensor)
        storage = self.storage_ids.get(address)
        return storage if storage is not None else self.new_storage(tensor, held, address)

    def is_alive(self, storage: int) -> bool:
        address = self._addresses[storage]
        return bool(address) and not self._expired(address)

    def newest(self, tensor: Any) -> int | None:
        """The value that a tensor shows, or None where nothing recorded touched it."""
        address, place = self._located(tensor)
        if place not in self.newest_at and address not in self.parts:
            return None
        value = self.read(tensor)
        return value if isinstance(value, int) else value[-1]

    def release(self) -> None:
        """Give the addresses back. Nothing may be looked up after this."""
        addresses, self._addresses = self._addresses, []
        for address in addresses:
            if address:
                self._free(address)


def _odd_window(tensor: Any) -> Window:
    """What a tensor shows that has no strides: sparse, nested, or of a kind that torch asks nothing about."""
    if tensor.is_nested:
        return _nested_window(tensor)
    layout = str(tensor.layout).removeprefix("torch.")
    try:
        shape = tensor.shape
    except (RuntimeError, NotImplementedError):
        return Window(0, None, (), tensor.dtype)
    if not layout.startswith("sparse_"):
        return Window(0, shape, (), tensor.dtype)
    return Window(0, shape, (), tensor.dtype, None, layout, private.stored_entries(tensor))


def _nested_window(tensor: Any) -> Window:
    """A nested tensor as one of all its numbers: sizes that all parts share stay, the others are one, added up."""
    parts = private.nested_sizes(tensor)
    if parts is None:
        return Window(0, None, (), tensor.dtype)
    shape = packed(parts)
    strides: list[int] = []
    count = 1
    for size in reversed(shape):
        strides.append(count)
        count *= size
    is_dense = bool(tensor.is_contiguous())
    return Window(0, shape, tuple(reversed(strides)) if is_dense else (), tensor.dtype, parts)


def packed(parts: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """
    >>> packed(((2, 8), (5, 8)))
    (7, 8)
    >>> packed(((3, 4, 6), (3, 5, 5)))
    (3, 49)
    """
    if not parts:
        return (0,)
    columns = list(zip(*parts, strict=True))
    same = [len(set(sizes)) == 1 for sizes in columns]
    if all(same):
        return (len(parts), *parts[0])
    ragged = same.index(False)
    total = sum(prod(size for size, is_same in zip(part, same, strict=True) if not is_same) for part in parts)
    kept = [column[0] for column, is_same in zip(columns, same, strict=True) if is_same]
    return (*kept[:ragged], total, *kept[ragged:])


def _bytes(tensor: Any) -> int:
    return int(tensor.untyped_storage().nbytes())


def _extent(shown: Window) -> Extent:
    size = int(shown.dtype.itemsize)
    if shown.shape is None or len(shown.shape) != len(shown.stride):
        raise TypeError("no strides")
    count, last = 1, 0
    for length, stride in zip(shown.shape, shown.stride, strict=False):
        count *= int(length)
        last += (int(length) - 1) * int(stride)
    start = int(shown.offset) * size
    if count == 0:
        return Extent(start, start, True)
    return Extent(start, start + (last + 1) * size, count == last + 1)


def _apart(a: Window, b: Window) -> bool:
    """Whether two windows with the same strides, such as two columns of a matrix, share no element."""
    strides = sorted({int(s) for s in (*a.stride, *b.stride) if s} | {1}, reverse=True)
    if a.dtype != b.dtype:
        return False
    ranges = [_ranges(window, strides) for window in (a, b)]
    if ranges[0] is None or ranges[1] is None:
        return False
    return any(x1 <= y0 or y1 <= x0 for (x0, x1), (y0, y1) in zip(*ranges, strict=True))


def _ranges(window: Window, strides: list[int]) -> list[tuple[int, int]] | None:
    """The indices that a window covers along each stride; None where it steps over the end of a row."""
    lengths: dict[int, int] = {}
    for length, stride in zip(window.shape, window.stride, strict=True):
        if stride and length > 1:
            if int(stride) in lengths:
                return None
            lengths[int(stride)] = int(length)
    offset = int(window.offset)
    found: list[tuple[int, int]] = []
    row = None
    for stride in strides:
        first, offset = divmod(offset, stride)
        end = first + lengths.get(stride, 1)
        if row is not None and end * stride > row:
            return None
        found.append((first, end))
        row = stride
    return found
