"""The private parts of PyTorch that opscope uses, each looked for once.

Everything that may move or vanish in another release is here and nowhere else. A function that finds its
part missing returns None (or the harmless answer); who calls it says in a warning what is lost.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Generator
from types import CodeType, FrameType, FunctionType
from typing import Any, cast

from opscope.tracers.arguments import attributes_of, is_a
from opscope.tracers.frames import frame_at, locals_of
from opscope.tracers.imports import AfterImport

# -- the recorder -------------------------------------------------------------------------------


def sequence_number(torch: Any) -> Callable[[], int] | None:
    """The number that autograd gives to the next operator it will differentiate (on this thread)."""
    return getattr(getattr(torch._C, "_autograd", None), "_get_sequence_nr", None)


def current_node(torch: Any) -> Callable[[], Any]:
    """The gradient function that is running on this thread, or None."""
    return getattr(torch._C, "_current_autograd_node", None) or (lambda: None)


def dispatch_mode() -> Any:
    """The base class of objects that see every operator."""
    return importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode


@contextlib.contextmanager
def without_compiler() -> Generator[None, None, None]:
    """Functions that torch.compile has compiled, or would compile, run as they are written.

    Under a dispatch mode Dynamo compiles nothing, remembers that, and fails where a whole graph was asked for. Its
    stance "force_eager" takes another way: what it has compiled is neither run nor forgotten. Dynamo takes a second to
    import, so its stance is set when somebody else imports it.
    """
    module = "torch._dynamo.eval_frame"
    stances: list[tuple[Any, Any]] = []  # ours, the one before

    def set_stance() -> None:
        found = sys.modules[module]
        with contextlib.suppress(AttributeError, TypeError, RuntimeError):  # inside of compiled code it must stay
            ours = found.DynamoStance("force_eager")
            stances.append((ours, found._set_stance(ours)))

    finder = AfterImport([module], lambda name: set_stance())
    if module in sys.modules:
        set_stance()
    else:
        sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        for ours, before in stances:
            found = sys.modules[module]
            if found._stance is ours:  # else the user has set another one
                with contextlib.suppress(RuntimeError):
                    found._set_stance(before)


@contextlib.contextmanager
def with_control_flow(switch: Callable[[bool], None]) -> Generator[None, None, None]:
    """`torch.cond`, `while_loop` and `scan` compile what they are given (with the backend "eager"), for they need to
    know which tensors its functions hold: they fail where the compiler is bypassed. `switch` is called before and
    after."""
    utils: Any = find("torch._higher_order_ops", "utils") or importlib.import_module("torch._higher_order_ops.utils")
    plain: Any = getattr(utils, "_hop_compile_and_call", None)

    def compile_and_call(*args: Any, **kwargs: Any) -> Any:
        eval_frame: Any = importlib.import_module("torch._dynamo.eval_frame")
        module = importlib.import_module("torch").nn.Module
        before = eval_frame._stance, module.__getattr__
        switch(True)
        module.__getattr__ = getattr(module.__getattr__, "__wrapped__", module.__getattr__)  # what is watched is traced
        eval_frame._set_stance(eval_frame.DynamoStance())
        try:
            return plain(*args, **kwargs)
        finally:
            eval_frame._set_stance(before[0])
            module.__getattr__ = before[1]
            switch(False)

    if plain is not None:
        utils._hop_compile_and_call = compile_and_call
    try:
        yield
    finally:
        if plain is not None and utils._hop_compile_and_call is compile_and_call:
            utils._hop_compile_and_call = plain


def uncompiled(target: Any) -> Any:
    """What torch.compile was given, where a target is its result: nothing else can be compiled or traced."""
    if type(target).__name__ == "OptimizedModule":
        return attributes_of(target).get("_modules", {}).get("_orig_mod", target)
    if is_a(target, FunctionType):
        return attributes_of(target).get("_torchdynamo_orig_callable", target)
    return target


def is_compiled_call(inside: str, code: CodeType) -> bool:
    """Whether this code, in a file inside torch, calls a function that torch.compile has compiled."""
    return inside == "_dynamo/eval_frame.py" and code.co_name == "compile_wrapper"


@contextlib.contextmanager
def no_word_about_hooks() -> Generator[None, None, None]:
    """torch warns of global hooks where a compiled module is called. The hooks are ours."""
    warnings.filterwarnings("ignore", message="Using `torch.compile\\(module\\)` when there are global hooks")
    ours = warnings.filters[0]
    try:
        yield
    finally:
        filters = cast("list[Any]", warnings.filters)
        if ours in filters:
            filters.remove(ours)


_RANK: list[Any] = []  # torch's own function, once for each that has asked for ours


@contextlib.contextmanager
def rank_that_writes(torch: Any) -> Generator[None, None, None]:
    """`torch.linalg.matrix_rank(…, out=out)` leaves `out` as it was under any dispatch mode, which is a defect of
    PyTorch: compute the rank and write it, in two steps."""
    linalg = torch.linalg
    plain = _RANK[0] if _RANK else linalg.matrix_rank

    @functools.wraps(plain)
    def matrix_rank(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is None:
            return plain(*args, **kwargs)
        found = plain(*args, **kwargs)
        return out.resize_(found.shape).copy_(found)

    if not _RANK:
        linalg.matrix_rank = matrix_rank
    _RANK.append(plain)
    try:
        yield
    finally:
        if len(_RANK) == 1 and getattr(linalg.matrix_rank, "__wrapped__", None) is plain:
            linalg.matrix_rank = plain
        _RANK.pop()


@contextlib.contextmanager
def attributes_taken(torch: Any) -> Generator[set[int], None, None]:
    """The parameters, buffers and modules (`id()`) that any code takes from a module."""
    module = torch.nn.Module
    plain, found = module.__getattr__, set[int]()

    @functools.wraps(plain)
    def get(self: Any, name: str) -> Any:
        value = plain(self, name)
        found.add(id(value))
        return value

    module.__getattr__ = get
    try:
        yield found
    finally:
        if module.__getattr__ is get:
            module.__getattr__ = plain


def push_mode(mode: Any) -> None:
    """Put a mode on this thread's stack. Entering it says so to the whole process, and leaving it would say so for
    ever if another thread left first."""
    push = find("torch.utils._python_dispatch", "_push_mode")
    mode.__enter__() if push is None else push(mode)


def pop_mode(mode: Any) -> None:
    """Take it off again, also from below others that were left open."""
    above = _taken_off_above(mode)
    pop, push = (find("torch.utils._python_dispatch", name) for name in ("_pop_mode", "_push_mode"))
    with contextlib.suppress(Exception):
        if above is not None:
            mode.__exit__(None, None, None) if pop is None else pop()
    for other in above or ():
        push(other)


def leave_mode(mode: Any) -> None:
    """`mode.__exit__`, which takes off whatever lies on top: modes that were entered later may still be open, or this
    is another thread than the one that it was entered in."""
    base, push = dispatch_mode(), find("torch.utils._python_dispatch", "_push_mode")
    above = _taken_off_above(mode, base.__exit__)
    with contextlib.suppress(Exception):
        if above is None and not getattr(mode, "old_dispatch_mode_flags", ()):
            return  # it was never entered
        if above is None:
            push(mode)  # so that there is something to take off; what torch notes for the process is put right
        mode.__exit__(None, None, None)
    for other in above or ():
        base.__enter__(other)


def _taken_off_above(mode: Any, leave: Callable[..., Any] | None = None) -> list[Any] | None:
    """The modes above one, which is on top now, lowest first; None: it is not on the stack of this thread."""
    stack_here = find("torch.utils._python_dispatch", "_get_current_dispatch_mode_stack")
    pop = find("torch.utils._python_dispatch", "_pop_mode")
    if stack_here is None or pop is None:
        return []
    stack = cast("list[Any]", stack_here())
    place = next((place for place, held in enumerate(stack) if held is mode), None)
    if place is None:
        return None
    for other in reversed(stack[place + 1 :]):
        pop() if leave is None else leave(other, None, None, None)
    return stack[place + 1 :]


def modes_here(torch: Any) -> Callable[[], int]:
    """How many dispatch modes this thread has that torch asks."""
    count = getattr(torch._C, "_len_torch_dispatch_stack", None)
    is_excluded = getattr(torch._C, "_dispatch_tls_is_dispatch_key_excluded", None)
    key = getattr(getattr(torch._C, "DispatchKey", None), "Python", None)
    if count is None:
        return lambda: 1
    return count if is_excluded is None or key is None else lambda: 0 if is_excluded(key) else count()


def engine_codes(torch: Any) -> frozenset[CodeType]:
    """The Python code that starts autograd's engine: below it, frames are those of `backward()` itself."""
    graph = getattr(torch.autograd, "graph", None)
    run = getattr(graph, "_engine_run_backward", None)
    return frozenset({run.__code__}) if run is not None else frozenset()


def is_torch(torch: Any, code: CodeType) -> bool:
    """Whether this is torch's own code."""
    return code.co_filename.startswith(_folder_of(torch.__file__))


@functools.lru_cache(maxsize=4)
def _folder_of(file: str) -> str:
    return os.path.dirname(file)


def profiler_mark() -> Callable[[str], Any]:
    """A context manager that gives a part of a run a name in the profiler's trace."""
    torch = the_torch()
    return getattr(torch._C._profiler, "_RecordFunctionFast", None) or torch.profiler.record_function


def compiler_at_work() -> tuple[Callable[[], Any], Callable[[CodeType], None]] | None:
    """What says whether Dynamo looks at the frames that begin now (then not None), and what makes it pass over a code.
    None: this torch has neither."""
    frames: Any = getattr(getattr(the_torch()._C, "_dynamo", None), "eval_frame", None)
    callback: Any = getattr(frames, "get_eval_frame_callback", None)
    if hasattr(frames, "skip_code"):  # until torch 2.6
        return callback and (callback, frames.skip_code)
    try:
        skipped = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)
        set_strategy = frames.set_code_exec_strategy
    except (AttributeError, TypeError):
        return None
    return callback and (callback, lambda code: set_strategy(code, skipped))


def is_dispatch_wrapper(code: CodeType) -> bool:
    """Whether this is the code with which torch keeps its compiler away from dispatch modes."""
    file = code.co_filename.replace("\\", "/")
    return file.endswith(("torch/_compile.py", "torch/_dynamo/eval_frame.py"))


def watch_modules(torch: Any, enter: Callable[..., None], leave: Callable[..., None]) -> list[Any]:
    """Call back around the call of every module, also when it raises."""
    module = torch.nn.modules.module
    handles = [module.register_module_forward_pre_hook(enter)]
    try:
        handles.append(module.register_module_forward_hook(leave, always_call=True))
    except TypeError:  # before torch 2.1: not after an exception, which the recorder notices later
        handles.append(module.register_module_forward_hook(leave))
    return handles


def watch_optimizers(before: Callable[..., None], after: Callable[..., None]) -> list[Any]:
    """Call back around the step of every optimizer; nothing before torch 2.1."""
    handles: list[Any] = []
    with contextlib.suppress(AttributeError):
        optimizer = importlib.import_module("torch.optim.optimizer")
        handles.append(optimizer.register_optimizer_step_pre_hook(before))
        handles.append(optimizer.register_optimizer_step_post_hook(after))
    return handles


def nested_sizes(tensor: Any) -> tuple[tuple[int, ...], ...] | None:
    """The sizes of each part of a strided nested tensor; None where this release does not say."""
    try:
        return tuple(tuple(row) for row in tensor._nested_tensor_size().tolist())
    except Exception:  # jagged ones have no such table, fake ones no numbers
        return None


def stored_entries(tensor: Any) -> int | None:
    """How many numbers a sparse tensor stores, those of its dense dimensions and blocks included; None where it does
    not say (a fake one)."""
    try:
        with the_torch().no_grad():
            stored = tensor._values() if tensor.is_sparse else tensor.values()
        count = stored.numel()
    except Exception:
        return None
    return count if type(count) is int else None


def fake_maker(torch: Any, mode: Any) -> Callable[[Any, Any], Any]:
    """Makes fake tensors of one mode, each from a meta tensor and a device.

    FakeTensor's own constructor spends most of its time on arguments that are never given. Here the tensor is made as
    it makes it, and gets the attributes of one that it made, if that gives the same in this release; else it is
    called.
    """
    cls: Any = find("torch._subclasses.fake_tensor", "FakeTensor")

    def by_constructor(plain: Any, device: Any) -> Any:
        return cls(mode, plain, device)

    unsafe = getattr(mode, "_allow_unsafe_data_ptr_access", False)
    guard: Any = find("torch._C", f"_set_{'warn_deprecated' if unsafe else 'throw'}_on_mutable_data_ptr")
    make = torch.Tensor._make_subclass
    attributes: dict[Any, dict[str, Any]] = {}

    def directly(plain: Any, device: Any) -> Any:
        known = attributes.get(device)
        if known is None:
            known = attributes[device] = dict(by_constructor(plain, device).__dict__)
        made = make(cls, plain, False, dispatch_device=True, device_for_backend_keys=device)
        guard(made)
        made.__dict__.update(known)
        return made

    try:
        plain, device = torch.empty(2, 3, device="meta"), torch.device("cpu")
        one, other = directly(plain, device), by_constructor(plain, device)
        is_same = one.__dict__ == other.__dict__ and str(one) == str(other) and one.device == other.device
    except (AttributeError, TypeError, RuntimeError):
        return by_constructor
    return directly if is_same else by_constructor


# -- looking -------------------------------------------------------------------------------------


def the_torch() -> Any:
    """torch, without types: it is not there when opscope is checked."""
    return importlib.import_module("torch")


def find(module: str, name: str) -> Any:
    """Something in one of torch's modules, or None where this release does not have it."""
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


# -- ranks that communicate ----------------------------------------------------------------------


def process_group(torch: Any, given: Any) -> Any:
    """The group that an operator is given: an object, one that C++ wraps, or its name; None if torch knows it not."""
    resolve = find("torch.distributed.distributed_c10d", "_resolve_process_group")
    try:
        if isinstance(given, str):
            return resolve(given)
        if isinstance(given, torch.ScriptObject):
            return torch.distributed.ProcessGroup.unbox(given)
        return given if isinstance(given, torch.distributed.ProcessGroup) else None
    except (RuntimeError, TypeError, AttributeError):
        return None


def process_groups(torch: Any) -> list[Any]:
    """All groups that this process is in now."""
    world = find("torch.distributed.distributed_c10d", "_world")
    try:
        if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
            return []
        return [group for group in list(world.pg_group_ranks) if isinstance(group, torch.distributed.ProcessGroup)]
    except AttributeError:
        return []


def rank_and_world(torch: Any) -> tuple[int, int] | None:
    """Which rank of how many this process is."""
    try:
        return int(torch.distributed.get_rank()), int(torch.distributed.get_world_size())
    except (RuntimeError, ValueError, AttributeError):
        return None


def reduction(given: Any) -> str | None:
    """How an operator combines what ranks have: `sum`. C++ does not say it to Python: then the call that led here does,
    if it is Python's own."""
    if isinstance(given, str):
        return given.lower()
    frame: FrameType | None = frame_at(1)
    for _ in range(_FRAMES_TO_CALL):
        if frame is None:
            break
        if frame.f_code.co_filename.endswith("distributed_c10d.py") and "opts" in frame.f_locals:
            found: Any = getattr(frame.f_locals["opts"], "reduceOp", None)
            return str(getattr(found, "op", found)).rpartition(".")[2].lower()
        frame = frame.f_back
    return None


_FRAMES_TO_CALL = 12


# -- fx ------------------------------------------------------------------------------------------


def qualified_name(function: Any) -> str | None:
    """`torch.relu` for the builtin that does not say where it is from."""
    name = find("torch.fx.node", "_get_qualified_name")
    try:
        return str(name(function)) if name is not None else None
    except (AttributeError, RuntimeError):
        return None


# -- TorchScript ---------------------------------------------------------------------------------


def script_functions() -> Callable[[str], Any]:
    """Finds a scripted function by its qualified name, or None."""
    look = getattr(find("torch.jit._state", "_python_cu"), "find_function", None)

    def found(name: str) -> Any:
        try:
            return look(name) if look is not None else None
        except RuntimeError:
            return None

    return found


def script_method(module: Any, name: str) -> Any:
    """The graph of a method of a ScriptModule, or None."""
    inner = getattr(module, "_c", None)
    try:
        return inner._get_method(name).graph if inner is not None else None
    except (AttributeError, RuntimeError):
        return None


def module_hierarchy(node: Any) -> list[tuple[str, str]]:
    """Names and classes of the modules around a node of torch's inlined graph, outermost first."""
    text = str(node.getModuleHierarchy()) if hasattr(node, "getModuleHierarchy") else ""
    found = [(name, cls) for name, cls in re.findall(r"(\w+)\((\w+)\)", text) if name not in _NO_MODULE]
    if found:
        return found
    last = str(node.scopeName()).rpartition("/")[2]
    return [(name, "") for name in last.split(".") if name and name != "__module"]


_NO_MODULE = ("SELF", "UNKNOWN_INSTANCE", "TOP")


def parsed_schema(text: str) -> Any:
    parse = find("torch._C", "parse_schema")
    return parse(text) if parse is not None else None


def dimension_names(program: Any) -> dict[str, str]:
    """What the user calls the symbols of a program that was exported here: `s77` -> the name of its `Dim`. Each name
    that stands for one symbol only; none where this release keeps them elsewhere."""
    found: dict[str, str] = {}
    try:
        values = (node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder")
        environment = next(mode.shape_env for v in values if (mode := getattr(v, "fake_mode", None)) is not None)
        called = environment.source_name_to_debug_name
        for symbol, sources in environment.var_to_sources.items():
            names = {called[source.name] for source in sources if source.name in called}
            names |= {called[name()] for source in sources if callable(name := source.name) and name() in called}
            if len(names) == 1 and (name := names.pop()).isidentifier():
                found[str(symbol)] = name
    except (AttributeError, StopIteration, TypeError):
        return {}
    used = set(map(str, program.range_constraints))  # the others are equal to one of these
    taken = [*(name for symbol, name in found.items() if symbol in used), *used]
    return {symbol: name for symbol, name in found.items() if symbol in used and taken.count(name) == 1}


# -- Dynamo --------------------------------------------------------------------------------------


def dynamo_counters() -> Any:
    """Dynamo's counters by kind, or an empty table."""
    counters = find("torch._dynamo.utils", "counters")
    return {} if counters is None else counters


def source_name(placeholder: Any) -> str:
    """Where Dynamo found an input of a graph: `L['self']._parameters['weight']`."""
    source = getattr(placeholder, "_dynamo_source", None)
    name = getattr(source, "name", "")
    return str(name() if callable(name) else name)


@contextlib.contextmanager
def watch_graph_breaks(broke: Callable[[str, list[Any]], None]) -> Generator[None, None, None]:
    """Call back with reason and stack at every graph break. Nothing is called where Dynamo has moved its log."""
    from opscope.ir.pools import Frame

    owner = find("torch._dynamo.symbolic_convert", "InstructionTranslatorBase")
    original = getattr(owner, "log_graph_break", None)
    if original is None:
        yield
        return

    def watched(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(Exception):
            given = [*args, *kwargs.values()]
            error = next((item for item in given if isinstance(item, BaseException)), None)
            reason = kwargs.get("reason") or next((item for item in given if isinstance(item, str)), "")
            stack = getattr(error, "real_stack", None) or kwargs.get("user_stack") or _tracing_stack()
            if not getattr(error, "logged", False):
                broke(str(error) or reason, [Frame(entry.filename, entry.lineno or 0, entry.name) for entry in stack])
        return original(*args, **kwargs)

    owner.log_graph_break = watched
    try:
        yield
    finally:
        owner.log_graph_break = original


def _tracing_stack() -> Any:
    context = find("torch._guards", "TracingContext")
    return context.extract_stack() if context is not None else ()


def compilations() -> list[Any]:
    """What Dynamo has compiled so far, by its own account; resetting does not clear it."""
    metrics = find("torch._dynamo.utils", "get_compilation_metrics")
    return list(metrics()) if metrics is not None else []


def recompile_reasons(before: list[Any]) -> list[str]:
    """Why functions were compiled more than once since `before`."""
    known = {id(entry) for entry in before}
    found: list[str] = []
    for entry in compilations():
        if id(entry) not in known and getattr(entry, "recompile_reason", None):
            where = f"{entry.co_filename}:{entry.co_firstlineno}: {entry.co_name}"
            found.append(f"{where} was compiled again: {entry.recompile_reason}")
    return found


def compile_reason(module: Any) -> Any:
    """Why Dynamo ended a graph: reason, user_stack, graph_break."""
    return getattr(module, "compile_subgraph_reason", None)


# -- AOTAutograd ---------------------------------------------------------------------------------


def joint_backend(partitioned: Callable[..., tuple[Any, Any]], inference: Callable[[Any], None]) -> Any:
    """A backend for torch.compile that shows the joint graph to `partitioned` (with torch's own partitioner) and
    graphs without gradients to `inference`. None where AOTAutograd has moved."""
    aot_autograd = find("torch._dynamo.backends.common", "aot_autograd")
    boxed = find("functorch.compile", "make_boxed_func")
    partitioner = find("functorch.compile", "default_partition")
    if aot_autograd is None or boxed is None or partitioner is None:
        return None

    def partition(joint: Any, inputs: Any, **options: Any) -> Any:
        def split() -> Any:
            return partitioner(joint, inputs, **options)

        return partitioned(joint, split)

    def run(module: Any, inputs: Any) -> Any:
        return boxed(module.forward)

    def run_inference(module: Any, inputs: Any) -> Any:
        inference(module)
        return boxed(module.forward)

    return aot_autograd(fw_compiler=run, bw_compiler=run, inference_compiler=run_inference, partition_fn=partition)


# -- autograd ------------------------------------------------------------------------------------


def set_version(tensor: Any, version: int) -> None:
    """How often a tensor was written in place, by autograd's count: a backward pass refuses tensors that were written
    since. Nothing where this release does not let it be set."""
    set_counter = getattr(find("torch._C", "_autograd"), "_unsafe_set_version_counter", None)
    if set_counter is not None:
        with contextlib.suppress(RuntimeError, TypeError):
            set_counter((tensor,), (version,))


def is_packed(function: Any, name: str) -> bool:
    """Whether hooks keep a saved tensor (`_saved_self`) in another form: to look at it would call them."""
    try:
        raw: Any = getattr(function, f"_raw_{name.removeprefix('_')}", None)
    except RuntimeError:  # already freed
        return False
    entries = cast("list[Any]", raw) if isinstance(raw, list | tuple) else [raw]
    return any(getattr(entry, "unpack_hook", None) is not None for entry in entries)


def gradient_edge(tensor: Any) -> tuple[Any, int]:
    """The function that a tensor's gradient goes to, and its slot there; leaves have one that accumulates."""
    edge = find("torch.autograd.graph", "get_gradient_edge")
    if edge is not None:
        found = edge(tensor)
        return found.node, found.output_nr
    function = tensor.grad_fn
    if function is None:  # before torch 2.2: by way of a view of the leaf
        function = tensor.expand_as(tensor).grad_fn.next_functions[0][0]
    return function, tensor.output_nr


def is_gradient_sum(node: Any) -> bool:
    """Whether an fx node of a joint graph adds up gradients that meet."""
    return bool(node.meta.get("is_gradient_acc"))


# -- the compiler --------------------------------------------------------------------------------


def is_frame_compiler(code: CodeType) -> bool:
    """Whether this is the function of Dynamo that compiles a frame of the user's."""
    return code.co_name == "_compile" and code.co_filename.replace("\\", "/").endswith("torch/_dynamo/convert_frame.py")


def users_function(code: CodeType) -> str:
    """What the user calls a function of which Dynamo compiles the rest, after a break."""
    resumed = re.fullmatch(r"torch_dynamo_resume_in_(.+?)(?:_at_\d+)*", code.co_name)
    return (resumed[1] if resumed else code.co_name).strip("<>")


def lowered_operator() -> str | None:
    """The operator of the graph that Inductor is lowering."""
    virtualized = find("torch._inductor.virtualized", "V")
    try:
        return str(virtualized.graph.current_node.name)
    except AttributeError:
        return None


@contextlib.contextmanager
def own_backends(make: Callable[[type[Any]], type[Any]]) -> Generator[None, None, None]:
    """What torch.compile is given as a backend is of a class made by `make` meanwhile."""
    torch = the_torch()
    before: list[tuple[str, Any]] = []
    for name in ("_TorchCompileInductorWrapper", "_TorchCompileWrapper"):
        held = getattr(torch, name, None)
        if held is not None:
            before.append((name, held))
            setattr(torch, name, make(held))
    try:
        yield
    finally:
        for name, held in before:
            setattr(torch, name, held)


def options_of(compiled: Any) -> dict[str, Any]:
    """How torch.compile was asked to compile something: backend, options, dynamic, fullgraph."""
    found: dict[str, Any] = {}
    context: Any = attributes_of(compiled).get("dynamo_ctx")
    innermost = find("torch._dynamo.eval_frame", "innermost_backend")
    try:
        backend = innermost(context.callback)
    except (AttributeError, TypeError, AssertionError):
        return found
    if getattr(backend, "compiler_name", "") == "inductor":
        found["options"] = dict(getattr(backend, "config", {})) or None
    else:
        found["backend"] = getattr(backend, "compiler_fn", backend)
    found["dynamic"] = getattr(backend, "dynamic", None)
    found["fullgraph"] = bool(getattr(context, "fullgraph", False) or getattr(context, "nopython", False))
    return found


def leaves_behind(outputs: list[Any]) -> list[Any]:
    """The tensors whose gradients a backward pass from these would add to."""
    found: dict[int, Any] = {}
    seen: set[Any] = set()
    todo = [tensor.grad_fn for tensor in outputs]
    while todo:
        function = todo.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        variable = getattr(function, "variable", None)
        if variable is not None:
            found.setdefault(id(variable), variable)
        todo += [following for following, _ in function.next_functions]
    return list(found.values())


def compiled_call(frame: FrameType) -> tuple[str, str, str]:
    """Of torch's function around a compiled one: what was compiled, by which backend, and where that is written."""
    held = locals_of(frame)
    function, callback = held.get("fn"), held.get("callback")
    owner = getattr(function, "__self__", function)
    name = getattr(function, "__qualname__", "") if not is_a(owner, the_torch().nn.Module) else type(owner).__name__
    innermost = find("torch._dynamo.eval_frame", "innermost_backend")
    backend = innermost(callback) if innermost is not None and callable(callback) else None
    said = getattr(backend, "compiler_name", "") or getattr(backend, "__name__", "") or type(backend).__name__
    forward = getattr(owner, "forward", function)
    code = getattr(forward, "__code__", None)
    where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    return str(name) or "a function", str(said) if backend is not None else "", where


def is_compiling() -> bool:
    """Whether the compiler, or another tracer of torch, is reading this code instead of running it."""
    torch = the_torch()
    return bool(torch.compiler.is_compiling() or torch.jit.is_tracing())


def module_around(frame: FrameType) -> Any:
    """The innermost module that is being called around a frame, or None."""
    walk: FrameType | None = frame
    while walk is not None:
        code = walk.f_code
        if code.co_name == "_call_impl" and code.co_filename.replace("\\", "/").endswith("torch/nn/modules/module.py"):
            return uncompiled(locals_of(walk).get("self"))
        walk = walk.f_back
    return None
