"""Which operators of the post-grad graph each launch computes, and which value each buffer holds.

Three kinds of evidence, best first: Inductor's own report by launch (it has none for backward graphs and for cache
hits), the `Graph fragment` in a kernel's comment (it names the operators of the kernel's first launch), and structure:
what lies between the values in the buffers that a launch reads and those in the buffers that it writes. Which value a
buffer holds is known of inputs, of results and of what libraries read and write; of the others the kernel's own code
says which of its inputs are read for them (`dependence`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from opscope.ir import dtypes
from opscope.ir.pools import Dim
from opscope.readers.torch.names import base_name, op_name

from . import dependence
from .compilation import LaunchTold, Part
from .computable import Computable, sweep
from .flow import LIKE_VIEWS, flow_of
from .graph import picks
from .printed import Printed
from .wrapper import FragmentNode, Kernel, Launch, Output

_FACTOR = re.compile(r"\*(?![^(]*\))")  # between what is multiplied, outside of brackets
_USERS = "triton_kernel_wrapper_"  # how a user's own Triton kernel stands in a graph
_MOST_STEPS = 200_000  # of one search


@dataclass
class Placed:
    """What one launch computes."""

    nodes: list[str] = field(default_factory=list[str])  # in the order of the graph
    evidence: str = ""  # of enumerations.EVIDENCE; "" where no operator was found
    serves: str = ""  # it computes nothing: it lays a tensor out as this operator wants it


def _size(shape: Sequence[Dim] | None) -> object:
    """How many elements, or what is written of it where sizes are symbols."""
    if shape is None:
        return None
    count = 1
    symbols: list[str] = []
    for dim in shape:
        for factor in [dim] if isinstance(dim, int) else _FACTOR.split(str(dim)):
            if isinstance(factor, int) or factor.isdigit():
                count *= int(factor)
            elif factor:
                symbols.append(factor)
    return (count, *sorted(symbols))


def told_by_launch(part: Part, launches: Sequence[Launch]) -> dict[int, LaunchTold]:
    """Rows that live capture told, joined to launches by the kernel's name, in order."""
    waiting: dict[str, list[LaunchTold]] = {}
    for told in reversed(part.launches):
        waiting.setdefault(told.kernel.removesuffix(".run"), []).append(told)
    found: dict[int, LaunchTold] = {}
    for i, launch in enumerate(launches):
        rows = waiting.get(launch.target)
        if rows:
            found[i] = rows.pop()
    return found


def place(printed: Printed, output: Output, part: Part) -> list[Placed]:
    """What each launch of an output code computes, in the order of the launches."""
    return _Placing(printed, output, part).run()


@dataclass
class _Found:
    values: dict[str, str] = field(default_factory=dict[str, str])  # by buffer
    nodes: list[str] = field(default_factory=list[str])


class _Placing:
    def __init__(self, printed: Printed, output: Output, part: Part) -> None:
        self.flow = flow_of(printed)
        self.picks = picks(printed)
        self.output = output
        self.part = part
        self.told = told_by_launch(part, output.launches)
        self.reported = part.reported
        self.holds: dict[str, str] = {}  # buffer -> the value in it, or the one that it is a view of
        self.stored: dict[str, str] = {}  # value -> the buffer that holds it
        self.claimed: set[str] = set()  # values that a launch before has made
        self.open: dict[str, dependence.Made] = {}  # buffers whose value no operator is: what they were made from
        self.placed = [Placed() for _ in output.launches]
        self.libraries: dict[int, str] = {}  # launch -> the operator that the library computes
        self.final: dict[str, str] = {}  # of buffers that are written more than once
        self.pieces: dict[str, tuple[str, str]] = {}  # part of a buffer -> (the `cat`, what is there)
        self.made: dict[str, dict[str, dependence.Made]] = {}  # by kernel
        self.seen: set[str] = set()  # kernels that were launched
        self.all_told = {name for told in self.told.values() for name in told.nodes}
        self.sources = {old: new for kernel in output.kernels.values() for old, new in kernel.sources.items()}
        self.writer: dict[str, int] = {}  # buffer -> the last launch that wrote it
        self.next_reader: dict[str, list[int]] = {}
        self.last_writer: dict[str, int] = {}
        for i, launch in enumerate(output.launches):
            self.last_writer.update(dict.fromkeys(launch.writes, i))
            for name in launch.reads:
                self.next_reader.setdefault(name, []).append(i)

    def run(self) -> list[Placed]:
        inputs = list(self.flow.inputs)
        for i, name in enumerate(self.output.inputs):
            self.holds[name] = name if name in self.flow.inputs else (inputs[i] if i < len(inputs) else "")
        for buffer, value in zip(self.output.returned, self.flow.outputs, strict=False):
            if buffer and value and buffer not in self.holds:
                self.hold(buffer, self.flow.base(value))
        self.anchor()
        self.join_parts()
        self.set_aside()
        for i, launch in enumerate(self.output.launches):
            self.launch(i, launch)
        self.inline_rest()
        self.drop_picks()
        return self.placed

    def drop_picks(self) -> None:
        """To pick one of several results is no operator, and who reads a result does not compute what made it."""
        for found in self.placed:
            found.nodes = [name for name in found.nodes if name not in self.picks] or found.nodes

    def inline_rest(self) -> None:
        """A value that is in no memory is computed where it is read."""
        flow, order = self.flow, self.flow.order
        readers: dict[str, list[int]] = {}
        for i, found in enumerate(self.placed):
            if self.output.launches[i].kernel is not None:
                for name in found.nodes:
                    for read in flow.reads[name]:
                        readers.setdefault(read, []).append(i)
        added: dict[int, list[str]] = {}
        for name in reversed(flow.nodes):
            if name in self.claimed or name in self.stored or flow.is_size(name) or flow.op[name] == "get_attr":
                continue
            for i in dict.fromkeys(readers.get(name, ())):
                added.setdefault(i, []).append(name)
                for read in flow.reads[name]:
                    readers.setdefault(read, []).append(i)
        for i, names in added.items():
            found = self.placed[i]
            found.nodes = sorted({*found.nodes, *names}, key=order.__getitem__)

    def value(self, buffer: str) -> str:
        """The value in a buffer, or in the one whose memory it took over."""
        for _ in range(1000):
            if buffer in self.holds or buffer in self.writer:
                return self.holds.get(buffer, "")
            known = self.output.buffers.get(buffer)
            if known is None:
                return ""
            if known.picked is not None:
                made = self.holds.get(known.picked[0], "")
                return self.pick(made, known.picked[1]) if made else ""
            buffer = known.reuses
        return ""

    def before(self, buffer: str) -> str:
        """The value that a launch which reads and writes a buffer finds in it."""
        known = self.output.buffers.get(buffer)
        return self.value(known.reuses) if known is not None and known.reuses else self.value(buffer)

    def pick(self, made: str, slot: int) -> str:
        for reader in self.flow.readers.get(made, ()):
            node = self.flow.nodes[reader]
            if node.target == "operator.getitem" and node.arguments[1].text == str(slot):
                return reader
        return ""

    def known_reads(self, launch: Launch) -> set[str]:
        written = set(launch.writes)
        values = {self.before(name) if name in written else self.value(name) for name in launch.reads}
        return {self.flow.base(value) for value in values if value}

    def hold(self, buffer: str, value: str) -> None:
        if value:
            self.holds[buffer] = value
            self.stored.setdefault(value, buffer)

    def fits(self, buffer: str, name: str) -> bool:
        known, kind = self.output.buffers.get(buffer), self.flow.type(name)
        if known is None or kind is None:
            return True
        if known.dtype and kind[0] and dtypes.find(known.dtype) != dtypes.find(kind[0]):
            return False
        return known.shape is None or _size(known.shape) == _size(kind[1])

    # -- calls of libraries -------------------------------------------------------------------------

    def anchor(self) -> None:
        """Which operator each call of a library is: Inductor numbers their buffers in the order of the graph."""
        calls: dict[str, list[int]] = {}
        for i, launch in enumerate(self.output.launches):
            op = next((op for op in self.names_of(launch) if op in self.flow.by_op), "")
            if op:
                calls.setdefault(op, []).append(i)
        for op, launches in calls.items():
            launches.sort(key=lambda i: _number(self.output.launches[i]))
            free = list(self.flow.by_op[op])
            equal = len(free) == len(launches)
            for i in launches:
                launch = self.output.launches[i]
                fitting = free[:1] if equal else [name for name in free if self.could_be(launch, name)][:1]
                for name in fitting:
                    free.remove(name)
                    self.libraries[i] = name
                    self.learn(launch, name)

    def could_be(self, launch: Launch, name: str) -> bool:
        """Does what is known of a call fit to an operator?"""
        wanted = {self.flow.base(read) for read in self.flow.reads[name]}
        known = {self.flow.base(self.holds[read]) for read in launch.reads if self.holds.get(read)}
        return known <= wanted and all(self.fits(buffer, name) for buffer in launch.writes[:1] if not launch.result)

    def learn(self, launch: Launch, name: str) -> None:
        """What the buffers hold that it reads, by the place of the argument, and what it writes."""
        read = self.flow.reads[name]
        if len(read) == len(launch.reads):
            for buffer, value in zip(launch.reads, read, strict=True):
                if not self.holds.get(buffer) and buffer not in self.output.inputs:
                    known = self.output.buffers.get(buffer)
                    if known is not None and known.picked is None:
                        self.hold(buffer, self.flow.base(value))
        for buffer in launch.writes[:1]:
            if buffer not in self.output.inputs:
                self.hold(buffer, name)

    def names_of(self, launch: Launch) -> list[str]:
        """The operators that a call may be, if it is one operator: of a library, or of the user's own kernel."""
        target = launch.target
        if launch.kernel is not None:
            return [op for op in self.flow.by_op if _USERS in op] if launch.kernel.is_users else []
        if target.startswith("torch.ops."):
            return [op_name(target)]
        if target == "aten.randint.low_out":  # how Inductor draws the seeds of its random numbers
            return ["prims.inductor_seeds"]
        short = target.rpartition(".")[2].removeprefix("bias_").removeprefix("_")
        names = [
            f"aten.{short}",
            f"aten._{short}",
            f"mkldnn.{short}",
            f"mkldnn._{short}",
            f"quantized_decomposed.{short}",
        ]
        if target.startswith("aten."):
            names = [target, target.removesuffix("_out"), target.removesuffix(".out"), *names]
        found: list[str] = []
        for name in names:
            found += [op for op in self.flow.by_op if base_name(op) == name or op == name]
        return found + [f"{name}{overload}" for name in launch.aten for overload in ("", ".default")]

    def join_parts(self) -> None:
        """A buffer that is written part by part is a `cat`: each part holds one of its operands."""
        parts: dict[str, list[str]] = {}
        for name, buffer in self.output.buffers.items():
            if buffer.part_of:
                parts.setdefault(buffer.part_of, []).append(name)
        written = {name for launch in self.output.launches for name in launch.writes}
        cats = list(self.flow.by_op.get("aten.cat", ()))
        for whole, names in parts.items():
            if whole in written:
                continue
            known = self.holds.get(whole, "")
            cat = known if known in cats else next((cat for cat in cats if self.could_hold(whole, names, cat)), "")
            if cat and len(self.flow.reads[cat]) == len(names):
                cats.remove(cat)
                self.hold(whole, cat)
                for name, operand in zip(names, self.flow.reads[cat], strict=True):
                    self.pieces[name] = (cat, operand)

    def could_hold(self, whole: str, parts: Sequence[str], cat: str) -> bool:
        fits = len(set(self.flow.reads[cat])) == len(parts) and self.fits(whole, cat)
        return fits and cat not in self.stored

    def set_aside(self) -> None:
        """What is known of a buffer that is written more than once is what it holds in the end."""
        times = Counter(name for launch in self.output.launches for name in dict.fromkeys(launch.writes))
        for name, count in times.items():
            if count > 1 and name in self.holds and name not in self.output.inputs:
                self.final[name] = self.holds.pop(name)
                self.stored.pop(self.final[name], None)

    # -- one launch -------------------------------------------------------------------------------

    def launch(self, index: int, launch: Launch) -> None:
        kernel = launch.kernel
        first = kernel is None or kernel.name not in self.seen
        if kernel is not None:
            self.seen.add(kernel.name)
        listed = kernel.fragment if kernel is not None else []
        fragment = [node for node in listed if node.kind != "PlaceHolder"]
        nodes = [name for name in self.reported.get(launch.handle, ()) if name in self.flow.nodes]
        evidence, results = "reported" if nodes else "", dict[str, str]()
        if fragment and first and all(node.name in self.flow.nodes for node in fragment):
            nodes, evidence = [node.name for node in fragment], "name"
        told = [name for name in self.told[index].nodes if name in self.flow.nodes] if index in self.told else []
        if told:  # by the process that compiled it; a `cat` that it writes part by part is no kernel's there
            cats = {self.pieces[name][0] for name in launch.writes if name in self.pieces}
            nodes, evidence = [*told, *sorted(cats - self.all_told)], "reported"
        elif index in self.libraries:
            nodes, evidence = nodes or [self.libraries[index]], evidence or "structure"
        elif kernel is not None:
            found = self.by_code(index, launch, kernel, set(nodes))
            results = found.values
            if not nodes and found.nodes:
                nodes, evidence = found.nodes, "structure"
            if not nodes and fragment:
                given = [node.name for node in listed if node.kind == "PlaceHolder"]
                nodes, roots = self.again(fragment, given, kernel.returned, launch)
                evidence = "structure" if nodes else ""
                self.hold_results(launch, roots)
            if evidence == "structure" and (named := self.named(launch, nodes)):
                nodes, evidence = named, "name"
        for buffer, value in results.items():
            self.hold(buffer, value)
        if nodes:
            self.hold_results(launch, self.visible(nodes))
        order = self.flow.order
        if not told:
            nodes = [name for name in nodes if not self.flow.is_size(name)]
        serves = "" if nodes else self.served(index, launch)
        self.placed[index] = Placed(sorted(set(nodes), key=order.__getitem__), evidence, serves)
        self.claimed.update(nodes)
        self.writer.update(dict.fromkeys(launch.writes, index))

    def named(self, launch: Launch, found: Sequence[str]) -> list[str]:
        """The operators in the comment above a launch, where all of them are of this graph, and structure agrees but
        for views: a step of a reduction then has what the whole of it computes, as a kernel's own comment does."""
        names = [
            name
            for source in launch.source_nodes
            for name in ([source] if source in self.flow.nodes else self.sources.get(source, [""]))
        ]
        if not all(name in self.flow.nodes for name in names):
            return []
        computed = {name for name in found if base_name(self.flow.op[name]) not in LIKE_VIEWS}
        return list(dict.fromkeys(names)) if computed and computed <= set(names) else []

    def visible(self, nodes: Iterable[str]) -> list[str]:
        """The values that somebody outside of a kernel reads."""
        inside, returned = set(nodes), set(self.flow.outputs)
        return [
            name
            for name in sorted(inside, key=self.flow.order.__getitem__)
            if name in returned or any(reader not in inside for reader in self.flow.readers.get(name, ()))
        ]

    def hold_results(self, launch: Launch, names: Sequence[str]) -> None:
        """Say what the written buffers hold of which it is not known yet."""
        free = [name for name in dict.fromkeys(map(self.flow.base, names)) if name not in self.stored]
        for buffer in dict.fromkeys(launch.writes):
            if not self.holds.get(buffer) and buffer not in self.pieces:
                fitting = [name for name in free if self.fits(buffer, name)]
                if fitting:
                    self.hold(buffer, fitting[0])
                    free.remove(fitting[0])

    # -- by the code of the kernel -------------------------------------------------------------------

    def by_code(self, index: int, launch: Launch, kernel: Kernel, sure: set[str]) -> _Found:
        """The values that fit to what the code reads for each result, and the operators behind them."""
        if kernel.name not in self.made:
            self.made[kernel.name] = dependence.results(kernel.code, kernel.parameters)
        made = self.made[kernel.name]
        of = self.buffers_of(launch, kernel)
        reads = {
            self.flow.base(self.holds[name]) for name in launch.writes if name in self.writer and self.holds.get(name)
        }
        for parameter, buffer in of.items():
            if not made or any(parameter in entry.inputs for entry in made.values()):
                reads |= self.leaves_of(buffer, launch)
        writes = set(launch.writes)
        barrier = {value for value, buffer in self.stored.items() if buffer not in writes} - reads
        free = not reads or any(not entry.inputs for entry in made.values())
        around = sweep(self.flow, reads, barrier | set(self.libraries.values()), free)
        found = _Found()
        unknown: dict[tuple[object, ...], list[tuple[str, frozenset[str], frozenset[str]]]] = {}
        for buffer in dict.fromkeys(launch.writes):
            entry = next((made[p] for p, b in of.items() if b == buffer and p in made), None)
            leaves = (
                frozenset(leaf for p in entry.inputs if p in of for leaf in self.leaves_of(of[p], launch))
                if entry
                else None
            )
            functions = frozenset(entry.functions | self.inherited(entry, of)) if entry else frozenset[str]()
            value = self.value_to_come(index, buffer)
            before = self.holds.get(buffer, "") if buffer in self.writer else ""
            if before and leaves is not None:  # it is added to what was there
                leaves |= {self.flow.base(before)}
            if buffer in self.pieces:
                cat, operand = self.pieces[buffer]
                found.nodes += [cat, *around.behind(operand)]
            elif value:
                found.values[buffer] = value
                found.nodes += around.behind(value) or self.between(value, reads)
            elif leaves is not None:
                kind = self.output.buffers.get(buffer)
                key = (leaves, functions, kind.dtype if kind else "", _size(kind.shape) if kind else None)
                unknown.setdefault(key, []).append((buffer, leaves, functions))
        for rows in unknown.values():
            chosen = self.choose(rows, around, sure, set(found.values.values()))
            for (buffer, _, _), value in zip(rows, chosen, strict=False):
                found.values[buffer] = value
                found.nodes += around.behind(value)
            for buffer, leaves, functions in rows[len(chosen) :]:
                self.open[buffer] = dependence.Made(set(leaves), set(functions))
        self.finish(launch, around, found)
        return found

    def buffers_of(self, launch: Launch, kernel: Kernel) -> dict[str, str]:
        """The buffer that each parameter of a kernel is."""
        found: dict[str, str] = {}
        for parameter, argument in zip(kernel.parameters, launch.arguments, strict=False):
            buffer = self.output.buffer_in(argument.text)
            if buffer and not argument.name:
                found[parameter] = buffer
        return found

    def leaves_of(self, buffer: str, launch: Launch) -> set[str]:
        """The value in a buffer; where none is known, what it was made from."""
        value = self.before(buffer) if buffer in launch.writes else self.value(buffer)
        if value:
            return set() if self.flow.is_size(value) else {self.flow.base(value)}
        for name in self.output.chain(buffer):
            if name in self.open:
                return set(self.open[name].inputs)
        return {f"? {buffer}"}

    def inherited(self, entry: dependence.Made, of: Mapping[str, str]) -> set[str]:
        """Functions that went into buffers whose value no operator is."""
        found: set[str] = set()
        for parameter in entry.inputs:
            for name in self.output.chain(of.get(parameter, "")):
                if name in self.open:
                    found |= self.open[name].functions
                    break
        return found

    def value_to_come(self, index: int, buffer: str) -> str:
        """The value that a buffer must hold after a launch, where that is known already."""
        if buffer in self.output.inputs:
            return self.copied_into(buffer)
        if buffer in self.final:
            return self.final[buffer] if self.last_writer[buffer] == index else ""
        return self.holds.get(buffer, "") if buffer not in self.writer else ""

    def copied_into(self, buffer: str) -> str:
        """A kernel that writes to an input does what a `copy_` at the end of the graph says."""
        value = self.holds.get(buffer, "") if buffer in self.output.inputs else ""
        for name in self.flow.by_op.get("aten.copy_", ()) if value else ():
            if name not in self.claimed and self.flow.reads[name][:1] == [value]:
                return name
        return ""

    def choose(
        self,
        rows: Sequence[tuple[str, frozenset[str], frozenset[str]]],
        around: Computable,
        sure: set[str],
        taken: set[str],
    ) -> list[str]:
        """The values that fit best to buffers which are made from the same, in the order of the graph."""
        buffer, leaves, functions = rows[0]
        flow = self.flow
        returned = set(flow.outputs)

        def rank(name: str) -> tuple[bool, bool, bool, int]:
            readers = flow.readers.get(name, ())
            needed = name in returned or any(self.is_outside(reader, around) for reader in readers)
            return around.functions[name] == functions, needed, name not in self.claimed, flow.order[name]

        fitting = [
            name
            for name, found in around.leaves.items()
            if found == leaves
            and flow.base(name) == name
            and (not sure or name in sure)
            and (name not in self.stored or self.stored[name] == buffer)
            and name not in taken
            and flow.type(name) is not None
            and not flow.is_size(name)
            and self.fits(buffer, name)
        ]
        best = sorted(fitting, key=rank, reverse=True)[: len(rows)]
        return sorted(best, key=flow.order.__getitem__)

    def is_outside(self, reader: str, around: Computable) -> bool:
        """Is an operator computed elsewhere? A view of a value is where its readers are."""
        if reader not in around.leaves:
            return True
        if base_name(self.flow.op[reader]) in LIKE_VIEWS:
            return any(self.is_outside(next_one, around) for next_one in self.flow.readers.get(reader, ()))
        return False

    def between(self, value: str, reads: set[str]) -> list[str]:
        """The operators behind a value, up to what is read or held in memory."""
        found: set[str] = set()
        todo = [value]
        while todo:
            name = todo.pop()
            if name in found or name not in self.flow.nodes:
                continue
            if name != value and (self.flow.base(name) in reads or self.flow.base(name) in self.stored):
                continue
            found.add(name)
            todo += self.flow.reads[name]
        return list(found)

    def finish(self, launch: Launch, around: Computable, found: _Found) -> None:
        """A reduction in two steps: the first kernel computes what leads to it, the second what follows."""
        begun = {name for read in launch.reads for name in self.output.chain(read) if name in self.open}
        if not begun or not found.nodes:
            return
        inside = set(found.nodes)
        first = {name for name in inside if base_name(self.flow.op[name]) in dependence.REDUCTIONS}
        before: set[str] = set()
        for name in first:
            before |= around.behind(name) & inside
        for buffer in begun:
            index = self.writer.get(buffer)
            if index is not None and not self.placed[index].nodes and before:
                nodes = sorted(before, key=self.flow.order.__getitem__)
                self.placed[index] = Placed(nodes, "structure")
                self.claimed |= before
        if before:
            kept = [name for name in found.nodes if name not in before or name in first]
            found.nodes = kept or found.nodes

    # -- a kernel that was launched before ------------------------------------------------------------

    def again(
        self, fragment: Sequence[FragmentNode], given: Sequence[str], returned: Sequence[str], launch: Launch
    ) -> tuple[list[str], list[str]]:
        """Where the shape of a fragment occurs once more, reading what this launch reads."""
        pattern = {node.name: node for node in fragment}
        inner = {node.name: _percent(node.args) for node in fragment}
        consumed = {name for read in inner.values() for name in read}
        roots = [name for name in returned if name in pattern] or [name for name in pattern if name not in consumed]
        reads = self.known_reads(launch)
        steps = [0]

        def match(name: str, found: str, bound: dict[str, str]) -> bool:
            steps[0] += 1
            if steps[0] > _MOST_STEPS:
                return False
            if name in bound:
                return bound[name] == found
            node = pattern.get(name)
            if node is None:  # a value from outside: what this launch reads, as far as that is known
                bound[name] = found
                return True
            if found not in self.flow.nodes or self.flow.op[found] != op_name(node.target):
                return False
            children = self.flow.reads[found]
            if len(children) != len(inner[name]):
                return False
            bound[name] = found
            return all(match(child, other, bound) for child, other in zip(inner[name], children, strict=True))

        # Inductor names what a launch comes from: in a backward graph by the names that its operators have there.
        named = [name for name in dict.fromkeys(launch.source_nodes) if name in self.flow.nodes]
        exact = Counter(self.flow.op[name] for name in named) == Counter(op_name(node.target) for node in fragment)

        def candidates(at: int, bound: dict[str, str]) -> list[dict[str, str]]:
            """Every place for the roots from this one on, the first fitting place of each further root."""
            if at == len(roots):
                outside = {self.flow.base(bound[name]) for name in given if name in bound}
                return [bound] if outside <= reads or self.open_reads(launch, outside, reads) else []
            found: list[dict[str, str]] = []
            for name in self.flow.by_op.get(op_name(pattern[roots[at]].target), ()):
                if (name not in named) if exact else (name in self.claimed and roots[at] not in bound):
                    continue
                trial = dict(bound)
                if match(roots[at], name, trial):
                    found += candidates(at + 1, trial)
                    if found and at:
                        break
            return found

        places = candidates(0, {})
        if not places:
            return (named, []) if exact else ([], [])

        def fitness(bound: dict[str, str]) -> tuple[int, int]:
            outside = {self.flow.base(bound[name]) for name in given if name in bound}
            return len(set(named).intersection(bound.values())), -len(outside - reads)

        # Blocks of a model have the same shape: the one that is named, or reads what is known to be read, or the first.
        bound = max(places, key=fitness)
        return [found for name, found in bound.items() if name in pattern], [bound[name] for name in roots]

    def open_reads(self, launch: Launch, outside: set[str], reads: set[str]) -> bool:
        """Values may lie in buffers of which it is not known yet what they hold."""
        unknown = sum(not self.value(name) for name in set(launch.reads))
        return len(outside - reads) <= unknown

    def served(self, index: int, launch: Launch) -> str:
        """The library operator that reads the same values from other memory."""
        reads = self.known_reads(launch)
        found = ""
        for buffer in dict.fromkeys(launch.writes):
            for later in self.next_reader.get(buffer, ()):
                reader = self.output.launches[later]
                if later <= index or reader.kernel is not None:
                    continue
                sure = {self.flow.base(value) for name in reader.reads if (value := self.value(name))}
                for op in self.names_of(reader):
                    for name in self.flow.by_op.get(op, ()):
                        wanted = [self.flow.base(read) for read in self.flow.reads[name]]
                        same = [value for value in wanted if value in reads and self.fits(buffer, value)]
                        if name not in self.claimed and same and sure - reads <= set(wanted):
                            self.hold(buffer, same[0])
                            found = found or name
                            break
        return found


def _number(launch: Launch) -> tuple[int, int]:
    """The number of the buffer that a launch makes."""
    digits = "".join(c for c in (launch.writes or [""])[0] if c.isdigit())
    return (int(digits) if digits and len(digits) < 10 else 0, launch.line)


def _percent(args: str) -> list[str]:
    """`(%mul_1, %primals_5)` -> the names, in order, as often as they occur."""
    found: list[str] = []
    for piece in args.split("%")[1:]:
        end = 0
        while end < len(piece) and (piece[end].isalnum() or piece[end] == "_"):
            end += 1
        found.append(piece[:end])
    return found
