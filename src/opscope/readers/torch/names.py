"""What PyTorch's numbers and names mean: dtypes, layouts, operators."""

from __future__ import annotations

import re

# The numbers of torch._export.serde.schema.ScalarType.
EXPORT_DTYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
    9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16",
    29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu",
    34: "uint32", 35: "uint64",
}  # fmt: skip
EXPORT_LAYOUTS = {
    1: "sparse_coo", 2: "sparse_csr", 3: "sparse_csc", 4: "sparse_bsr", 5: "sparse_bsc", 6: "_mkldnn", 7: "strided",
}  # fmt: skip
EXPORT_MEMORY_FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}

# How C++ spells them: storages in pickles (`FloatStorage`) and types in traces (`Tensor(float)`, `Tensor(c10::Half)`).
DTYPES = {
    "byte": "uint8", "unsigned char": "uint8", "char": "int8", "signed char": "int8", "short": "int16", "int": "int32",
    "long": "int64", "long int": "int64", "half": "float16", "float": "float32", "double": "float64",
    "complexhalf": "complex32", "complexfloat": "complex64", "complexdouble": "complex128", "bool": "bool",
    "c10::complex<float>": "complex64", "c10::complex<double>": "complex128", "c10::complex<c10::half>": "complex32",
    "qint8": "qint8", "quint8": "quint8", "qint32": "qint32", "bfloat16": "bfloat16", "uint16": "uint16",
    "uint32": "uint32", "uint64": "uint64", "unsigned short": "uint16", "unsigned int": "uint32",
    "unsigned long": "uint64", "unsigned long int": "uint64",
}  # fmt: skip

# Operators whose result is always a view of their first argument (their schemas say so: `Tensor(a)`).
VIEWS = frozenset(
    "aten." + name
    for name in (  # noqa: SIM905 (as a list it takes 40 lines)
        "adjoint alias as_strided chunk detach diagonal expand expand_as hsplit imag lift_fresh "
        "movedim narrow numpy_T permute positive real select slice split split_with_sizes squeeze swapaxes t "
        "tensor_split transpose unbind unfold unsqueeze view view_as view_as_complex view_as_real vsplit"
    ).split()
)


def cpp_dtype(text: str) -> str:
    """`c10::BFloat16` and `float` as `bfloat16` and `float32`."""
    name = text.lower()
    return DTYPES.get(name) or DTYPES.get(name.removeprefix("c10::")) or name.removeprefix("c10::")


def op_name(target: str) -> str:
    """`torch.ops.aten.add.Tensor` as `aten.add.Tensor`; `.default` says nothing; `_operator.mul` is `operator.mul`."""
    name = target.removeprefix("torch.ops.").removesuffix(".default")
    if name.startswith("_operator."):
        return name[1:]
    return name or "unnamed"


def base_name(op: str) -> str:
    """`aten.add_.Tensor` without its overload: `aten.add_`."""
    return ".".join(op.split(".", 2)[:2])


def in_place(op: str) -> bool:
    """By PyTorch's rule that a name ending in one underscore writes into its first argument and returns it."""
    base = base_name(op)
    return base.startswith("aten.") and base.endswith("_") and not base.endswith("__")


def short_class(name: str) -> str:
    """`torch.nn.modules.conv.Conv2d` as `Conv2d`; TorchScript's `___torch_mangle_3.Linear` as `Linear`."""
    return re.split(r"[.:]", name.strip())[-1]
