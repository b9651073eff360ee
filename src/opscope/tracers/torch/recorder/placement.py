"""Where each operator belongs: its phase, scope and stack, and the operator whose gradient or repetition it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from opscope.ir import Frame, Pools
from opscope.tracers.steps import step_ends

from .account import Account, Columns, StepEnd
from .log import ACCUMULATES, GRAD_ENABLED, IN_BACKWARD, NO_SEQUENCE
from .names import Step
from .pairs import Sequences
from .places import BACKWARD, CHECKPOINT, INIT, OPTIMIZER, STARTS
from .recomputation import PASSED_OVER, align

FORWARD_BEFORE = "its forward operator ran before the recording began"
IN_CALLBACK = "runs in a hook or a callback of backward(), such as the reducer of DistributedDataParallel"
OF_A_VIEW = "belongs to a view that autograd recreated because its base was written in place"


class Placement:
    """By operator: `phases`, `scopes` and `stacks`. `forward`: gradient operator -> the operator whose gradient it
    computes; `originals`: recomputed operator -> the operator that it runs once more; `sums`: those that add gradients
    which meet."""

    def __init__(self, account: Account, log: Columns, made_by: list[int], pools: Pools) -> None:
        self._r = account
        self._log = log
        self._made_by = made_by
        self._pools = pools
        self._count = account.log.count
        self.warnings: list[str] = []
        self.phases = [self._phase(i) for i in range(self._count)]
        self._step_of = _step_numbers(account.steps, self._count)
        self._optimizer_at = _optimizers_at(account.steps)
        self._calls_scopes = self._scopes_of_calls()
        self._stacks: dict[int, int] = {0: 0}
        self._ambiguous: set[int] = set()  # gradient operators whose forward operator may be in any of several threads
        self._updating = ""  # the parameter that the optimizer is at
        self.forward = self._forward_of()
        self.sums = self._sums_of_gradients(self.forward)
        self.originals = self._recomputed_of(self.forward)
        self.scopes, self.stacks = self._places(self.forward, self.originals)

    # -- phases, scopes, stacks -------------------------------------------------------------------

    def _phase(self, i: int) -> str:
        log = self._log
        call, flags = log.call[i], self._r.places.flags[log.place[i]]
        if log.state[i] & IN_BACKWARD:
            if call >= 0 and self._r.calls[call].is_recomputed:
                return "recompute"
            return "recompute" if flags & CHECKPOINT and log.state[i] & GRAD_ENABLED else "backward"
        if call >= 0:
            return "forward"
        if flags & OPTIMIZER:
            return "optimizer"
        if flags & INIT:
            return "init"
        return "backward" if flags & BACKWARD else "forward"

    def _scopes_of_calls(self) -> list[int]:
        """The scope of every call. A module called twice in the same place has two scopes."""
        calls, step_of = self._r.calls, [0] * len(self._r.calls)
        is_used = [False] * len(calls)
        without_row = [*(lost.call for lost in self._r.lost), *self._r.unseen]
        for i, call in [*enumerate(self._log.call), *((0, call) for call in without_row)]:
            while call >= 0 and not is_used[call]:
                is_used[call] = True
                step_of[call] = self._step_of[i] if self._count else 0
                call = calls[call].parent
        scopes: list[int] = []
        counts: Counter[Any] = Counter()
        for index, call in enumerate(calls):
            above = scopes[call.parent] if call.parent >= 0 else self._step_scope(step_of[index])
            if not is_used[index]:
                scopes.append(above)
                continue
            # Checkpointing runs a module once more, which is not another call of it.
            key = (above, call.steps, call.is_recomputed)
            scopes.append(self._scope(above, call.steps, counts[key]))
            counts[key] += 1
        return scopes

    def scope_of_call(self, call: int) -> int:
        return self._calls_scopes[call] if call >= 0 else 0

    def _scope(self, above: int, steps: Sequence[Step], number: int) -> int:
        for place, step in enumerate(steps):
            above = self._pools.scope(above, step.name, step.cls, number if place == len(steps) - 1 else 0)
        return above

    def _step_scope(self, step: int) -> int:
        return self._pools.scope(0, f"step {step}") if step else 0

    def _places(self, forward: dict[int, int], originals: dict[int, int]) -> tuple[list[int], list[int]]:
        """Scope and stack of every operator. A gradient operator belongs where its forward operator is."""
        log = self._log
        scopes: list[int] = []
        stacks: list[int] = []
        homes: dict[tuple[int, int], int] = {}  # step and storage of a parameter -> where it is used first
        begin = 0
        for i in range(self._count):
            model = originals.get(i, forward.get(i))
            call = log.call[i]
            if i in originals:
                scope = scopes[originals[i]]
            elif call >= 0:
                scope = self._calls_scopes[call]
            elif model is not None:
                scope = scopes[model]
            elif i in self._optimizer_at:
                scope = self._optimizer_scope(i, begin)
            else:
                home = self._step_of[i], log.accumulated.get(i, -1)
                scope = homes.get(home, self._step_scope(self._step_of[i]))
            scopes.append(scope)
            stacks.append(stacks[model] if not log.place[i] and model is not None else self._stack(log.place[i]))
            if log.accumulated and self.phases[i] == "forward":
                for value in log.use_value[begin : log.use_end[i]]:
                    if value >= 0:
                        homes.setdefault((self._step_of[i], self._r.memory.storage(value)), scope)
            begin = log.use_end[i]
        return scopes, stacks

    def _optimizer_scope(self, i: int, begin: int) -> int:
        """The optimizer, and in it the parameter that is updated, where the operator works for one alone."""
        step = self._optimizer_at[i]
        scope = self._pools.scope(self._step_scope(self._step_of[i]), step.name, step.cls)
        log, memory = self._log, self._r.memory
        touched = [v for v in log.use_value[begin : log.use_end[i]] if v >= 0]
        touched += log.output_value[(log.output_end[i - 1] if i else 0) : log.output_end[i]]
        owners = {owner for v in touched if (owner := self._owner_of(memory.storage(v)))}
        if len(owners) == 1:
            (self._updating,) = owners
        elif owners:
            self._updating = ""
        # Temporaries between two operators of one parameter are that parameter's too.
        return self._pools.scope(scope, self._updating) if self._updating else scope

    def _owner_of(self, storage: int) -> str:
        """The parameter that a storage belongs to: itself, its gradient, or the optimizer's state for it."""
        name, role = self._r.names.storages.get(storage, ("", ""))
        if role == "gradient":
            return name.removesuffix(".grad")
        return name if role == "parameter" else self._r.names.owners.get(storage, "")

    def _stack(self, place: int) -> int:
        known = self._stacks.get(place)
        if known is None:
            outside, frames = self._r.places.rows[place]
            known = self._stack(outside)
            for frame in frames:
                known = self._pools.stacks.add(_stack_row(self._pools, known, frame))
            self._stacks[place] = known
        return known

    # -- pairs ----------------------------------------------------------------------------------

    def _forward_of(self) -> dict[int, int]:
        """Gradient operator -> the operator whose gradient it computes, by autograd's sequence numbers."""
        log = self._log
        names = [log.schemas[s].name for s in log.schema]
        sequences = Sequences(names, log.sequence, log.node_sequence, log.threads, self._r.first_sequence)
        pairs: dict[int, int] = {}
        for i in range(self._count):
            if log.node_sequence[i] >= 0:
                candidates = sequences.find(log.node_sequence[i], log.node_names[log.node_name[i]])
                candidates = [operator for operator in candidates if operator < i]
                found = candidates[0] if len(candidates) == 1 else self._nearest(i, candidates, pairs)
                if found is not None:
                    pairs[i] = found
                elif candidates:
                    self._ambiguous.add(i)
        self._settle(pairs)
        return pairs

    def _settle(self, pairs: dict[int, int]) -> None:
        """What runs between operators of one gradient function, without another one in between, is a part of it."""
        log = self._log
        for i in sorted(self._ambiguous):
            key = log.node_sequence[i], log.node_name[i]
            around: set[int] = set()
            for step in (-1, 1):
                other = i + step
                while 0 <= other < self._count and (log.node_sequence[other], log.node_name[other]) == key:
                    if other in pairs:
                        around.add(pairs[other])
                        break
                    other += step
            if len(around) == 1:
                pairs[i] = around.pop()
        self._ambiguous.difference_update(pairs)

    def _nearest(self, i: int, candidates: list[int], pairs: dict[int, int]) -> int | None:
        """Of operators in several threads, the one whose memory a gradient operator reads, or what read its result:
        the gradient that comes in was made for that one."""
        read = self._storages(i, made=False)
        log = self._log
        for value in log.use_value[log.use_end[i - 1] if i else 0 : log.use_end[i]]:
            maker = pairs.get(self._made_by[value], -1) if value >= 0 else -1
            if maker in candidates:
                return maker
            if maker >= 0:
                read |= self._storages(maker, made=False)
        shared = sorted(((len(read & self._storages(c)), c) for c in candidates), reverse=True)
        return shared[0][1] if shared and (len(shared) == 1 or shared[0][0] > shared[1][0]) else None

    def _storages(self, i: int, made: bool = True) -> set[int]:
        log = self._log
        values = [value for value in log.use_value[log.use_end[i - 1] if i else 0 : log.use_end[i]] if value >= 0]
        if made:
            values += log.output_value[log.output_end[i - 1] if i else 0 : log.output_end[i]]
        return {self._r.memory.storage(value) for value in values}

    def _sums_of_gradients(self, forward: dict[int, int]) -> set[int]:
        """Where gradients of two ways meet, the engine adds them, right after the function that ran last. That
        function's operator has no part in it: one of the two comes from somewhere else."""
        log, made_by = self._log, self._made_by
        found: set[int] = set()
        for i in forward:
            if log.place[i] or log.schemas[log.schema[i]].name not in ("aten.add.Tensor", "aten.add_.Tensor"):
                continue
            begin = log.use_end[i - 1] if i else 0
            makers = [made_by[value] for value in log.use_value[begin : log.use_end[i]] if value >= 0]
            sequences = {log.node_sequence[maker] for maker in makers if maker >= 0}
            if len(makers) == 2 and len(sequences) == 2 and log.node_sequence[i] in sequences:
                found.add(i)
        return found

    def _recomputed_of(self, forward: dict[int, int]) -> dict[int, int]:
        """Recomputed operator -> the operator that it runs once more."""
        names = [self._log.schemas[s].name for s in self._log.schema]
        again = [i for i in range(self._count) if self.phases[i] == "recompute"]
        originals = align(again, names, self._log.node_sequence, forward, self.phases)
        alone = sum(i not in originals and names[i] not in PASSED_OVER for i in again)
        if alone:
            self.warnings.append(
                f"{alone} recomputed operators could not be joined to the ones that they run once more: the "
                "recomputation took another way than the forward pass"
            )
        for i in again:
            forward.pop(i, None)
        return originals

    def why_alone(self, i: int) -> str:
        """Why a gradient operator or a recomputed one has no original; nothing where it has one."""
        if self.phases[i] == "recompute" and i not in self.originals:
            is_saving = self._log.schemas[self._log.schema[i]].name in PASSED_OVER
            return "keeps a tensor for the backward pass" if is_saving else "recomputed in another way"
        if i in self.sums:
            return "adds gradients that meet"
        if self.phases[i] != "backward" or i in self.forward:
            return ""
        sequence = self._log.node_sequence[i]
        if sequence == ACCUMULATES:
            storage = self._log.accumulated.get(i, -1)
            name = self._r.names.storages.get(storage, ("a leaf", ""))[0]
            return f"adds to the gradient of {name}"
        if sequence == NO_SEQUENCE:
            is_start = self._r.places.flags[self._log.place[i]] & STARTS
            return "the gradient that backward() starts from" if is_start else IN_CALLBACK
        if self._log.node_names[self._log.node_name[i]] == "AsStridedBackward0":
            return OF_A_VIEW
        if i in self._ambiguous:
            return "several threads ran an operator that it may belong to"
        return FORWARD_BEFORE


def _step_numbers(steps: list[StepEnd], count: int) -> list[int]:
    """Which training step each operator is in, from 1; 0 where there is only one."""
    ends = step_ends((step.optimizer, step.ended) for step in steps)
    if not ends:
        return [0] * count
    numbers: list[int] = []
    for number, end in enumerate(ends, 1):
        numbers.extend([number] * (end - len(numbers)))
    return numbers + [len(ends) + 1] * (count - len(numbers))


def _optimizers_at(steps: list[StepEnd]) -> dict[int, StepEnd]:
    return {i: step for step in steps for i in range(step.began, step.ended)}


def _stack_row(pools: Pools, parent: int, frame: Frame) -> Any:
    from opscope.ir.pools import Stack, clean

    return Stack(parent, pools.frames.add(Frame(clean(frame.file), frame.line, clean(frame.function))))
