"""A jaxpr as a module: equations are instructions, the jaxprs inside of them computations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from opscope.readers.xla.hlo import Array, Computation, Instruction, Module, Place, Shape
from opscope.readers.xla.written import dim_labels, window

from .pairing import call_numbers
from .private import user_frames

_LONGEST_ATTRIBUTE = 300
_PASS_ON = (
    "jaxpr",
    "call_jaxpr",
    "fun_jaxpr",
    "cond_jaxpr",
    "body_jaxpr",
    "branches",
    "jvp_jaxpr_fun",
    "jvp_jaxpr_thunk",
)
# Equations whose jaxprs run, each as it is called. Of `pallas_call` nothing says how often its body runs.
_LABELS = {
    "scan": {"jaxpr": "body"},
    "while": {"cond_jaxpr": "condition", "body_jaxpr": "body"},
    "cond": {"branches": "branch"},
    "custom_jvp_call": {"call_jaxpr": "calls"},
    "custom_vjp_call": {"call_jaxpr": "calls", "fun_jaxpr": "calls"},
    "custom_vjp_call_jaxpr": {"fun_jaxpr": "calls"},
}
_NOT_SHOWN = ("pallas_call",)


def module_of(closed: Any, name: str, inputs: list[str], parameters: frozenset[int]) -> Module:
    return _Reading(name).read(closed, inputs, parameters)


class _Reading:
    def __init__(self, name: str) -> None:
        self.name = name
        self.module = Module(name, {}, "main")
        self._names: dict[int, str] = {}  # of variables, by identity: they live as long as the jaxpr does
        self._places: dict[int, tuple[Any, Place]] = {}  # by traceback; kept, so that no other one gets its id
        self._count = 0
        self._known: dict[int, tuple[Any, str]] = {}

    def read(self, closed: Any, inputs: list[str], parameters: frozenset[int]) -> Module:
        main = self._computation(closed, "main", f"jit({self.name})")
        main.is_entry = True
        for instruction in main.instructions:
            if 0 <= instruction.number < len(inputs):
                instruction.title = inputs[instruction.number]
                if instruction.number in parameters:
                    instruction.role = "parameter"
        return self.module

    def _computation(self, jaxpr: Any, name: str, above: str) -> Computation:
        closed_over = list(getattr(jaxpr, "consts", ()))
        jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
        made = Computation(name, [], "")
        for number, variable in enumerate(jaxpr.invars):
            made.instructions.append(
                Instruction(self._name(variable), "parameter", _shape(variable.aval), number=number, title="")
            )
        for number, variable in enumerate(jaxpr.constvars):
            title = f"constant {number}" if number < len(closed_over) else ""
            made.instructions.append(Instruction(self._name(variable), "constant", _shape(variable.aval), title=title))
        calls = call_numbers(jaxpr.eqns)
        for equation in jaxpr.eqns:
            self._equation(made, equation, above, calls)
        made.results = [self._operand(made, variable) for variable in jaxpr.outvars]
        self.module.computations[name] = made
        return made

    def _equation(self, made: Computation, equation: Any, above: str, calls: dict[int, int]) -> None:
        operands = [self._operand(made, variable) for variable in equation.invars]
        shapes = [_shape(variable.aval) for variable in equation.outvars]
        stack = str(equation.source_info.name_stack)
        around = f"{above}/{stack}" if stack else above
        primitive = equation.primitive.name
        self._count += 1
        instruction = Instruction(
            f"e{self._count}",
            primitive,
            shapes[0] if len(shapes) == 1 else tuple(shapes),
            operands,
            attrs=_attributes(primitive, equation),
            op_name=f"{around}/{primitive}",
            place=self._place(equation.source_info.traceback, calls),
            title=str(equation.params.get("name", "")) if isinstance(equation.params.get("name"), str) else "",
        )
        for way, inner, bound in _inside(equation, operands):
            key = id(inner)
            known = self._known.get(key)
            if known is None:
                name = f"{instruction.name}.{way}"
                named = equation.params.get("name")
                inner_above = f"{around}/jit({named})" if isinstance(named, str) and named else around
                known = self._known[key] = (inner, name)
                self._computation(inner, name, inner_above)
            instruction.called.append((way, known[1]))
            instruction.bound.append(bound)
        made.instructions.append(instruction)
        for place, variable in enumerate(equation.outvars):
            self._names[id(variable)] = instruction.name if len(shapes) == 1 else f"{instruction.name}#{place}"

    def _name(self, variable: Any) -> str:
        name = self._names[id(variable)] = f"v{len(self._names)}"
        return name

    def _operand(self, made: Computation, variable: Any) -> str:
        if hasattr(variable, "val"):  # a number in the program itself
            self._count += 1
            text = str(variable.val).replace("\n", " ")
            literal = Instruction(f"c{self._count}", "constant", _shape(variable.aval), title=text[:40])
            made.instructions.append(literal)
            return literal.name
        return self._names[id(variable)]

    def _place(self, traceback: Any, calls: dict[int, int]) -> Place:
        if traceback is None:
            return Place()
        if id(traceback) not in self._places:
            self._places[id(traceback)] = (traceback, Place(*user_frames(traceback)))
        return self._places[id(traceback)][1]._replace(call=calls.get(id(traceback), 0))


def _inside(equation: Any, operands: list[str]) -> Iterator[tuple[str, Any, list[str]]]:
    """The jaxprs that an equation runs: how each is called, itself, and what its inputs are."""
    primitive, params = equation.primitive.name, equation.params
    if primitive in _NOT_SHOWN:
        return
    labels = _LABELS.get(primitive, {})
    for name, value in params.items():
        way = labels.get(name, "")
        if name == "branches":
            for number, branch in enumerate(value):
                yield f"branch {number}", branch, operands[1:]
        elif _is_jaxpr(value) and (way or name in ("jaxpr", "call_jaxpr")):
            bound = operands
            if primitive == "while":
                cond, body = params["cond_nconsts"], params["body_nconsts"]
                carry = operands[cond + body :]
                bound = operands[:cond] + carry if name == "cond_jaxpr" else operands[cond : cond + body] + carry
            elif primitive == "scan":
                bound = operands
            yield way or "calls", value, bound


def _is_jaxpr(value: Any) -> bool:
    return hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns")


def _shape(aval: Any) -> Shape:
    aval = getattr(aval, "inner_aval", aval)  # of a reference: what it refers to
    sizes = getattr(aval, "shape", None)
    if sizes is None:
        return Array("token" if "Token" in type(aval).__name__ else "opaque", ())
    return Array(str(getattr(aval, "dtype", "opaque")), tuple(int(s) if isinstance(s, int) else -1 for s in sizes))


def _attributes(primitive: str, equation: Any) -> dict[str, Any]:
    params = equation.params
    attrs: dict[str, Any] = {}
    for name, value in params.items():
        if name in _PASS_ON or value is None or _is_jaxpr(value) or callable(value):
            continue
        attrs[name] = _plain(value)
    if primitive in ("dot_general", "ragged_dot") and isinstance(params.get("dimension_numbers"), tuple):
        (left, right), (left_batch, right_batch) = params["dimension_numbers"]
        del attrs["dimension_numbers"]
        attrs["lhs_contracting_dims"], attrs["rhs_contracting_dims"] = _list(left), _list(right)
        if left_batch:
            attrs["lhs_batch_dims"], attrs["rhs_batch_dims"] = _list(left_batch), _list(right_batch)
    if primitive == "conv_general_dilated":
        attrs |= _convolution(equation)
    if primitive.startswith(("reduce_window", "select_and_scatter")):
        attrs |= _window(params)
    if primitive == "scan" and isinstance(params.get("length"), int):
        attrs["trip_count"] = params["length"]
    if primitive == "shard_map":
        attrs["trip_count"] = 1  # every device runs its body once, on its own part of the arrays
    return attrs


def _convolution(equation: Any) -> dict[str, Any]:
    params = equation.params
    dims = params["dimension_numbers"]
    left, kernel, out = dims.lhs_spec, dims.rhs_spec, dims.out_spec
    labels = dim_labels((left[0], left[1], left[2:]), (kernel[1], kernel[0], kernel[2:]), (out[0], out[1], out[2:]))
    sizes = equation.invars[1].aval.shape
    rows = [
        [
            sizes[axis],
            params["window_strides"][i],
            *params["padding"][i],
            params["rhs_dilation"][i],
            params["lhs_dilation"][i],
            0,
        ]
        for i, axis in enumerate(kernel[2:])
    ]
    if not all(isinstance(number, int) for row in rows for number in row):
        return {"dim_labels": labels}
    return {"dim_labels": labels, **window(rows)}


def _window(params: Any) -> dict[str, Any]:
    size = params.get("window_dimensions", ())
    count = len(size)
    pads = params.get("padding", ())
    strides = params.get("window_strides", (1,) * count)
    if not count or len(pads) != count or not all(isinstance(s, int) for s in size):
        return {}
    outer, inner = params.get("base_dilation") or (1,) * count, params.get("window_dilation") or (1,) * count
    return window([[size[i], strides[i], *pads[i], inner[i], outer[i], 0] for i in range(count)])


def _list(values: Any) -> list[int]:
    return [int(value) for value in values]


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it; of anything else, the beginning of its text."""
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        items = list(cast("Sequence[Any]", value))
        if all(isinstance(item, bool | int | float | str) for item in items):
            return items
    return str(cast("object", value))[:_LONGEST_ATTRIBUTE]
