"""What an operator's schema says: the names of its arguments, which of them take tensors, which are written."""

from __future__ import annotations

import threading
from typing import Any, cast

from opscope.tracers.torch.words import op_name

TENSOR, TENSORS, OTHER = 0, 1, 2

# Operators that write to arguments although their schemas do not say so: the running statistics of a batch norm
# (when its argument `training` is true).
_UNDECLARED = {
    "aten.native_batch_norm": ("running_mean", "running_var"),
    "aten.cudnn_batch_norm": ("running_mean", "running_var"),
    "aten.miopen_batch_norm": ("running_mean", "running_var"),
}

# The same of operators that let ranks communicate, whatever `training` is: theirs say nothing of what they write.
_FILLS = {
    "fsdp.all_gather_copy_in": "all_gather_output",
    "c10d.allreduce_": "tensors",
    "c10d.allreduce_coalesced_": "tensors",
    "c10d.broadcast_": "tensors",
    "c10d.reduce_": "tensors",
    "c10d.recv_": "tensors",
    "c10d.recv_any_source_": "tensors",
    "c10d._allgather_base_": "output_tensor",
    "c10d.allgather_": "output_tensors",
    "c10d.allgather_coalesced_": "output_lists",
    "c10d.allgather_into_tensor_coalesced_": "outputs",
    "c10d._reduce_scatter_base_": "output_tensor",
    "c10d.reduce_scatter_": "output_tensors",
    "c10d.reduce_scatter_tensor_coalesced_": "outputs",
    "c10d.alltoall_": "output_tensors",
    "c10d.alltoall_base_": "output",
    "c10d.gather_": "output_tensors",
    "c10d.scatter_": "output_tensors",
    "_c10d_functional.irecv": "tensor",
}

# What only asks a tensor about itself comes through the dispatcher too, for fake tensors; it computes nothing.
_QUESTIONS = frozenset(
    {
        "prim.device",
        "prim.layout",
        "aten.size",
        "aten.sym_size",
        "aten.stride",
        "aten.sym_stride",
        "aten.numel",
        "aten.sym_numel",
        "aten.dim",
        "aten.storage_offset",
        "aten.sym_storage_offset",
        "aten.is_contiguous",
        "aten.is_contiguous.memory_format",
        "aten.is_strides_like_format",
        "aten.is_non_overlapping_and_dense",
        "aten.sym_is_contiguous",
        "aten.is_same_size",
    }
)

# Views that may show bytes which none of their arguments shows, and `set_`, which shows other memory.
_SHOWS_MORE = ("aten.as_strided", "aten.set_", "aten._reinterpret_tensor")

# In-place operators that may change what their argument shows of its memory, or how much memory that is.
_CHANGES_WINDOW = ("aten.resize", "aten.set_", "aten.as_strided", "aten.sparse_resize", "aten._resize")
# They take memory, and write nothing there.
_EMPTY = ("aten.empty", "aten.new_empty", "aten.resize_")

MASKS = ("attn_mask", "attn_bias")  # what operators for attention call their masks

# How operators that communicate are given the group of ranks that does.
GROUPS = ("process_group", "group_name")

OFFSETS = "offs"  # what products in groups call the ends of the groups

Slot = tuple[str, int, int]  # the name of an argument, its kind, and the number of its name

# Names of arguments, numbered as they are met; and the operators, which torch keeps as long as the process lives. Both
# are the same in every recording: to read a schema takes longer than to record ten operators.
ARGUMENT_NAMES: list[str] = []
_numbers: dict[str, int] = {}
_schemas: dict[int, tuple[Any, Schema]] = {}
_lock = threading.Lock()


def argument_number(name: str) -> int:
    number = _numbers.get(name)
    if number is None:
        with _lock:
            number = _numbers.setdefault(name, len(ARGUMENT_NAMES))
            if number == len(ARGUMENT_NAMES):
                ARGUMENT_NAMES.append(name)
    return number


def schema_of(func: Any) -> Schema:
    """By id, since to hash an operator is a call into Python."""
    known = _schemas.get(id(func))
    if known is None:
        known = _schemas[id(func)] = func, Schema(func)
    return known[1]


class Schema:
    """One operator as the recorder needs it."""

    __slots__ = (
        "_places", "asks_numbers", "by_name", "communicates", "computes", "is_higher_order", "is_plain", "is_view",
        "makes_empty", "may_write", "name", "shows_more", "slots", "takes_storage", "undeclared", "writes",
        "writes_self",
    )  # fmt: skip

    def __init__(self, func: Any) -> None:
        self.name = op_name(func)
        schema = getattr(func, "_schema", None)  # higher-order operators have none
        self.is_higher_order = schema is None
        arguments: list[Any] = list(schema.arguments) if schema is not None else []
        self.slots: list[Slot] = [(a.name, _kind(str(a.type)), argument_number(a.name)) for a in arguments]
        self._places = {a.name: place for place, a in enumerate(arguments)}
        self.by_name: dict[str, Slot] = {slot[0]: slot for slot in self.slots}
        # `set_` makes a tensor show other memory: it says that it writes, and writes to none.
        is_set = self.name.startswith("aten.set_")
        self.writes: tuple[str, ...] = tuple(
            a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write and not is_set
        )
        if self.name in _FILLS and _FILLS[self.name] not in self.writes:
            self.writes = (*self.writes, _FILLS[self.name])
        self.takes_storage = any(str(a.type) == "Storage" for a in arguments)
        self.undeclared: tuple[str, ...] = _UNDECLARED.get(self.name, ())
        # It writes its first argument, whole as it is, and nothing else: `add_`, `_foreach_mul_`, but not `t_`.
        self.writes_self = (
            self.writes == ("self",)
            and self.slots[0][0] == "self"
            and not self.undeclared
            and not self.name.startswith(_CHANGES_WINDOW)
            and not any("inplace_view" in str(tag) for tag in getattr(func, "tags", ()))
        )
        self.makes_empty = self.name.startswith(_EMPTY)
        self.shows_more = self.name.startswith(_SHOWS_MORE)
        self.may_write = bool(self.writes or self.undeclared)
        self.asks_numbers = ("attention" in self.name and any(name in self.by_name for name in MASKS)) or (
            "grouped_mm" in self.name and OFFSETS in self.by_name
        )
        self.communicates = any(name in self.by_name for name in GROUPS)
        self.is_plain = not (self.asks_numbers or self.may_write or self.shows_more or self.communicates)
        returns: list[Any] = list(schema.returns) if schema is not None else []
        # Of what its arguments show, and of nothing else: a view, a question about a tensor, or one that is nested.
        is_aliased = bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
        self.is_view = is_aliased or self.name.startswith("aten._nested_get_")
        self.computes = not (self.name.startswith("profiler.") or self.name in _QUESTIONS)

    def written(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The tensors that a call writes to."""
        found: list[Any] = []
        for name in self.writes:
            found.extend(_flat(self.argument(name, args, kwargs)))
        if self.undeclared and self.argument("training", args, kwargs):
            found.extend(self.argument(name, args, kwargs) for name in self.undeclared)
        return [tensor for tensor in found if tensor is not None]

    def mask(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The mask that attention is given, or None."""
        return next((self.argument(name, args, kwargs) for name in MASKS if name in self.by_name), None)

    def argument(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        position = self._places[name]
        return args[position] if position < len(args) else kwargs.get(name)


def _flat(value: Any) -> list[Any]:
    """What a list holds, and what the lists in it hold."""
    if not isinstance(value, list | tuple):
        return [value]
    return [inner for item in cast("list[Any]", value) for inner in _flat(item)]


def _kind(text: str) -> int:
    if "Tensor" not in text:
        return OTHER
    return TENSORS if text.startswith(("List[", "Optional[List[")) or "[]" in text else TENSOR
