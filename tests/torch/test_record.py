"""What a recording holds: phases, scopes, names, views and writes, pairs; and that it leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from torch.utils.flop_counter import FlopCounterMode
from zoo import GPT, ResNet

import opscope
from opscope.analysis.annotate import annotate
from opscope.errors import OpscopeError
from opscope.ir import Graph, Node


def node_of(graph: Graph, op: str, number: int = 0) -> Node:
    return [node for node in graph.nodes if node.op == op][number]


def paths(graph: Graph, phase: str = "forward") -> list[str]:
    return [node.path for node in graph.nodes if node.phase == phase]


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.last = self.layers[0]

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.last(x)


# -- scopes, names, lines --------------------------------------------------------------------------


def test_a_module_called_twice_is_two_calls() -> None:
    cap = opscope.trace(Twice(), torch.randn(2, 4))
    assert list(dict.fromkeys(paths(cap.graph))) == ["layers/0", "layers/1", "layers/0#2"]


def test_arguments_parameters_and_results_are_known() -> None:
    cap = opscope.trace(Twice(), torch.randn(2, 4))
    graph = cap.graph
    assert [graph.value(v).name for v in graph.inputs] == ["x"]
    assert {v.name for v in graph.values if v.role == "parameter"} == {
        "layers.0.weight",
        "layers.0.bias",
        "layers.1.weight",
        "layers.1.bias",
    }
    assert [str(graph.value(v).type) for v in graph.outputs] == ["float32[2,4]"]


def test_nested_arguments_are_named_by_where_they_are() -> None:
    def run(batch: dict[str, Any], *more: Tensor) -> Tensor:
        return batch["x"] + batch["pair"][1] * more[0]

    cap = opscope.trace(run, {"x": torch.ones(2), "pair": (None, torch.ones(2))}, torch.ones(2))
    assert [cap.graph.value(v).name for v in cap.graph.inputs] == ["batch.x", "batch.pair[1]", "more[0]"]


def test_the_innermost_line_of_the_users_code() -> None:
    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x)

        def inner(self, x: Tensor) -> Tensor:
            return x.exp()  # this line

    frames = node_of(opscope.trace(Net(), torch.ones(1)).graph, "aten.exp").frames
    text = (__file__, "inner")
    assert (frames[-1].file, frames[-1].function) == text
    with open(__file__) as lines:
        assert "# this line" in lines.readlines()[frames[-1].line - 1]


def test_tensors_that_nobody_named_are_named_by_variable_or_by_line() -> None:
    outside = torch.ones(3)
    table = {"deep": [[[torch.ones(3)]]]}

    def run() -> Tensor:
        local = outside
        return local + table["deep"][0][0][0] + torch.tensor([1.0, 2.0, 3.0])

    names = [v.name for v in opscope.trace(run).graph.values if v.producer is None]
    assert names[0] in ("outside", "local")
    assert all(names), names


def test_a_parameter_that_is_not_of_a_module_has_the_optimizers_name() -> None:
    weight = [nn.Parameter(torch.ones(2))]
    optimizer = torch.optim.SGD(weight, lr=0.1)
    del weight
    with opscope.record(optimizer=optimizer) as cap:
        (optimizer.param_groups[0]["params"][0] * 2).sum().backward()
        optimizer.step()
    assert "optimizer.param_groups[0].params[0]" in {v.name for v in cap.graph.values}


# -- phases and steps ------------------------------------------------------------------------------


def test_a_training_step_in_phases() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(2, 4)
    with opscope.record(model, optimizer=optimizer) as cap:
        optimizer.zero_grad()
        model(x).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    graph = cap.graph
    phases = [node.phase for node in graph.nodes]
    order = list(dict.fromkeys(phases))
    assert order == ["forward", "backward", "optimizer"]
    assert phases == sorted(phases, key=order.index)
    assert {node.path for node in graph.nodes if node.op == "aten.lerp_.Scalar"} == {
        f"optimizer/{name}" for name, _ in model.named_parameters()
    }
    states = {v.name for v in graph.values if v.role == "state"}
    assert "optimizer.exp_avg.0.weight" in states
    assert "0.weight.grad" in {v.name for v in graph.values if v.role == "gradient"}


def test_a_closure_is_not_the_optimizers() -> None:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
    x = torch.randn(4, 3)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = (model(x) - 1).square().mean()
        loss.backward()
        return loss

    with opscope.record(model, optimizer=optimizer) as cap:
        optimizer.step(closure)
    assert node_of(cap.graph, "aten.addmm").phase == "forward"
    assert node_of(cap.graph, "aten.pow.Tensor_Scalar").phase == "forward"  # outside of the model, inside of step()
    assert "optimizer" in {node.phase for node in cap.graph.nodes}


def test_steps_are_scopes_and_two_optimizers_make_one_step() -> None:
    generator, critic = nn.Linear(2, 3), nn.Linear(3, 1)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (generator, critic)]
    with opscope.record([generator, critic], optimizer=optimizers) as cap:
        for _ in range(2):
            for optimizer in optimizers:
                optimizer.zero_grad()
                critic(generator(torch.randn(4, 2))).mean().backward()
                optimizer.step()
    tops = list(dict.fromkeys(node.path.split("/")[0] for node in cap.graph.nodes))
    assert tops == ["step 1", "step 2"]
    inner = {"/".join(node.path.split("/")[:2]) for node in cap.graph.nodes if node.phase == "forward"}
    assert {"step 1/generator", "step 1/critic", "step 1/generator#2"} <= inner
    assert "generator.weight" in {v.name for v in cap.graph.values}


def test_gradients_accumulate() -> None:
    model = nn.Linear(2, 2)
    with opscope.record(model) as cap:
        for _ in range(2):
            model(torch.ones(1, 2)).sum().backward()
    added = [node for node in cap.graph.nodes if node.attrs.get("autograd") == "AccumulateGrad"]
    assert {node.attrs["unpaired"] for node in added} == {
        "adds to the gradient of weight",
        "adds to the gradient of bias",
    }
    assert {node.path for node in added} == {"model"}


# -- views and writes ------------------------------------------------------------------------------


def test_a_write_through_another_window_is_read_in_the_readers_shape() -> None:
    def step(x: Tensor, w: Tensor) -> Tensor:
        x.view(-1).add_(1.0)
        return x @ w

    cap = opscope.trace(step, torch.zeros(4, 6), torch.randn(6, 2))
    add, product = (next(n for n in cap.graph.nodes if n.op.startswith(op)) for op in ("aten.add_", "aten.mm"))
    assert [str(value.type) for value in product.inputs] == ["float32[4,6]", "float32[6,2]"]
    assert product.inputs[0].producer == add
    found = cap.stats()
    assert found.total.macs == 4 * 6 * 2
    (row,) = [row for row in found.by_op().rows if row["name"] == "aten.add_.Tensor"]
    assert (row["read"], row["written"]) == (96, 96)  # once, though two values came of it


@pytest.mark.parametrize("fake", [False, True])
def test_set_shows_other_memory_and_writes_to_none(fake: bool) -> None:
    """As a flattened LSTM does on CUDA: its weights are read as what they are."""

    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            flat = torch.randn(100)
            self.a, self.b = nn.Parameter(flat[:50].view(5, 10)), nn.Parameter(flat[50:].view(10, 5))

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                whole = torch.empty(0).set_(self.a.untyped_storage(), 0, (100,), (1,))
            return x @ self.a @ self.b + whole.sum()

    model, x = Flat(), torch.randn(3, 5)
    assert opscope.stats(model, x, fake=fake).total.macs == 2 * 3 * 5 * 10
    shown = next(n for n in opscope.trace(model, x).graph.nodes if n.op.startswith("aten.set_"))
    assert shown.attrs["source"] == "<400 bytes of memory>"


def test_an_in_place_write_makes_a_new_value_in_the_same_memory() -> None:
    def run(x: Tensor) -> Tensor:
        y = x * 2
        view = y[0]
        y.add_(1)
        return view * 3

    graph = opscope.trace(run, torch.ones(2, 2)).graph
    written = node_of(graph, "aten.add_.Tensor").outputs[0]
    assert written.storage == node_of(graph, "aten.mul.Tensor").outputs[0]
    # The view was taken before the write, and shows what was written.
    (shown,) = node_of(graph, "aten.mul.Tensor", 1).inputs
    assert (shown.producer, shown.storage, str(shown.type)) == (written.producer, written.storage, "float32[2]")


def test_a_tensor_that_was_written_in_parts_comes_from_all_of_them() -> None:
    def run(x: Tensor) -> Tensor:
        y = x * 2
        second = y[:, 1]
        y[:, 0].zero_()
        y[:, 1].fill_(1)
        return y.sum() + second.exp().sum()

    graph = opscope.trace(run, torch.ones(3, 3)).graph
    writers = [value.producer.op for value in node_of(graph, "aten.sum").inputs]
    assert writers == ["aten.mul.Tensor", "aten.zero_", "aten.fill_.Scalar"]
    # The other column does not come in.
    assert [value.producer.op for value in node_of(graph, "aten.exp").inputs] == ["aten.fill_.Scalar"]


def test_many_writes_to_parts_stay_few_edges() -> None:
    def run(x: Tensor) -> Tensor:
        out = torch.zeros(500)
        for i in range(500):
            out[i] = x[i]
            out.sum()
        return out

    graph = opscope.trace(run, torch.ones(500)).graph
    assert graph.n_edges < 500 * 80


def test_a_tensor_and_its_detached_self_are_not_mixed_up() -> None:
    def run(x: Tensor) -> Tensor:
        y = x * 2
        z = y.detach()
        return y.exp() + z.sin()

    graph = opscope.trace(run, torch.ones(2)).graph
    assert node_of(graph, "aten.exp").inputs[0].producer.op == "aten.mul.Tensor"
    assert node_of(graph, "aten.sin").inputs[0].producer.op == "aten.detach"


def test_tied_weights_are_one_value() -> None:
    graph = opscope.trace(GPT(), torch.zeros(1, 4, dtype=torch.int64)).graph
    tied = [v for v in graph.values if v.producer is None and v.name in ("tokens.weight", "head.weight")]
    assert [v.name for v in tied] == ["tokens.weight"]
    assert len(tied[0].users) == 2


# -- pairs -----------------------------------------------------------------------------------------


def test_gradient_operators_stand_where_their_forward_operators_stand() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with opscope.record(model) as cap:
        model(torch.randn(2, 4)).sum().backward()
    graph = cap.graph
    grad = graph.links_of("grad")
    for source, target in zip(grad.source.tolist(), grad.target.tolist(), strict=True):
        assert graph.node(source).phase == "forward"
        assert graph.node(target).phase == "backward"
        assert graph.node(target).path == graph.node(source).path
    backward = node_of(graph, "aten.threshold_backward")
    sources = [s for s, t in zip(grad.source.tolist(), grad.target.tolist(), strict=True) if t == backward.index]
    assert [graph.node(s).op for s in sources] == ["aten.relu"]


def test_a_backward_of_what_ran_before_says_so() -> None:
    loss = nn.Linear(2, 2)(torch.ones(1, 2)).sum()
    with opscope.record() as cap:
        loss.backward()
    assert any("ran before the recording began" in warning for warning in cap.all_warnings())
    assert not len(cap.graph.links_of("grad"))


# -- what must not happen ----------------------------------------------------------------------------


def test_everything_is_restored_after_an_exception() -> None:
    module = torch.nn.modules.module

    class Fails(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise KeyError("mine")

    hooks = dict(module._global_forward_hooks), dict(module._global_forward_pre_hooks)
    with pytest.raises(KeyError, match="mine"), opscope.record():
        Fails()(torch.ones(1) * 2)
    with pytest.raises(KeyError, match="mine"):
        opscope.trace(Fails(), torch.ones(1))
    assert not _get_current_dispatch_mode_stack()
    assert (dict(module._global_forward_hooks), dict(module._global_forward_pre_hooks)) == hooks


def test_a_call_that_failed_and_was_caught_does_not_swallow_the_rest() -> None:
    class Fails(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise SystemExit  # not an Exception: torch calls no hook

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bad, self.good = Fails(), nn.ReLU()

        def forward(self, x: Tensor) -> Tensor:
            try:
                self.bad(x)
            except SystemExit:
                return self.good(x)
            return x

    assert paths(opscope.trace(Net(), torch.ones(1)).graph) == ["good"]


def test_nothing_that_was_computed_lives_on() -> None:
    references: list[weakref.ref[Tensor]] = []
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    for module in model:
        module.register_forward_hook(lambda m, i, out: references.append(weakref.ref(out)))

    def step() -> opscope.Capture:
        x = torch.randn(2, 4)
        with opscope.record(model) as cap:
            hidden = model(x)
            loss = hidden.sum()
            references.append(weakref.ref(hidden))
            references.append(weakref.ref(loss))
            loss.backward()
            del hidden, loss, x
            gc.collect()
            assert [r() for r in references] == [None] * len(references)
        return cap

    cap = step()
    assert cap.graph.n_nodes


def test_variables_that_are_deleted_after_the_recording_are_freed() -> None:
    x = torch.ones(2)
    with opscope.record() as cap:
        y = x * 2
    reference = weakref.ref(y)
    del y
    gc.collect()
    assert reference() is None
    assert cap.graph.n_nodes == 1


def test_nothing_recorded_is_said() -> None:
    with pytest.raises(OpscopeError, match="ran no operator"), opscope.record(framework="torch"):
        pass


def test_other_threads_do_not_disturb() -> None:
    model = nn.Linear(2, 2)
    errors: list[BaseException] = []

    def other() -> None:
        try:
            for _ in range(50):
                model(torch.ones(1, 2))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=other)
    with opscope.record(model) as cap:  # started here: a part of what the block computes
        thread.start()
        for _ in range(50):
            model(torch.ones(1, 2))
        thread.join()
    assert not errors
    assert not [w for w in cap.all_warnings() if "could not" in w]
    assert sum(node.op == "aten.addmm" for node in cap.graph.nodes) == 100


def test_a_recording_inside_a_recording() -> None:
    with opscope.record() as outer:
        torch.ones(2).exp()
        with opscope.record() as inner:
            torch.ones(2).sin()
    assert [node.op for node in inner.graph.nodes][-1] == "aten.sin"
    assert "aten.sin" in [node.op for node in outer.graph.nodes]


# -- special tensors and modes -----------------------------------------------------------------------


def test_fake_tensors_need_no_memory() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        model = ResNet(512)
        optimizer = torch.optim.AdamW(model.parameters())
        x = torch.randn(256, 3, 224, 224)
        with opscope.record(model, optimizer=optimizer) as cap:
            model(x).sum().backward()
            optimizer.step()
    assert not [w for w in cap.all_warnings() if "could not" in w]
    assert {node.phase for node in cap.graph.nodes} == {"forward", "backward", "optimizer"}
    convolution = node_of(cap.graph, "aten.convolution")
    assert str(convolution.outputs[0].type) == "float32[256,512,112,112]"


def test_the_meta_device_is_shown() -> None:
    graph = opscope.trace(nn.Linear(4, 4, device="meta"), torch.ones(1, 4, device="meta")).graph
    assert node_of(graph, "aten.addmm").attrs["device"] == "meta"


def test_times_and_values_on_request() -> None:
    with opscope.record(times=True, values=True) as cap:
        torch.arange(3.0) * 2
    times = cap.tables["times"].columns["time"]
    assert times.unit == "ns"
    assert len(times.values) == cap.graph.n_nodes
    assert list(cap.tables["value statistics"].columns["values"].values[-1]) == [0.0, 2.0, 4.0]


def test_a_compiled_model_is_recorded_as_it_would_run_without_the_compiler() -> None:
    model = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), backend="eager")
    graph = opscope.trace(model, torch.ones(1, 4)).graph
    assert "aten.addmm" in {node.op for node in graph.nodes}


def test_higher_order_operators_run_and_are_seen() -> None:
    def run(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    x = torch.ones(3)
    with opscope.record() as cap:
        y = run(x)
    assert torch.equal(y, x.sin())
    assert cap.graph.n_nodes > 1
    assert torch.equal(run(x), x.sin())  # and it still runs without us


def test_saving_and_opening_keeps_all(tmp_path: Any) -> None:
    model = nn.Linear(4, 4)
    with opscope.record(model) as cap:
        F.relu(model(torch.randn(2, 4))).sum().backward()
    cap.save(tmp_path / "step.opscope")
    assert opscope.open(tmp_path / "step.opscope").text() == annotate(cap).text()


def test_the_profiler_measures_beside_the_recorder():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten(), nn.LazyLinear(2))
    x = torch.randn(2, 3, 8, 8)
    model(x)
    optimizer = torch.optim.AdamW(model.parameters())
    with opscope.record(model, optimizer=optimizer, times="device") as cap:
        for _ in range(4):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    (warning,) = cap.warnings
    assert warning.startswith("step 1 warms up: ")
    (times,) = (table for table in cap.tables.values() if table.fact == "times")
    # Every operator was marked while it ran, backward and optimizer included: none is matched by its name.
    assert times.index.tolist() == list(range(cap.graph.n_nodes))
    assert (times.columns["cpu"].values > 0).all()
    # The same operator in each step has the same median, of the three steps after the first.
    multiplied = [i for i in times.index if cap.graph.node(int(i)).op.startswith("aten.addmm")]
    median, runs = times.columns["median"].values[multiplied], times.columns["runs"].values[multiplied]
    assert len(multiplied) == 4
    assert len(set(median.tolist())) == 1
    assert median[0] == np.median(times.columns["time"].values[multiplied[1:]])
    assert runs.tolist() == [3] * 4
    with pytest.raises(opscope.OpscopeError, match="not known"):
        opscope.record(model, times="gpu")


def modes_of_the_process() -> tuple[Any, ...]:
    from torch.utils import _python_dispatch as dispatch

    flags = ("_is_in_torch_dispatch_mode", "_is_in_non_infra_torch_dispatch_mode")
    return *(getattr(dispatch, name) for name in flags), len(dispatch._get_current_dispatch_mode_stack())


def test_recordings_that_end_in_the_order_that_they_began_in() -> None:
    model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    before = modes_of_the_process()
    first, second = opscope.record(model), opscope.record(model)
    one, other = first.__enter__(), second.__enter__()
    model(x)
    first.__exit__(None, None, None)
    model(x)
    counter = FlopCounterMode(display=False)
    counter.__enter__()
    second.__exit__(None, None, None)
    model(x)
    counter.__exit__(None, None, None)
    assert (one.stats().total.macs, other.stats().total.macs, counter.get_total_flops()) == (32, 64, 64)
    assert modes_of_the_process() == before


def test_a_recording_that_another_thread_ends() -> None:
    model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    before = modes_of_the_process()
    recording = opscope.record(model)
    held: list[Any] = []

    def begin() -> None:
        held.append(recording.__enter__())
        model(x)

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    recording.__exit__(None, None, None)
    with FlopCounterMode(display=False) as counter:
        model(x)
    assert (held[0].stats().total.macs, counter.get_total_flops()) == (32, 64)
    assert modes_of_the_process() == before


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_what_ran_before_the_program_ended_is_kept(kind: type[BaseException]) -> None:
    model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    recording = opscope.record(model)

    def run() -> None:
        with recording:
            model(x)
            raise kind

    cap = recording._into
    with pytest.raises(kind):
        run()
    assert cap.stats().total.macs == 32
    assert cap.warnings[0].startswith(f"{kind.__name__} at ")
