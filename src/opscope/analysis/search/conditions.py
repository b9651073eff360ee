"""Which nodes a search term holds for.

Terms are tried on what many nodes share (a string, a type, a scope, a stack, a set of attributes), each
distinct one once; the columns of the graph then spread the verdicts over the nodes. So a million nodes
take about as long as their distinct names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from opscope.analysis.times import Times, node_times
from opscope.analysis.values import Figure, OwnFigures, framework_ids, own_figures, own_texts, value_figures
from opscope.ir import PHASES, ROLES, Capture, Frame, Graph, Type, scope_label
from opscope.ir.columns import Int8, Int32
from opscope.ir.facts import VALUE_FIGURES
from opscope.ops import kinds_of

from .comparisons import Comparison, comparison
from .query import BadQuery, Term

Mask: TypeAlias = npt.NDArray[np.bool_]
Test: TypeAlias = Callable[[str], object]

_DECODER = json.JSONDecoder()


class Measured(NamedTuple):
    """What is known of a graph beside it: times by node, figures by value, and the framework's own numbers."""

    times: Times | None = None
    figures: Mapping[str, Figure] = {}
    own: Mapping[str, OwnFigures] = {}  # columns of the user's own: numbers …
    own_texts: Mapping[str, Mapping[str, Mapping[int, str]]] = {}  # … and text
    ids: Mapping[str, Figure] = {}  # the framework's own numbers, by "node" and by "value"

    @classmethod
    def of(cls, capture: Capture, stage: int) -> Measured:
        return cls(
            node_times(capture, stage),
            value_figures(capture, stage),
            own_figures(capture, stage),
            own_texts(capture, stage),
            framework_ids(capture, stage),
        )

    def own_names(self) -> list[str]:
        return [*self.own, *self.own_texts]


class Conditions:
    """The terms of one query, tried on one graph."""

    def __init__(self, graph: Graph, framework: str = "", measured: Measured | None = None) -> None:
        self.graph = graph
        self.framework = framework
        self.measured = measured or Measured()
        self.pools = graph.pools

    def all_of(self, terms: Sequence[Term]) -> Mask:
        """The nodes that every term holds for. Terms on file and line speak of one and the same frame."""
        on_frame = [term for term in terms if term.field in ("file", "line") and not term.negated]
        mask = self._stacks(on_frame) if on_frame else np.ones(self.graph.n_nodes, dtype=bool)
        for term in terms:
            if term not in on_frame:
                mask &= self._term(term) ^ term.negated
        return mask

    def _term(self, term: Term) -> Mask:
        graph = self.graph
        match term.field:
            case "":
                test = text_test(term)
                inside = self._within(term) | self._classes(test)
                return self._texts(graph.node_op, test) | self._names(test) | inside
            case "op":
                return self._texts(graph.node_op, text_test(term))
            case "kind":
                test = text_test(term)
                return self._kinds(test)
            case "name":
                return self._names(text_test(term))
            case "scope":
                return self._within(term)
            case "class":
                return self._classes(text_test(term))
            case "phase":
                return _chosen(PHASES, term)[graph.node_phase]
            case "role":
                return self._roles(_chosen(ROLES, term))
            case "dtype":
                test = text_test(term)
                return self._types(lambda t: bool(t.dtype) and bool(test(t.dtype)))
            case "shape":
                return self._types(shape_test(term))
            case "attr":
                return self._attrs(term)
            case "kernel":
                return self._kernels(term)
            case "id":
                return self._ids(comparison(term))
            case "time":
                return self._times(comparison(term))
            case field if field in self.measured.own:
                return self._own(self.measured.own[field], comparison(term))
            case field if field in self.measured.own_texts:
                return self._own_texts(self.measured.own_texts[field], text_test(term))
            case field if field in VALUE_FIGURES:
                return self._figures(field, comparison(term))
            case _:  # file and line, negated
                return self._stacks([term])

    # -- texts ------------------------------------------------------------------------------------

    def _texts(self, column: Int32, test: Test) -> Mask:
        """A test on a column of string ids, made once for each distinct string."""
        return self._verdicts(column, test)[column]

    def _verdicts(self, ids: Int32, test: Test) -> Mask:
        strings = self.pools.strings.rows()
        used = np.zeros(len(strings), dtype=bool)
        used[ids] = True
        used[0] = False  # no name is never found
        rows = np.flatnonzero(used)
        verdict = np.zeros(len(strings), dtype=bool)
        verdict[rows] = _verdict(strings, rows, test)
        return verdict

    def _kinds(self, test: Test) -> Mask:
        kinds = kinds_of(self.framework, self.graph)
        holds = {op: bool(kind and test(kind)) for op, kind in kinds.by_op.items()}
        verdict = np.zeros(len(self.pools.strings), dtype=bool)
        verdict[[op for op, found in holds.items() if found and op]] = True
        mask = verdict[self.graph.node_op]
        for node, kind in kinds.by_node.items():
            mask[node] = bool(test(kind))
        return mask

    def _names(self, test: Test) -> Mask:
        """Its own name, those of what it makes, and those of what it reads that no node made (parameters …)."""
        graph = self.graph
        mask = self._texts(graph.node_name, test)
        named = self._texts(graph.value_name, test)
        made = graph.value_producer >= 0
        mask[graph.value_producer[named & made]] = True
        mask |= self._reads(named & ~made)
        return mask

    def _reads(self, values: Mask) -> Mask:
        """The nodes that read one of these values."""
        graph = self.graph
        mask = np.zeros(graph.n_nodes, dtype=bool)
        if values.any():
            mask[graph.use_node[np.append(values, False)[graph.use_value]]] = True  # -1, no value, is the last entry
        return mask

    # -- what many nodes share ----------------------------------------------------------------------

    def _within(self, term: Term) -> Mask:
        """The path of its module. A text is looked for in the whole of it, a pattern in what is printed of it."""
        scopes = self.pools.scopes.rows()
        if is_pattern(term):
            paths, test = self.pools.scope_paths(), text_test(term)
            used = np.flatnonzero(np.bincount(self.graph.node_scope, minlength=1))
            verdict = np.zeros(len(scopes), dtype=bool)
            scopes_used: list[int] = used.tolist()
            verdict[used] = [bool(paths[i] and test(paths[i])) for i in scopes_used]
            return verdict[self.graph.node_scope]
        wanted = term.text.lower()
        behind = wanted.count("/")  # it ends in a scope, and begins in that or at most so many further out
        holds = bytearray(len(scopes))
        for i in range(1, len(scopes)):  # parents come first
            parent = scopes[i].parent
            if holds[parent]:
                holds[i] = 1
                continue
            tail = scope_label(scopes[i])
            for _ in range(behind):
                if parent == 0:
                    break
                tail, parent = f"{scope_label(scopes[parent])}/{tail}", scopes[parent].parent
            holds[i] = wanted in tail.lower()
        return np.frombuffer(holds, dtype=bool)[self.graph.node_scope]

    def _classes(self, test: Test) -> Mask:
        """The class of its module, or of a module around it."""
        scopes = self.pools.scopes.rows()
        known = {cls: bool(cls and test(cls)) for cls in {scope.cls for scope in scopes}}
        holds = [False] * len(scopes)
        for i, scope in enumerate(scopes):
            holds[i] = known[scope.cls] or (i > 0 and holds[scope.parent])
        return np.fromiter(holds, bool, len(scopes))[self.graph.node_scope]

    def _types(self, test: Callable[[Type], object]) -> Mask:
        """The type of something that it makes."""
        graph = self.graph
        types = self.pools.types.rows()
        verdict = np.fromiter((bool(test(t)) for t in types), bool, len(types))
        made = (graph.value_producer >= 0) & verdict[graph.value_type]
        mask = np.zeros(graph.n_nodes, dtype=bool)
        mask[graph.value_producer[made]] = True
        return mask

    def _roles(self, wanted: Mask) -> Mask:
        """The role of something that it reads or makes."""
        graph = self.graph
        role: Int8 = graph.value_role
        values = wanted[role]
        mask = self._reads(values)
        mask[graph.value_producer[values & (graph.value_producer >= 0)]] = True
        return mask

    def _stacks(self, terms: Sequence[Term]) -> Mask:
        """The nodes with a frame that all these terms (file and line, taken as not negated) hold for."""
        tests = [frame_test(term) for term in terms]
        frames = self.pools.frames.rows()
        good = [i > 0 and all(test(frame) for test in tests) for i, frame in enumerate(frames)]
        stacks = self.pools.stacks.rows()
        holds = [False] * len(stacks)
        for i, stack in enumerate(stacks):
            if i:
                holds[i] = good[stack.frame] or holds[stack.parent]
        return np.fromiter(holds, bool, len(stacks))[self.graph.node_stack]

    def _times(self, test: Comparison) -> Mask:
        """Its measured time."""
        times = self.measured.times
        return np.zeros(self.graph.n_nodes, dtype=bool) if times is None else times.known & test(times.seconds)

    def _ids(self, test: Comparison) -> Mask:
        """The framework's own number of it, or of something that it makes."""
        mask = np.zeros(self.graph.n_nodes, dtype=bool)
        for by, ids in self.measured.ids.items():
            holds = ids.known & test(ids.numbers)
            if by == "node":
                mask |= holds
            else:
                mask[self.graph.value_producer[holds & (self.graph.value_producer >= 0)]] = True
        return mask

    def _figures(self, name: str, test: Comparison) -> Mask:
        """The measured figure of something that it makes."""
        mask = np.zeros(self.graph.n_nodes, dtype=bool)
        figure = self.measured.figures.get(name)
        if figure is not None:
            holds = (self.graph.value_producer >= 0) & figure.known & test(figure.numbers)
            mask[self.graph.value_producer[holds]] = True
        return mask

    def _own(self, figures: OwnFigures, test: Comparison) -> Mask:
        """A figure of the user's own: the node's, or that of a module around it."""
        (numbers, known, *_), (of_scopes, are_known, *_) = figures.by_node, figures.by_scope
        return (known & test(numbers)) | self._in_scopes(are_known & test(of_scopes))

    def _own_texts(self, texts: Mapping[str, Mapping[int, str]], test: Test) -> Mask:
        mask = np.zeros(self.graph.n_nodes, dtype=bool)
        mask[[node for node, text in texts["node"].items() if test(text)]] = True
        scopes = np.zeros(len(self.pools.scopes), dtype=bool)
        scopes[[scope for scope, text in texts["scope"].items() if test(text)]] = True
        return mask | self._in_scopes(scopes)

    def _in_scopes(self, holds: Mask) -> Mask:
        if not holds.any():
            return np.zeros(self.graph.n_nodes, dtype=bool)
        within = holds.copy()
        for i, scope in enumerate(self.pools.scopes.rows()):
            if i:  # parents come first
                within[i] |= within[scope.parent]
        return within[self.graph.node_scope]

    def _attrs(self, term: Term) -> Mask:
        texts = self.pools.attr_texts.rows()
        used = np.zeros(len(texts), dtype=bool)
        used[self.graph.node_attrs] = True
        used[0] = False
        rows = np.flatnonzero(used)
        verdict = np.zeros(len(texts), dtype=bool)
        verdict[rows] = _verdict(texts, rows, attr_test(term))
        return verdict[self.graph.node_attrs]

    def _kernels(self, term: Term) -> Mask:
        mask = np.zeros(self.graph.n_nodes, dtype=bool)
        groups = self.graph.groups.get("kernel")
        if groups is None:
            return mask
        if term.kind == "word" and re.fullmatch(r"#\d{1,9}", term.text):
            chosen = np.arange(len(groups)) == int(term.text[1:])
        elif term.kind == "word" and term.text == "*":
            chosen = np.ones(len(groups), dtype=bool)
        else:
            chosen = self._texts(groups.name, text_test(term))
        mask[groups.member[np.repeat(chosen, np.diff(groups.start))]] = True
        return mask


def _verdict(texts: Sequence[str], rows: npt.NDArray[np.intp], test: Test) -> Mask:
    return np.fromiter((bool(test(texts[int(i)])) for i in rows), bool, len(rows))


# -- the tests --------------------------------------------------------------------------------------


def is_pattern(term: Term) -> bool:
    """A regex, or a word with `*`."""
    return term.kind == "regex" or (term.kind == "word" and "*" in term.text)


def text_test(term: Term) -> Test:
    """Contains the text, in any case; `*` in a word stands for any characters; or the regex is found."""
    if term.kind == "regex":
        return _regex(term).search
    if is_pattern(term):
        return re.compile(_glob(term.text), re.IGNORECASE | re.DOTALL).search
    wanted = term.text.lower()
    return lambda text: wanted in text.lower()


def _regex(term: Term) -> re.Pattern[str]:
    try:
        return re.compile(term.text, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadQuery(f"/{term.text}/ is not a regex ({error})") from None


def _glob(text: str) -> str:
    return ".*".join(map(re.escape, text.split("*")))


def _whole(text: str) -> Callable[[str], object]:
    """Equal, in any case; `*` stands for any characters."""
    return re.compile(_glob(text), re.IGNORECASE | re.DOTALL).fullmatch


def _chosen(names: Sequence[str], term: Term) -> Mask:
    """The names (of phases, of roles) that begin with the text."""
    if term.kind == "regex":
        return np.array([_regex(term).search(name) is not None for name in names])
    chosen = np.array([name.startswith(term.text.lower()) for name in names])
    if not chosen.any():
        raise BadQuery(f"no {term.field} {term.text} (there are: {', '.join(names)})")
    return chosen


def shape_test(term: Term) -> Callable[[Type], object]:
    """`64x*` or `[64,*]`: one pattern for each dimension; `**` stands for any number of dimensions."""
    if term.kind == "regex":
        pattern = _regex(term)
        return lambda t: t.shape is not None and pattern.search("x".join(_dims(t)))
    inner = term.text.strip("[]")
    parts = [] if not inner else [part.strip() for part in re.split("," if "," in inner else "[x×]", inner)]
    if "" in parts:
        raise BadQuery(f"{term}: a dimension is empty; a shape looks like 64x*x3, [64,*,3], or [] for a single number")
    if "**" not in parts:
        tests = [_whole(part) for part in parts]
        return lambda t: (
            t.shape is not None
            and len(t.shape) == len(tests)
            and all(test(dim) for test, dim in zip(tests, _dims(t), strict=True))
        )
    # Each dimension as text followed by a comma: `**` is then any run of such, and nothing can overlap.
    pattern = "".join("(?:[^,]*,)*" if part == "**" else _glob_dim(part) + "," for part in parts)
    whole = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    return lambda t: t.shape is not None and whole.fullmatch("".join(dim.replace(",", ";") + "," for dim in _dims(t)))


def _glob_dim(text: str) -> str:
    return "[^,]*".join(map(re.escape, text.split("*")))


def _dims(t: Type) -> list[str]:
    return ["?" if dim is None else str(dim) for dim in t.shape or ()]


def frame_test(term: Term) -> Callable[[Frame], object]:
    if term.field == "file":
        test = text_test(term)
        return lambda frame: bool(frame.file) and test(frame.file)
    found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", term.text) if term.kind == "word" else None
    if found is None:
        raise BadQuery(f"{term}: a line is a number, such as line:12, or a range, such as line:10-20")
    first, last = int(found[1]), int(found[2] or found[1])
    return lambda frame: first <= frame.line <= last


def attr_test(term: Term) -> Test:
    """A key or a value contains the text; `key=value` is both in full; a regex is tried on the JSON text."""
    if term.kind == "regex":
        return _regex(term).search
    key, equals, value = term.text.partition("=")
    if term.kind == "word" and equals:
        if not key or not value:
            raise BadQuery(f"{term}: both sides of = are needed, as in attr:stride=2")
        is_key, is_value = _whole(key), _whole(value)
        return lambda text: any(is_key(k) and is_value(v) for k, v in top_level(text))
    test = text_test(term)
    return lambda text: any(test(k) or test(v) for k, v in top_level(text))


def top_level(text: str) -> list[tuple[str, str]]:
    """The keys of a JSON object with their values as text: a string as it is, all else as it is written."""
    found: list[tuple[str, str]] = []
    try:
        at = 1 + len(text) - len(text.lstrip())
        while True:
            at = _skip(text, at)
            if text[at] == "}":
                return found
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, at)
            start = _skip(text, at + 1)
            value: Any
            value, at = _DECODER.raw_decode(text, start)
            found.append((str(key), value if isinstance(value, str) else text[start:at]))
            at = _skip(text, at)
            at += text[at] == ","
    except (ValueError, IndexError, RecursionError):
        return found  # a file may hold anything; what could be read counts


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at
