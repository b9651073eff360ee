"""Process groups without peers: whatever backend a script asks for, it gets torch's fake one."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Generator
from typing import Any

from opscope.tracers.messages import Mailbox
from opscope.tracers.torch.private import find

_OBJECTS = "objects that other ranks would have sent were taken from this one"


def fake_store() -> Any:
    """The class of a store that stores nothing; None where torch has none."""
    return find("torch.testing._internal.distributed.fake_pg", "FakeStore")


def _own(owner: Any, name: str) -> Any:
    """What is there now: of a class its own descriptor, which may be inherited."""
    held: dict[str, Any] = owner.__dict__
    return held[name] if name in held else getattr(owner, name)


@contextlib.contextmanager
def patched(*places: tuple[Any, str, Any]) -> Generator[None, None, None]:
    """Attributes of modules and classes replaced, and put back."""
    before: list[tuple[Any, str, Any]] = [(owner, name, _own(owner, name)) for owner, name, _ in places]
    try:
        for owner, name, value in places:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in reversed(before):
            setattr(owner, name, value)


@contextlib.contextmanager
def without_peers(torch: Any, rank: int, world: int, box: Mailbox, told: list[str]) -> Generator[None, None, None]:
    """`init_process_group` and `new_group` make fake groups; Python objects go through `box`, or stay here."""
    meshes: Any = importlib.import_module("torch.distributed.device_mesh")
    c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")
    homes: list[Any] = [torch.distributed, c10d, meshes]
    start, make = c10d.init_process_group, c10d.new_group
    store: Any = fake_store()

    @functools.wraps(start)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        start("fake", store=store(), rank=rank, world_size=world)

    @functools.wraps(make)
    def new_group(
        ranks: Any = None, timeout: Any = None, backend: Any = None, pg_options: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        kwargs.pop("device_id", None)
        return make(ranks, timeout, "fake", None, *args, **kwargs)

    objects = _Objects(c10d, box, told)
    replaced: dict[str, Callable[..., Any]] = {
        "init_process_group": init_process_group,
        "new_group": new_group,
        **objects.functions(),
    }
    places = [(home, name, function) for home in homes for name, function in replaced.items() if hasattr(home, name)]
    with patched(*places), _answering(torch, c10d):
        try:
            yield
        finally:
            with contextlib.suppress(Exception):
                if c10d.is_initialized():
                    c10d.destroy_process_group()


def _answering(torch: Any, c10d: Any) -> Any:
    """A mode in which an all-reduce hands on what it was given, as a real one does: a fake one says that it is done and
    not with what, and DistributedDataParallel asks."""
    base: Any = find("torch.utils._python_dispatch", "TorchDispatchMode")
    done: Any = find("torch._C._distributed_c10d", "_create_work_from_future")
    asked = torch.ops.c10d.allreduce_.default

    class Answers(base):
        supports_higher_order_operators = True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found = func(*args, **(kwargs or {}))
            if func is not asked or done is None:
                return found
            future = torch.futures.Future()
            future.set_result(found[0])
            return found[0], done(future).boxed()

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True

    return Answers()


class _Objects:
    """Collectives of Python objects. What a rank sends to another one is sent; where all bring something, all are taken
    to bring the same."""

    def __init__(self, c10d: Any, box: Mailbox, told: list[str]) -> None:
        self._c10d = c10d
        self._box = box
        self._told = told
        self._counts: dict[tuple[str, int, int], int] = {}

    def functions(self) -> dict[str, Callable[..., Any]]:
        return {
            "send_object_list": self.send,
            "recv_object_list": self.receive,
            "all_gather_object": self.gather_all,
            "gather_object": self.gather,
            "broadcast_object_list": self.broadcast,
            "scatter_object_list": self.scatter,
        }

    def _key(self, group: Any, source: int, target: int) -> tuple[str, int, int, int]:
        """Dimension, the places of both in the group, and how many went that way before: all groups of a dimension do
        the same."""
        group = group or self._c10d.group.WORLD
        name = str(getattr(group, "group_desc", "") or group.group_name)
        way = name, source, target
        number = self._counts[way] = self._counts.get(way, -1) + 1
        return (*way, number)

    def send(
        self, object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None,
        group_dst: int | None = None, use_batch: bool = False,
    ) -> None:  # fmt: skip
        here, there = self._places(group, dst, group_dst)
        self._box.put(self._key(group, here, there), object_list)

    def receive(
        self, object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
        group_src: int | None = None, use_batch: bool = False,
    ) -> int:  # fmt: skip
        here, there = self._places(group, src, group_src)
        peer = self._global(group, there)
        object_list[:] = self._box.take(self._key(group, there, here), peer)
        return peer

    def gather_all(self, object_list: list[Any], obj: Any, group: Any = None) -> None:
        self._tell()
        object_list[:] = [obj] * len(object_list)

    def gather(
        self, obj: Any, object_gather_list: list[Any] | None = None, dst: Any = None, group: Any = None, **_: Any
    ) -> None:
        if object_gather_list is not None:
            self._tell()
            object_gather_list[:] = [obj] * len(object_gather_list)

    def broadcast(self, object_list: list[Any], src: int | None = None, *_: Any, **__: Any) -> None:
        if any(item is not None for item in object_list):
            self._tell()
        else:
            self._told.append("a broadcast of Python objects brought none: the rank that sends them was not there")

    def scatter(
        self, scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None,
        src: int | None = None, group: Any = None, **_: Any,
    ) -> None:  # fmt: skip
        if scatter_object_input_list:
            self._tell()
            scatter_object_output_list[0] = scatter_object_input_list[(group or self._c10d.group.WORLD).rank()]

    def _tell(self) -> None:
        if _OBJECTS not in self._told:
            self._told.append(_OBJECTS)

    def _places(self, group: Any, peer: int | None, group_peer: int | None) -> tuple[int, int]:
        """This rank and the other one, by their places in the group."""
        group = group or self._c10d.group.WORLD
        other: Any = self._c10d.get_group_rank(group, int(peer or 0)) if group_peer is None else group_peer
        return int(group.rank()), int(other)

    def _global(self, group: Any, place: int) -> int:
        return int(self._c10d.get_global_rank(group or self._c10d.group.WORLD, place))
