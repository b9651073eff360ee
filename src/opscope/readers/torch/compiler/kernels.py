"""Which operators of the post-grad graph each launch computes, and which value each buffer holds.

Three kinds of evidence, best first: Inductor's own report by launch (it has none for backward graphs and for cache
hits), the `Graph fragment` in a kernel's comment (it names the operators of the kernel's first launch), and structure:
what lies between the values in the buffers that a launch reads and those in the buffers that it writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from opscope.ir import dtypes
from opscope.ir.pools import Dim
from opscope.readers.torch.names import base_name, op_name

from .compilation import LaunchTold, Part
from .flow import LIKE_VIEWS, Flow
from .printed import Printed
from .wrapper import FragmentNode, Launch, Output

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
        if isinstance(dim, int):
            count *= dim
        else:
            symbols.append(str(dim))
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
    return _Placing(printed, output, part.reported, told_by_launch(part, output.launches)).run()


class _Placing:
    def __init__(
        self, printed: Printed, output: Output, reported: Mapping[str, Iterable[str]], told: Mapping[int, LaunchTold]
    ) -> None:
        self.told = told
        self.flow = Flow(printed)
        self.output = output
        self.reported = reported
        self.holds: dict[str, str] = {}  # buffer -> the value in it, or the one that it is a view of
        self.held: set[str] = set()
        self.claimed: set[str] = set()  # values that a launch before has made
        # Partial results of a reduction in two steps: buffer -> the value that becomes of it, and what was read for it.
        self.partial: dict[str, tuple[str, set[str]]] = {}
        self.placed = [Placed() for _ in output.launches]
        self.seen: set[str] = set()  # kernels that were launched
        self.writer: dict[str, int] = {}  # buffer -> the last launch that wrote it
        self.next_reader: dict[str, list[int]] = {}
        for i, launch in enumerate(output.launches):
            for name in launch.reads:
                self.next_reader.setdefault(name, []).append(i)

    def run(self) -> list[Placed]:
        for i, name in enumerate(self.output.inputs):
            inputs = list(self.flow.inputs)
            self.holds[name] = name if name in self.flow.inputs else (inputs[i] if i < len(inputs) else "")
        for buffer, value in zip(self.output.returned, self.flow.outputs, strict=False):
            if buffer and value and buffer not in self.holds:
                self.holds[buffer] = self.flow.base(value)
        for i, launch in enumerate(self.output.launches):
            self.launch(i, launch)
        return self.placed

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

    # -- one launch -------------------------------------------------------------------------------

    def launch(self, index: int, launch: Launch) -> None:
        kernel = launch.kernel
        first = kernel is None or kernel.name not in self.seen
        if kernel is not None:
            self.seen.add(kernel.name)
        nodes = [name for name in self.reported.get(launch.handle, ()) if name in self.flow.nodes]
        listed = kernel.fragment if kernel is not None else []
        fragment = [node for node in listed if node.kind != "PlaceHolder"]
        given = [node.name for node in listed if node.kind == "PlaceHolder"]
        evidence, results = "", list[str]()
        if index in self.told:
            nodes, evidence = [name for name in self.told[index].nodes if name in self.flow.nodes], "reported"
        elif fragment and first and all(node.name in self.flow.nodes for node in fragment):
            nodes, evidence = [node.name for node in fragment], "name"
            results = [name for name in kernel.returned if name in self.flow.nodes] if kernel is not None else []
        elif nodes:
            evidence = "reported"
        elif begun := [self.partial[name] for name in launch.reads if name in self.partial]:
            nodes = [name for value, reads in begun for name in self.slice(value, reads)[0]]
            evidence, results = "structure", [value for value, _ in begun]
        elif fragment and kernel is not None:
            nodes, results = self.again(fragment, given, kernel.returned, launch)
            evidence = "structure" if nodes else ""
        elif kernel is None:
            nodes = self.extern(launch)
            evidence = "structure" if nodes else ""
        if not nodes and index not in self.told:
            nodes, results = self.between(index, launch)
            evidence = "structure" if nodes else ""
        order = self.flow.order
        serves = "" if nodes else self.served(index, launch)
        self.placed[index] = Placed(sorted(set(nodes), key=order.__getitem__), evidence, serves)
        self.fill(launch, nodes, results)
        self.writer.update(dict.fromkeys(launch.writes, index))

    def fill(self, launch: Launch, nodes: Sequence[str], results: Sequence[str]) -> None:
        """Say what the written buffers hold: values that something outside the launch reads."""
        inside = set(nodes)
        if not results:
            returned = set(self.flow.outputs)
            results = [
                name
                for name in sorted(inside, key=self.flow.order.__getitem__)
                if name in returned or any(reader not in inside for reader in self.flow.readers.get(name, ()))
            ] or list(nodes[-1:])
        self.claimed |= inside
        free = [self.flow.base(name) if self.flow.base(name) in inside else name for name in dict.fromkeys(results)]
        free = list(dict.fromkeys(free))
        if launch.result and launch.kernel is None:
            self.hold(launch.result, nodes[-1] if nodes else "")
            return
        writes = list(dict.fromkeys(launch.writes))
        for buffer in writes:
            if buffer in self.holds and self.holds[buffer] in free:
                free.remove(self.holds[buffer])
        for buffer in writes:
            if buffer in self.holds and buffer not in self.output.inputs:
                continue
            fitting = [name for name in free if self.fits(buffer, name)]
            if fitting:
                self.hold(buffer, fitting[0])
                free.remove(fitting[0])
                self.partial.pop(buffer, None)
        begun = [buffer for buffer in writes if buffer not in self.holds]
        last = [name for name in free if not inside.intersection(self.flow.readers.get(name, ()))]
        if len(begun) == len(last):
            reads = self.known_reads(launch)
            self.partial.update({buffer: (name, reads) for buffer, name in zip(begun, last, strict=True)})

    def hold(self, buffer: str, value: str) -> None:
        if value:
            self.holds[buffer] = value
            self.held.add(value)

    def fits(self, buffer: str, name: str) -> bool:
        known, kind = self.output.buffers.get(buffer), self.flow.type(name)
        if known is None or kind is None:
            return True
        if known.dtype and kind[0] and dtypes.find(known.dtype) != dtypes.find(kind[0]):
            return False
        return known.shape is None or _size(known.shape) == _size(kind[1])

    # -- calls of libraries -------------------------------------------------------------------------

    def extern(self, launch: Launch) -> list[str]:
        """The first operator of that name that no launch has made and that reads what the launch reads."""
        reads = self.known_reads(launch)
        unknown = sum(not self.value(name) for name in set(launch.reads))
        for op in self.names_of(launch):
            for name in self.flow.by_op.get(op, ()):
                if name in self.claimed:
                    continue
                wanted = {self.flow.base(read) for read in self.flow.reads[name]}
                if len(wanted - reads) <= unknown and reads & wanted >= {r for r in reads if r in wanted}:
                    if unknown == 0 and not wanted <= reads | self.inlined(wanted):
                        continue
                    self.learn(launch, name)
                    return [name]
        return []

    def inlined(self, values: Iterable[str]) -> set[str]:
        return {value for value in values if value in self.flow.nodes and not self.flow.reads[value]}

    def names_of(self, launch: Launch) -> list[str]:
        target = launch.target
        if target.startswith("torch.ops."):
            return [op_name(target)]
        if target == "aten.randint.low_out":  # how Inductor draws the seeds of its random numbers
            return ["prims.inductor_seeds"]
        short = target.rpartition(".")[2].removeprefix("bias_").removeprefix("_")
        names = [f"aten.{short}", f"aten._{short}", f"mkldnn.{short}"]
        return names + [f"{name}{overload}" for name in launch.aten for overload in ("", ".default")]

    def learn(self, launch: Launch, name: str) -> None:
        """What the buffers that it reads hold, by the place of the argument."""
        read = self.flow.reads[name]
        buffers = launch.reads
        if len(read) == len(buffers):
            for buffer, value in zip(buffers, read, strict=True):
                if not self.value(buffer):
                    self.hold(buffer, self.flow.base(value))

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

    # -- by what is read and written -----------------------------------------------------------------

    def between(self, index: int, launch: Launch) -> tuple[list[str], list[str]]:
        """The operators between the values that a launch reads and those that it writes."""
        reads = self.known_reads(launch)
        results: list[str] = []
        for buffer in dict.fromkeys(launch.writes):
            value = self.holds.get(buffer, "") if buffer not in self.output.inputs else ""
            if not value or value in self.claimed:
                value = self.expected(index, buffer, reads)
            if value:
                self.hold(buffer, value)
                results.append(value)
        nodes: set[str] = set()
        for value in results:
            nodes |= self.slice(value, reads)[0]
        return list(nodes), results

    def slice(self, value: str, reads: set[str]) -> tuple[set[str], set[str]]:
        """(The operators behind a value, up to what is read; the inputs that it needs besides)."""
        nodes: set[str] = set()
        missing: set[str] = set()
        todo = [value]
        while todo:
            name = todo.pop()
            if name in nodes or (name in reads and name != value):
                continue
            if name not in self.flow.nodes:
                missing.add(name)
                continue
            nodes.add(name)
            todo += self.flow.reads[name]
        return nodes, missing

    def expected(self, index: int, buffer: str, reads: set[str]) -> str:
        """The value that a buffer must hold: what its next reader asks for, or the first that fits."""
        for later in self.next_reader.get(buffer, ()):
            if later > index and self.output.launches[later].kernel is None:
                found = self.asked(self.output.launches[later], buffer, reads)
                if found:
                    return found
        mutated = self.copied_into(buffer)
        if mutated:
            return mutated
        for name in self.flow.nodes:
            base = self.flow.base(name)
            if name != base or name in self.claimed or name in self.held or not self.fits(buffer, name):
                continue
            nodes, missing = self.slice(name, reads)
            if not missing and any(self.flow.base(r) in reads for n in nodes for r in self.flow.reads[n]):
                return self.furthest(name, buffer, reads)
        return ""

    def furthest(self, name: str, buffer: str, reads: set[str]) -> str:
        """Of a chain of values with one reader each, the last: those before stay inside the kernel."""
        while True:
            readers = self.flow.readers.get(name, ())
            if len(readers) != 1 or name in self.flow.outputs:
                return name
            following = readers[0]
            if following in self.held or not self.fits(buffer, following) or self.slice(following, reads)[1]:
                return name
            if base_name(self.flow.op[following]) in LIKE_VIEWS or _is_library(self.flow.op[following]):
                return name
            name = following

    def asked(self, launch: Launch, buffer: str, reads: set[str]) -> str:
        sure = [name for name in launch.reads if name != buffer and (name in self.holds or name in self.writer)]
        known = {self.flow.base(self.value(name)) for name in sure if self.value(name)}
        for op in self.names_of(launch):
            for name in self.flow.by_op.get(op, ()):
                if name in self.claimed:
                    continue
                wanted = [self.flow.base(read) for read in self.flow.reads[name]]
                if not known <= set(wanted) or len(wanted) != len(launch.reads):
                    continue
                value = wanted[launch.reads.index(buffer)] if buffer in launch.reads else ""
                if value and self.fits(buffer, value) and not self.slice(value, reads)[1]:
                    return value
        return ""

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

    def copied_into(self, buffer: str) -> str:
        """A kernel that writes to an input does what a `copy_` at the end of the graph says."""
        if buffer not in self.flow.inputs:
            return ""
        for name in self.flow.by_op.get("aten.copy_", ()):
            if name not in self.claimed and self.flow.reads[name][:1] == [buffer]:
                return name
        return ""


def _is_library(op: str) -> bool:
    return base_name(op) in ("aten.mm", "aten.addmm", "aten.bmm", "aten.convolution", "aten.baddbmm")


def _percent(args: str) -> list[str]:
    """`(%mul_1, %primals_5)` -> the names, in order, as often as they occur."""
    found: list[str] = []
    for piece in args.split("%")[1:]:
        end = 0
        while end < len(piece) and (piece[end].isalnum() or piece[end] == "_"):
            end += 1
        found.append(piece[:end])
    return found
