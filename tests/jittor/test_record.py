"""opscope.record around training steps."""

from __future__ import annotations

import gc
import sys
import weakref
from collections import Counter

import jittor as jt
import numpy as np
import pytest
from jittor import nn
from small_models import MLP, ConvNet, inputs, line, numbers, paths

import opscope
from opscope.ir import verify

OPTIMIZERS = {
    "SGD": lambda parameters: jt.optim.SGD(parameters, 0.1, momentum=0.9),
    "Adam": lambda parameters: jt.optim.Adam(parameters, 0.01),
}
PARAMETERS = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}


def step(model, opt, value):
    opt.step((model(value) ** 2).mean())


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_step_in_the_middle_of_training(x, optimizer):
    net = MLP()
    opt = OPTIMIZERS[optimizer](net.parameters())
    step(net, opt, x)
    jt.sync_all()
    with opscope.record(net, optimizer=opt) as capture:
        step(net, opt, x)
    graph = capture.graph
    verify(graph)
    assert {"forward", "backward", "optimizer"} <= {node.phase for node in graph.nodes}
    # Every tensor from before is known, although Jittor's dump has none of them.
    kinds = {"SGD": ("values",), "Adam": ("values", "m")}[optimizer]
    assert set(inputs(capture)) == PARAMETERS | {f"opt.{kind}.{name}" for kind in kinds for name in PARAMETERS} | {"x"}
    assert inputs(capture)["fc1.weight"] == ("parameter", "float32[8,4]")
    assert inputs(capture)["opt.values.fc2.bias"] == ("state", "float32[1]")
    # What was written over lives where it did, and keeps its name.
    for name in PARAMETERS | {f"opt.{kind}.{name}" for kind in kinds for name in PARAMETERS}:
        old, new = [value for value in graph.values if value.name == name]
        assert old.producer is None
        assert new.producer.phase == "optimizer"
        assert new.storage == old
        assert (new.role, new.type) == (old.role, old.type)
    assert {node.path for node in graph.nodes if node.phase == "optimizer"} == {"opt"}
    assert {node.path for node in graph.nodes if node.phase == "backward"} == {"", "net/fc1", "net/relu", "net/fc2"}
    assert len(graph.links_of("grad")) > 10


def test_the_first_step_of_a_model_that_is_not_computed_yet(x):
    net = MLP()
    opt = OPTIMIZERS["Adam"](net.parameters())
    with opscope.record(net, optimizer=opt) as capture:
        step(net, opt, x)
    assert set(inputs(capture)) >= PARAMETERS
    for name in [*PARAMETERS, *(f"opt.m.{name}" for name in PARAMETERS)]:
        old, new = [value for value in capture.graph.values if value.name == name]
        assert new.storage == old


def test_several_steps_are_told_apart(x):
    net = MLP()
    opt = OPTIMIZERS["Adam"](net.parameters())
    step(net, opt, x)
    jt.sync_all()
    with opscope.record(net, optimizer=opt) as capture:
        for _ in range(3):
            step(net, opt, x)
        after = net(x).sum()  # noqa: F841
    steps = Counter(path.partition("/")[0] for path in (node.path for node in capture.graph.nodes))
    # Jittor is lazy, so each step's kernels may mix with the next one's; the operators do not.
    assert steps["step 1"] == steps["step 2"] == steps["step 3"] > 100
    assert {"step 2/net/fc1", "step 2/opt", "net/fc1"} <= paths(capture)
    versions = [value for value in capture.graph.values if value.name == "opt.m.fc1.weight"]
    assert [value.storage for value in versions] == [versions[0]] * 4


def test_two_models_and_their_optimizers(x):
    one, two = MLP(), MLP()
    opt1, opt2 = OPTIMIZERS["SGD"](one.parameters()), OPTIMIZERS["SGD"](two.parameters())
    jt.sync_all()
    with opscope.record() as capture:
        for _ in range(2):
            step(one, opt1, x)
            step(two, opt2, x)
    # One training step is one round of all optimizers.
    assert {path.partition("/")[0] for path in paths(capture)} == {"step 1", "step 2"}
    assert {"step 1/one/fc1", "step 1/two/fc1", "step 2/opt1", "step 2/opt2"} <= paths(capture)
    assert {"one.fc1.weight", "two.fc1.weight", "opt2.values.two.fc2.bias"} <= set(inputs(capture))


def test_only_models_with_tensors_make_names_longer(x):
    net, criterion = MLP(), nn.MSELoss()
    jt.sync_all()
    with opscope.record() as capture:
        loss = criterion(net(x), x[:, :1])
    assert set(inputs(capture)) == PARAMETERS | {"x"}
    assert "criterion" in paths(capture)
    teacher = MLP()
    jt.sync_all()
    with opscope.record(net) as capture:
        loss = criterion(net(x), teacher(x))  # noqa: F841
    assert set(inputs(capture)) == PARAMETERS | {f"teacher.{name}" for name in PARAMETERS} | {"x"}


def test_models_in_a_list_and_in_an_object(x):
    class Trainer:
        def __init__(self) -> None:
            self.first, self.second = MLP(), MLP()

        def run(self):
            with opscope.record([self.first, self.second]) as capture:
                y = self.first(x) + self.second(x)
            del y
            return capture

    trainer = Trainer()
    jt.sync_all()
    capture = trainer.run()
    assert {"first/fc1", "second/fc1"} <= paths(capture)
    assert {"first.fc1.weight", "second.fc1.weight"} <= set(inputs(capture))


def test_a_write_to_a_part_of_a_tensor(x):
    def change(value):
        value = value * 2
        value[0] = 7.0
        return value

    capture = opscope.trace(change, x)
    (write,) = [node for node in capture.graph.nodes if node.op.startswith("setitem")]
    assert write.outputs[0].storage == write.inputs[0]


def test_everything_from_the_first_parameter_on(x):
    with opscope.record(framework="jittor") as capture:
        net = MLP()
        opt = OPTIMIZERS["SGD"](net.parameters())
        step(net, opt, x)
    assert {node.phase for node in capture.graph.nodes} >= {"init", "forward", "backward", "optimizer"}
    assert {"MLP_init/Linear_init", "MLP_init/Linear_init#2", "SGD_init", "net/fc1", "opt"} <= paths(capture)
    for name in PARAMETERS:
        made, updated = [value for value in capture.graph.values if value.name == name]
        assert (made.producer.phase, updated.producer.phase) == ("init", "optimizer")
        assert updated.storage == made
        assert made.role == "parameter"


def test_state_that_is_made_in_the_block_has_its_name_from_the_start(x):
    with opscope.record(framework="jittor") as capture:
        net = MLP()
        opt = OPTIMIZERS["Adam"](net.parameters())
        step(net, opt, x)
    made, updated = [value for value in capture.graph.values if value.name == "opt.m.fc1.weight"]
    assert (made.producer.phase, updated.producer.phase) == ("init", "optimizer")
    assert (made.role, updated.role) == ("state", "state")
    assert updated.storage == made


def test_what_is_gone_at_the_end_had_a_name_at_the_start(x):
    held = [MLP()]
    held.append(OPTIMIZERS["Adam"](held[0].parameters()))
    step(*held, x)
    jt.sync_all()
    with opscope.record(held[0], optimizer=held[1]) as capture:
        step(*held, x)
        jt.sync_all()
        held.clear()
    names = Counter(value.name for value in capture.graph.values)
    assert names["fc1.weight"] == names["Adam.m.fc1.weight"] == 2


def test_recording_computes_nothing_early(x):
    finished = 2  # NodeFlags::_finished
    net = MLP()
    y = x * 3.0
    with opscope.record(net):
        assert not any(var.flags & finished for var in (y, *net.parameters()))
        z = net(x) + y.sum()
    assert z.flags & finished


def test_running_statistics_are_buffers(x):
    net = ConvNet()
    opt = OPTIMIZERS["SGD"](net.parameters())
    batch = jt.array(numbers(2, 3, 8, 8)).sync()
    jt.sync_all()
    with opscope.record(net, optimizer=opt) as capture:
        step(net, opt, batch)
    assert inputs(capture)["bn.running_mean"] == ("buffer", "float32[4]")
    old, new = [value for value in capture.graph.values if value.name == "bn.running_var"]
    assert new.storage == old
    assert new.role == "buffer"
    assert new.producer.path == "net/bn"
    assert "batch" in inputs(capture)


def test_parameters_stay_parameters_in_evaluation(x):
    net = MLP()
    net.eval()  # stops their gradients
    jt.sync_all()
    with opscope.record(net) as capture:
        y = net(x)  # noqa: F841
    assert {inputs(capture)[name][0] for name in PARAMETERS} == {"parameter"}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("settled", [True, False])
def test_results_are_the_same_to_the_bit(optimizer, settled):
    batch = numbers(2, 3, 8, 8)

    def train(recorded: bool):
        jt.set_global_seed(11)
        net = ConvNet()
        opt = OPTIMIZERS[optimizer](net.parameters())
        for number in range(3):
            if settled:
                jt.sync_all()
            if recorded and number == 1:
                with opscope.record(net, optimizer=opt, values=True):
                    step(net, opt, jt.array(batch))
            else:
                step(net, opt, jt.array(batch))
        return {name: var.numpy() for name, var in net.state_dict().items()}, opt.param_groups[0]["values"][0].numpy()

    plain, state = train(False)
    recorded, recorded_state = train(True)
    assert plain.keys() == recorded.keys()
    for name in plain:
        assert np.array_equal(plain[name], recorded[name]), name
    assert np.array_equal(state, recorded_state)


def test_the_capture_is_empty_until_the_block_ends(x):
    net = MLP()
    with opscope.record(net) as capture:
        assert not capture.stages
        y = net(x)  # noqa: F841
    assert capture.graph.n_nodes


def test_an_exception_goes_through_and_everything_is_put_back(x):
    net = MLP()
    opt = OPTIMIZERS["SGD"](net.parameters())
    step(net, opt, x)

    def fail():
        with opscope.record(net, optimizer=opt, values=True, times=True) as capture:
            step(net, opt, x)
            assert jt.flags.trace_py_var == 3
            seen.append(capture)
            raise KeyError("mine")

    seen = []
    with pytest.raises(KeyError, match="mine"):
        fail()
    assert "net/fc1" in paths(seen[0])  # what ran until then
    assert "KeyError" in seen[0].warnings[0]
    assert (jt.flags.trace_py_var, jt.flags.trace_var_data, jt.flags.profiler_enable) == (0, 0, 0)
    with opscope.record(net, optimizer=opt) as capture:
        step(net, opt, x)
    assert "net/fc1" in paths(capture)


def test_what_the_block_drops_is_not_kept_alive(x):
    with opscope.record(framework="jittor") as capture:
        net = MLP()
        net(x).sync()
        gone = weakref.ref(net)
        del net
        gc.collect()
        assert gone() is None
    assert "net/fc1" in paths(capture)


def test_values_and_times(x):
    net = MLP()
    with opscope.record(net, values=True, times=True) as capture:
        y = net(x)
    table = capture.tables["value statistics"]
    (result,) = capture.graph.outputs
    row = list(table.index).index(int(result))
    np.testing.assert_allclose(table.columns["values"].values[row], y.numpy().ravel(), rtol=1e-4)
    times = capture.tables["times"].columns["time"]
    assert times.unit == "ns"
    assert (np.asarray(times.values)[times.known] > 0).all()
    assert times.known.any()


# The user's own tracing


def test_a_trace_of_the_users_own_goes_on(x):
    net = MLP()
    with jt.flag_scope(trace_py_var=2):
        jt.exp(net(x)).sync()
        with opscope.record(net) as capture:
            y = net(x)
        z = jt.sin(y)
        z.sync()
        data = jt.dump_trace_data()
    jt.clear_trace_data()
    names = Counter(node["attrs"]["name"] for node in data["node_data"].values())
    assert names["unary.exp"] == names["unary.sin"] == 1
    ops = Counter(node.op for node in capture.graph.nodes)
    assert not set(ops) & {"unary.exp", "unary.sin"}
    assert names["reduce.add"] == 2 * ops["reduce.add"] == 4
    assert {"net/fc1", "net/relu", "net/fc2"} == paths(capture)
    assert {value.name for value in capture.graph.values} >= PARAMETERS


def test_a_trace_that_the_user_left_behind_comes_back(x):
    with jt.flag_scope(trace_py_var=2):
        jt.exp(x).sync()
    own = jt.dump_trace_data()
    net = MLP()
    with opscope.record(net) as capture:
        y = net(x)
    assert "unary.exp" not in {node.op for node in capture.graph.nodes}
    assert jt.dump_trace_data() == own
    with opscope.record(net):
        y = net(x)  # noqa: F841
    with jt.flag_scope(trace_py_var=2):
        jt.sin(x).sync()
    both = jt.dump_trace_data()
    names = [node["attrs"]["name"] for node in both["node_data"].values()]
    assert {"unary.exp", "unary.sin"} <= set(names)
    assert len(both["node_data"]) == len(own["node_data"]) + 2
    jt.clear_trace_data()
    assert jt.dump_trace_data() == {"node_data": {}, "execute_op_info": {}}


def test_what_the_block_clears_is_a_stage_of_its_own(x):
    net = MLP()
    jt.sync_all()

    def first():
        jt.exp(net(x)).sync()
        own = jt.dump_trace_data()
        jt.clear_trace_data()
        return own

    with opscope.record(net) as capture:
        own = first()
        y = jt.sin(net(x))
    assert [stage.name for stage in capture.stages] == ["first", "trace"]
    for stage, op in zip(capture.stages, ["unary.exp", "unary.sin"], strict=True):
        verify(stage.graph)
        assert {node.op for node in stage.graph.nodes} & {"unary.exp", "unary.sin"} == {op}
        assert {stage.graph.value(int(index)).name for index in stage.graph.inputs} >= PARAMETERS
    # The user's own dump has no trace of how we found out about the parameters.
    assert "clone" not in {node["attrs"]["name"] for node in own["node_data"].values()}
    assert len(own["execute_op_info"]) == len(capture.stages[0].graph.groups["kernel"])
    del y


def test_a_recording_in_a_recording(x):
    net = MLP()
    jt.sync_all()
    with opscope.record(net) as outer:
        jt.exp(net(x)).sync()
        with opscope.record(net) as inner:
            y = net(x)
    assert paths(inner) == {"net/fc1", "net/relu", "net/fc2"}
    assert paths(outer) == {"", "net/fc1", "net/relu", "net/fc2", "net#2/fc1", "net#2/relu", "net#2/fc2"}
    assert outer.graph.n_nodes > 2 * inner.graph.n_nodes
    del y


def test_a_profile_function_of_the_users_own_is_still_called(x):
    net = MLP()
    seen = set()

    def mine(frame, event, arg):
        if event == "call":
            seen.add(frame.f_code.co_name)

    sys.setprofile(mine)
    try:
        with opscope.record(net) as capture:
            y = net(x)  # noqa: F841
        assert sys.getprofile() is mine
    finally:
        sys.setprofile(None)
    assert "execute" in seen
    assert "net/fc1" in paths(capture)


def test_a_profiler_that_is_started_inside_takes_the_modules(x):
    net = MLP()
    with opscope.record(net) as capture:
        y = net(x)
        sys.setprofile(None)
        y = net(y.broadcast((5, 4)))
    assert [text for text in capture.all_warnings() if "watching of calls was interrupted" in text]
    assert paths(capture) == {""}
    assert line(capture, capture.graph.node(0).frames[0]).startswith("y = net(")


def test_an_error_while_watching_stays_out_of_the_users_code(x, monkeypatch):
    def fail(self, frame, code):
        raise RuntimeError("a defect of opscope")

    net = MLP()
    monkeypatch.setattr("opscope.tracers.jittor.watch.Watcher._enter", fail)
    with opscope.record(net) as capture:
        y = net(x)
    assert y.shape == [5, 1]
    assert [text for text in capture.all_warnings() if "watching of calls was interrupted" in text]


def test_a_module_that_cannot_be_walked_through(x):
    class Odd(MLP):
        def dfs(self, *args):
            raise RuntimeError("not through me")

    net = Odd()
    with opscope.record(net) as capture:
        y = net(x)
    assert y.shape == [5, 1]
    assert paths(capture) == {"net/fc1", "net/relu", "net/fc2"}  # found as attributes of self


def test_gradients_of_gradients(x):
    class Cube(nn.Module):
        def execute(self, value):
            return (value * value * value).sum()

    net = Cube()
    with opscope.record(net) as capture:
        first = jt.grad(net(x), x)
        second = jt.grad((first * first).sum(), x)
    backward = [node for node in capture.graph.nodes if node.phase == "backward"]
    assert {node.path for node in backward} == {"net", "", "backward 2", "backward 2/net"}
    assert any("net(x)" in line(capture, node.frames[0]) for node in backward)
    del second


def test_nothing_recorded_is_an_error():
    def block():
        with opscope.record(framework="jittor"):
            pass

    with pytest.raises(opscope.OpscopeError, match="ran no operator"):
        block()


def test_a_recording_is_used_once(x):
    recording = opscope.record(framework="jittor")
    with recording:
        x.exp().sync()
    with pytest.raises(RuntimeError, match="once"), recording:
        pass
