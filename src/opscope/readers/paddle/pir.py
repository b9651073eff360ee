"""PIR programs: the .json of `paddle.jit.save` and of `core.serialize_pir_program`, with branches and loops."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator
from typing import Any, cast

from opscope.errors import BadInput
from opscope.ir import Capture, Graph, GraphBuilder, Origin, Pools, Stage, dtypes
from opscope.ir.graph import NULL
from opscope.ir.pools import clean
from opscope.readers import json_text
from opscope.readers.source import Options, Source

from .names import PIR_DTYPES, state_of

NAME = "paddle-pir"
_KNOWN_VERSION = 4
_DIALECTS = {"0": "builtin", "1": "pd_op", "2": "cf", "3": "custom_op", "4": "dist"}
_DEEPEST = 100
_MOST_NEAR = 1_000  # a constant that everybody reads says nothing about who belongs together
_LONGEST_ATTRIBUTE = 2_000
# These only bring values in or out, or bundle them: what they say is said by values.
_RESULTS = frozenset({"builtin.shadow_output", "pd_op.fetch"})
_ENDS = frozenset({"cf.yield"})
_HIDDEN = frozenset({"stop_gradient", "persistable", "op_callstack"})
_SCOPE_PART = re.compile(r"(.*?)(?:_(\d{1,6}))?")


def match(source: Source) -> bool:
    head = source.head.lstrip()
    return head.startswith(b"{") and re.search(rb'"magic"\s*:\s*"pir"', head[:400]) is not None


def read(source: Source, options: Options) -> Capture:
    try:
        return from_json(source.read(json_text.LARGEST))
    except BadInput as error:
        raise error.named(source.name) from None
    except RecursionError:
        raise BadInput(f"{source.name}: not a PIR program: its JSON is nested too deeply") from None


def from_json(data: bytes | str, how: str = "file", buffers: Container[str] | None = None) -> Capture:
    """The program as one stage. `buffers`: the names of the tensors that are registered as such, where known."""
    root = _object(json_text.parse(data.encode() if isinstance(data, str) else data), "the file")
    pools = Pools()
    program = Program(pools, buffers)
    blocks = list(_blocks(_object(root.get("program"), "'program'")))
    if not blocks:
        raise BadInput("a PIR program without a block")
    program.find_state(blocks[0][1])
    graph = program.graph(blocks[0][1])
    if len(blocks) > 1:
        program.warnings.append(f"the program has {len(blocks)} blocks at its top; only the first is shown")
    if not graph.n_nodes and not graph.n_values:
        raise BadInput("a PIR program without an operator")
    base = root.get("base_code")
    version = cast("dict[str, Any]", base).get("version") if isinstance(base, dict) else None
    warnings = list(program.warnings)
    if isinstance(version, int) and version > _KNOWN_VERSION:
        warnings.append(f"written as PIR version {version}, newer than the {_KNOWN_VERSION} that opscope knows")
    origin = Origin(format=NAME, framework="paddle", version=f"PIR {version}"[:40] if version else "", how=how)
    return Capture(pools=pools, stages=[Stage("program", graph)], origin=origin, warnings=warnings)


class Program:
    """Turns blocks into graphs. Values are known by their number (`%`), which is the program's own."""

    def __init__(self, pools: Pools, buffers: Container[str] | None = None) -> None:
        self.pools = pools
        self.warnings: list[str] = []
        self._buffers = buffers
        self._state: set[int] = set()  # the numbers of values that operators keep their own state in
        self._frozen = 0  # tensors that take no gradient, and of which nothing says what they are
        self._unknown: dict[str, int] = {}

    def find_state(self, block: dict[str, Any]) -> None:
        todo = [block]
        while todo:
            for op in _list(todo.pop().get("ops")):
                if isinstance(op, dict):
                    found = cast("dict[str, Any]", op)
                    given = _list(found.get("I"))
                    places = state_of(_op_name(found.get("#")).removeprefix("pd_op.")).values()
                    entries = [
                        _object(given[place], "an input of an operator") for place in places if place < len(given)
                    ]
                    self._state.update(n for n in map(_number, entries) if n)
                    todo += [inner for _, inner in _regions(found)]

    def role(self, number: int, name: str, op: dict[str, Any], dtype: str) -> str:
        """`OA` is [persistable, stop_gradient, trainable]. A weight that is frozen and a buffer are written alike."""
        if number in self._state:
            return "buffer"
        if self._buffers is not None:
            return "buffer" if name in self._buffers else "parameter"
        flags = _list(op.get("OA"))
        if len(flags) < 2 or flags[1] != 1 or (len(flags) > 2 and flags[2] == 1):
            return "parameter"
        known = dtypes.find(dtype)
        if known is not None and known.family not in ("float", "complex"):  # no gradient could ever change it
            return "buffer"
        self._frozen += 1
        return "parameter"

    def graph(self, block: dict[str, Any]) -> Graph:
        found, _ = _Block(self, block, {}, 0).build()
        if self._unknown:
            named = ", ".join(f"{name} ({count})" for name, count in list(self._unknown.items())[:5])
            self.warnings.append(f"not understood and shown as they are: {named}")
        if self._frozen:
            self.warnings.append(
                f"{self._frozen} tensors take no gradient, and the file does not say whether they are weights that "
                "were frozen or buffers: they count as parameters"
            )
        return found

    def not_understood(self, what: str) -> None:
        what = clean(what)[:60]
        self._unknown[what] = self._unknown.get(what, 0) + 1


class _Block:
    """One block: the program's own, a branch, or the body of a loop."""

    def __init__(self, program: Program, block: dict[str, Any], outside: dict[int, int], depth: int) -> None:
        if depth > _DEEPEST:
            raise BadInput(f"branches and loops are nested more than {_DEEPEST} deep")
        self.program = program
        self.pools = program.pools
        self.builder = GraphBuilder(program.pools)
        self.block = block
        self.outside = outside  # number -> type, of the values of the graphs around
        self.values: dict[int, int] = {}  # number -> value
        self.types: dict[int, int] = {}  # number -> type
        self.arguments: list[int] = []
        self.bindings: list[tuple[int, int]] = []  # (value here, number of the value outside)
        self.makers: dict[int, int] = {}  # value -> node
        self.reads: list[list[int]] = []  # by node
        self.names: list[str] = []  # by node
        self.constants: dict[int, Any] = {}  # value -> the numbers in it
        self.scopes: dict[str, int] = {}
        self.grads: list[tuple[int, str, list[int]]] = []  # node, forward operator, its inputs
        self.depth = depth

    def build(self) -> tuple[Graph, list[tuple[int, int]]]:
        for argument in _list(self.block.get("args")):
            entry = _object(argument, "an argument of a block")
            number = _number(entry)
            if number is not None and number not in self.values:
                value = self._outer(number, entry, f"arg{len(self.arguments)}", "input")
                self.arguments.append(value)
        for op in _list(self.block.get("ops")):
            self._op(_object(op, "an operator"))
        self._link_gradients()
        return self.builder.freeze(), self.bindings

    # -- operators --------------------------------------------------------------------------------

    def _op(self, op: dict[str, Any]) -> None:
        name = _op_name(op.get("#"))
        outputs = [_object(entry, f"an output of {name}") for entry in _list(op.get("O"))]
        if name == "builtin.parameter":
            self._parameter(op, outputs)
            return
        attrs = _attributes(op.get("A"))
        more = _attributes(op.get("OA"))
        reads = [self._use(entry) for entry in _list(op.get("I"))]
        if name in _RESULTS or name in _ENDS:
            self._result(name, reads, attrs)
            return
        if name == "pd_op.data" and len(outputs) == 1:
            self._data(outputs[0], attrs)
            return
        shown = {key: value for key, value in attrs.items() if key not in _HIDDEN and key != "struct_name"}
        for position, value in enumerate(reads):
            if value in self.constants:  # sizes come as tensors; what they say is what one wants to see
                shown.setdefault(str(position), self.constants[value])
        phase = "backward" if _is_gradient(name) else "forward"
        node = self.builder.node(
            name,
            reads,
            scope=self._scope(attrs.get("struct_name", more.get("struct_name"))),
            attrs=shown,
            phase=phase,
        )
        self.reads.append(reads)
        self.names.append(name)
        for entry in outputs:
            value = self._output(node, entry, phase)
            if name == "pd_op.full_int_array" and isinstance(attrs.get("value"), list):
                self.constants[value] = attrs["value"]
        if phase == "backward":
            self.grads.append((node, _forward_name(name), reads))
        for number, (label, block) in enumerate(_regions(op)):
            self._body(node, label or f"{_label(name, number)}", block)

    def _parameter(self, op: dict[str, Any], outputs: list[dict[str, Any]]) -> None:
        listed = _list(op.get("A"))
        name = listed[3] if len(listed) > 3 and isinstance(listed[3], str) else ""
        if not name:
            name = str(_attributes(listed).get("parameter_name", ""))
        for entry in outputs:
            number = _number(entry)
            if number is not None and number not in self.values:
                dtype = self.pools.types[self._type(entry.get("TT"))].dtype
                self._outer(number, entry, name, self.program.role(number, name, op, dtype))

    def _data(self, entry: dict[str, Any], attrs: dict[str, Any]) -> None:
        number = _number(entry)
        if number is not None and number not in self.values:
            self._outer(number, entry, str(attrs.get("name", "")), "input")

    def _outer(self, number: int, entry: dict[str, Any], name: str, role: str) -> int:
        self.types[number] = self._type(entry.get("TT"))
        self.values[number] = self.builder.input(self.types[number], name=name, role=role)
        return self.values[number]

    def _result(self, name: str, reads: list[int], attrs: dict[str, Any]) -> None:
        for value in reads:
            if value != NULL:
                self.builder.outputs.append(value)

    def _output(self, node: int, entry: dict[str, Any], phase: str) -> int:
        number = _number(entry)
        kind = entry.get("TT")
        is_pruned = isinstance(kind, dict) and cast("dict[str, Any]", kind).get("#") == "NULL"
        role = "gradient" if phase == "backward" else "activation"
        type_id = 0 if is_pruned else self._type(kind)
        value = self.builder.output(node, type_id, role=role)
        self.makers[value] = node
        if number is not None:
            self.types[number] = type_id
            if number in self.values:
                self.program.not_understood(f"value %{number} made twice")
            self.values[number] = value
        return value

    def _use(self, entry: Any) -> int:
        number = _number(cast("dict[str, Any]", entry)) if isinstance(entry, dict) else None
        if number is None or number == 0:  # %0 stands for an optional input that is not there
            return NULL
        if number not in self.values:
            if number in self.outside:
                inside = self.builder.input(self.outside[number])
                self.types[number] = self.outside[number]
                self.bindings.append((inside, number))
                self.values[number] = inside
            else:
                self.program.not_understood(f"use of value %{number}, which nothing makes")
                self.values[number] = self.builder.value()
        return self.values[number]

    def _body(self, node: int, label: str, block: dict[str, Any]) -> None:
        inner = _Block(self.program, block, {**self.outside, **self.types}, self.depth + 1)
        graph, bindings = inner.build()
        # What comes from further out passes through this graph too.
        kept = [(inside, self._use({"%": number})) for inside, number in bindings]
        # A loop's arguments are, at first, what the loop is given behind its condition.
        kept += [(inside, given) for inside, given in zip(inner.arguments, self.reads[node][1:], strict=False)]
        self.builder.body(node, label, graph, [(inside, given) for inside, given in kept if given != NULL])

    # -- what operators say -----------------------------------------------------------------------

    def _type(self, entry: Any) -> int:
        """`{"#": "0.t_dtensor", "D": [{"#": "0.t_f32"}, [1, 10], "NCHW", [], 0]}`; -1 is a size not known."""
        if not isinstance(entry, dict):
            return 0
        kind = cast("dict[str, Any]", entry)
        name = str(kind.get("#", "")).rpartition(".")[2]
        data = _list(kind.get("D"))
        if name in ("t_dtensor", "t_selectedrows", "t_dense_tensor_array") and data:
            inner = data[0]
            dtype = str(cast("dict[str, Any]", inner).get("#", "")) if isinstance(inner, dict) else ""
            word = dtype.rpartition(".")[2].removeprefix("t_")
            sizes = data[1] if len(data) > 1 else None
            return self.pools.type(PIR_DTYPES.get(word, word)[:40], _sizes(sizes))
        if name == "t_vec":
            return self.pools.type(f"list[{len(data)}]", None)
        return self.pools.type(name.removeprefix("t_")[:40], None) if name and name != "NULL" else 0

    def _scope(self, text: Any) -> int:
        """`/Sequential/Conv2D_1/`: classes with a number, where a class comes several times."""
        if not isinstance(text, str) or not text.strip("/"):
            return 0
        if text not in self.scopes:
            scope = 0
            for part in text.strip("/").split("/")[:_DEEPEST]:
                found = _SCOPE_PART.fullmatch(part)
                scope = self.pools.scope(scope, part, found[1] if found else part)
            self.scopes[text] = scope
        return self.scopes[text]

    # -- gradients --------------------------------------------------------------------------------

    def _link_gradients(self) -> None:
        """A gradient operator reads what its forward operator read or made: the one of its name that shares most."""
        used: set[int] = set()
        touching: dict[int, set[int]] = {}
        for value, node in self.makers.items():
            touching.setdefault(value, set()).add(node)
        for node, reads in enumerate(self.reads):
            for value in reads:
                touching.setdefault(value, set()).add(node)
        for node, name, reads in self.grads:
            candidates: dict[int, int] = {}
            for value in dict.fromkeys(reads):
                near = touching.get(value, ())
                for other in near if len(near) < _MOST_NEAR else ():
                    if other < node and other not in used and self.names[other] == name:
                        candidates[other] = candidates.get(other, 0) + 1
            if candidates:
                best = max(candidates.values())
                found = [other for other, count in candidates.items() if count == best]
                if len(found) == 1:
                    used.add(found[0])
                    self.builder.link("grad", found[0], node)


# -- pieces of JSON ---------------------------------------------------------------------------------


def _object(found: Any, what: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise BadInput(f"not a PIR program: {what} is a {type(found).__name__}, not an object")
    return cast("dict[str, Any]", found)


def _list(found: Any) -> list[Any]:
    """A list; a single object (as the outputs of a parameter are) as a list of one."""
    if isinstance(found, list):
        return cast("list[Any]", found)
    return [found] if isinstance(found, dict) else []


def _blocks(holder: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for region in _list(holder.get("regions")):
        if isinstance(region, dict):
            for block in _list(cast("dict[str, Any]", region).get("blocks")):
                if isinstance(block, dict):
                    yield "", cast("dict[str, Any]", block)


_regions = _blocks


def _number(entry: dict[str, Any]) -> int | None:
    found = entry.get("%", entry.get("#"))  # the arguments of a block have theirs at "#"
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _sizes(found: Any) -> list[int | None] | None:
    if not isinstance(found, list):
        return None
    return [
        size if isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**62 else None
        for size in cast("list[Any]", found)[:64]
    ]


def _op_name(found: Any) -> str:
    """`1.conv2d` as `pd_op.conv2d`."""
    text = found if isinstance(found, str) else ""
    if text == "p":
        return "builtin.parameter"
    dialect, dot, name = text.partition(".")
    return clean(f"{_DIALECTS.get(dialect, dialect)}.{name}" if dot else text)[:200] or "unnamed"


def _is_gradient(name: str) -> bool:
    return re.search(r"_(?:double_|triple_)?grad_?$", name) is not None


def _forward_name(name: str) -> str:
    return re.sub(r"_grad(_?)$", r"\1", name)


def _label(name: str, number: int) -> str:
    if name == "pd_op.if":
        return ("true", "false")[number] if number < 2 else f"branch {number}"
    return "body" if name == "pd_op.while" else f"region {number}"


def _attributes(found: Any) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    for entry in _list(found):
        if isinstance(entry, dict):
            named = cast("dict[str, Any]", entry)
            key = named.get("N")
            if isinstance(key, str):
                attrs[clean(key)[:100]] = _attribute(named.get("AT"))
    return attrs


def _attribute(found: Any, depth: int = 0) -> Any:
    """`{"#": "0.a_i32", "D": 3}` as 3."""
    if not isinstance(found, dict) or depth > 8:
        return _short(found)
    data = cast("dict[str, Any]", found).get("D")
    if isinstance(data, list):
        return _short([_attribute(item, depth + 1) for item in cast("list[Any]", data)])
    return _attribute(data, depth + 1) if isinstance(data, dict) else _short(data)


def _short(found: Any) -> Any:
    if found is None or isinstance(found, bool | int | float):
        return found
    if isinstance(found, str):
        return found[:_LONGEST_ATTRIBUTE]
    text = json.dumps(found, default=str)
    return found if len(text) <= _LONGEST_ATTRIBUTE else f"{text[:_LONGEST_ATTRIBUTE]}…"
