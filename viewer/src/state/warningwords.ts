// What captures warn of, in Chinese: they are written in English (Python), `{}` is what differs. tests/test_words.py counts those
// that are missing here.

const SAID: [english: string, chinese: string][] = [
  [
    '{} of {} tensors lie beyond the end of the file, which was cut off: copy it again',
    '文件被截断：{1} 个张量中有 {0} 个超出文件末尾，请重新复制',
  ],
  ['{} of {} files are not there: {}', '{1} 个文件中缺少 {0} 个：{2}'],
  ['{} tensors of the index are in none of the files: nothing but their names is known', '索引中的 {} 个张量不在任何文件中，只知道名称'],
  ['{} of {} tensors have no statistics', '{1} 个张量中有 {0} 个没有统计值'],
  ['{} of {} weights have no statistics{}', '{1} 个权重中有 {0} 个没有统计值{2}'],
  ['{} inputs name values that nothing makes, shown as null: {}', '{} 个输入指向没有来源的值，显示为 null：{}'],
  ['{} values have the name of an earlier one: the later one counts', '{} 个值与之前的值同名，以后者为准'],
  [
    '{} operators have no module in their name: they are shown in that of their weights, or of the operators around them',
    '{} 个算子的名称中没有模块，按其权重或周围的算子归入模块',
  ],
  [
    '{} of {} operators of the profile are not in this model ({}): ONNX Runtime runs an optimized model, which SessionOptions.optimized_model_filepath saves',
    '性能分析的 {1} 个算子中有 {0} 个不在此模型中（{2}）：ONNX Runtime 执行的是优化后的模型，可用 SessionOptions.optimized_model_filepath 保存',
  ],
  [
    '{} values have no shape in the file, and none that follows from others: costs of what reads them are unknown. TensorFlow keeps shapes in SavedModels of functions with an input_signature',
    '文件中有 {} 个值没有形状，也无法推出，读取它们的算子开销未知。带 input_signature 的函数保存为 SavedModel 时会保留形状',
  ],
  [
    'weights without a graph: these are the tensors of the file, by module. For a graph, capture the model in its framework with opscope.trace(model, *inputs); to see these weights on it: --onto CAPTURE',
    '只有权重，没有计算图：这里按模块列出文件中的张量。要得到计算图，请在框架中用 opscope.trace(model, *inputs) 捕获模型；要把这些权重显示在图上：--onto CAPTURE',
  ],
  [
    'the file leaves out the shapes of {} values: costs of what reads them are unknown. Install onnx (pip install onnx), and they are inferred; or save the model with onnx.shape_inference',
    '文件没有给出 {} 个值的形状，读取它们的算子开销未知。安装 onnx（pip install onnx）后会自动推断，或用 onnx.shape_inference 保存模型',
  ],
  ['graph break: {}', '图中断：{}'],
  ['another graph in the text could not be read: {}', '文本中的另一个图无法读取：{}'],
  ['{} uses of tensors that nothing makes ({}): they are left open', '{} 处使用的张量没有来源（{}），保持悬空'],
  ['the seconds of the passes were taken from {}', '各 pass 的用时取自 {}'],
  ['files of the passes {} are not in the folder', '文件夹中缺少这些 pass 的文件：{}'],
  ['kernel times were taken from {}', '内核时间取自 {}'],
  ['{} of {} weights have no statistics', '{1} 个权重中有 {0} 个没有统计信息'],
  ['statistics of weights are not read from files of torch 2.6 and before', 'torch 2.6 及更早版本的文件不读取权重统计信息'],
  ['no statistics of weights: {} files hold none that can be read', '没有权重统计信息：{} 文件中没有可读取的权重'],
  ['{} never ran: their place in the order is not known', '{}从未运行，执行次序未知'],
  [
    '{} read {} times were made before the recording began: their names, shapes and types are not in the trace',
    '{}（共读取 {} 次）在记录开始之前就已创建，其名称、形状和类型不在记录中',
  ],
  [
    'several parameters are called {}: Jittor lost their full names, so each is shown on its own',
    '有多个参数名为 {}：Jittor 丢失了完整名称，因此分别显示',
  ],
  [
    '{} computed gradients of operator {}, which is not in the trace (it was never executed): no grad link for them',
    '{}计算了算子 {} 的梯度，但该算子不在记录中（从未执行），因此没有梯度连接',
  ],
  ['the jit_key does not fit {}: their details are not known', 'jit_key 与{}不符，细节未知'],
  ['{} of kernels that ran are not in the trace', '已运行内核中的{}不在记录中'],
  [
    'the trace is empty: Jittor records graphs only with trace_py_var=2 or 3, and only what was executed before dump_trace_data()',
    '记录为空：Jittor 只在 trace_py_var=2 或 3 时记录图，且只包含 dump_trace_data() 之前已执行的内容',
  ],
  [
    'recorded with trace_py_var=3: stacks are full Python stacks and module names are not in the trace (record with trace_py_var=2 for modules)',
    '以 trace_py_var=3 记录：含完整 Python 调用栈，但没有模块名（需要模块请用 trace_py_var=2）',
  ],
  [
    'the names of some modules are lost: Jittor took a function with a module as its first variable for the module itself (give that function a first argument that is not a module)',
    '部分模块名已丢失：Jittor 把第一个变量是模块的函数当成了模块本身（请让该函数的第一个参数不是模块）',
  ],
  ['{} have several producers: the first was taken', '{}有多个来源，取第一个'],
  ['{} of {} could not be understood and were left out', '{1} 中有{0}无法识别，已略去'],
  [
    'Jittor stops recording after {} kernels: what ran later is not in this trace',
    'Jittor 在 {} 个内核之后停止记录，此后运行的内容不在其中',
  ],
  ['{} uses name a variable that no operator makes before: shown as null', '{} 处使用的变量此前没有算子产生，显示为空'],
  ['operators of a type that is not known, named by their id: {}', '类型未知的算子以编号命名：{}'],
  [
    'names are partial: {} of {} operators have lost that of their module, because the model was dumped without them; {} of these are shown in the module around them. To keep all names: {}',
    '名称不完整：{1} 个算子中有 {0} 个因导出时未保留而丢失模块名，其中 {2} 个显示在外层模块中。要保留全部名称：{3}',
  ],
  [
    "the file does not say how many results its operators have: one is taken for {}. Dump it with keep_var_name=2, or without dump_format='FBS'",
    "文件没有说明算子有几个结果：{} 按一个处理。请用 keep_var_name=2 导出，或不要使用 dump_format='FBS'",
  ],
  ['graph {}: {} edges come from nodes or outputs that do not exist', '图 {}：{} 条边的来源节点或输出不存在'],
  ['graph {}: it has a cycle; its nodes are in file order', '图 {} 含有环，节点按文件顺序排列'],
  [
    'a ref_forward graph: forward operators as the backward pass knows them, so operators without a gradient are not in it',
    'ref_forward 图：其中的前向算子是反向过程所知的那些，不含没有梯度的算子',
  ],
  ['{} is missing: the forward operators are unknown', '缺少 {}，前向算子未知'],
  ['{} has no stacks: set {} before the forward pass to have source lines', '{} 没有调用栈：在前向之前设置 {} 即可得到源码行'],
  ['the program has {} blocks at its top; only the first is shown', '程序顶层有 {} 个块，只显示第一个'],
  ['written as PIR version {}, newer than the {} that opscope knows', '文件为 PIR 版本 {}，比 opscope 支持的 {} 更新'],
  ['not understood and shown as they are: {}', '无法识别，按原样显示：{}'],
  [
    '{} tensors take no gradient, and the file does not say whether they are weights that were frozen or buffers: they count as parameters',
    '{} 个张量不求梯度，文件未说明是冻结的权重还是缓冲区，按参数计',
  ],
  ['{} calls are nested more than {} deep and are left out', '{} 个调用嵌套超过 {} 层，已略去'],
  [
    '{} backward operators belong to forward operators that are not in the trace: no grad link',
    '{} 个反向算子对应的前向算子不在记录中，没有梯度连接',
  ],
  ['{}: {} lines are damaged and were left out', '{}：{} 行已损坏，已略去'],
  ['{}: its node mappings are damaged and were left out', '{}：节点映射已损坏，已略去'],
  ['compilation {}: its {} graph cannot be read', '编译 {}：其 {} 图无法读取'],
  [
    '{} kernels and copies were started outside of what was profiled: each is an operator',
    '{} 个内核和拷贝在剖析范围之外启动，各作为一个算子',
  ],
  [
    'the trace holds several processes whose ids collide: work that more than one of them may have started is not placed. Open the trace of each rank by itself',
    '记录中多个进程的编号冲突，无法确定由谁启动的工作未归位。请分别打开各 rank 的记录',
  ],
  ['{} arguments name values that nothing makes: {}', '{} 个参数引用了没有来源的值：{}'],
  [
    'forward and backward in one graph: an exported program does not say which is which, so what runs after the last operator that the results need counts as backward; nor which gradient belongs to which operator, so there are no grad links',
    '前向与反向在同一个图中：导出的程序没有区分，因此结果所需的最后一个算子之后视为反向；也没有说明梯度对应哪个算子，因此没有梯度连接',
  ],
  ['source lines of {} are not known: {}', '{} 的源码行未知：{}'],
  [
    '{}: the file found for it has {} lines, but the capture names line {}: it is another version and was left out',
    '{}：找到的文件有 {} 行，但捕获引用第 {} 行，版本不同，已略去',
  ],
  ['not read: {}', '未读取：{}'],
  [
    'no FlowGraph ran while it was recorded, so nothing was measured: call the graph inside the block (a CompiledGraph runs outside of Python, where its operators cannot be distinguished)',
    '记录期间没有 FlowGraph 运行，因此没有测量：请在代码块内调用图（CompiledGraph 在 Python 之外运行，无法区分其算子）',
  ],
  [
    'another profiler was running, so the modules that operators belong to could not be seen: only their source lines are known',
    '另一个分析器正在运行，无法得知算子所属模块，只知道源码行',
  ],
  [
    "Jittor's tracer was switched off in the code (trace_py_var={}): what ran after that is not in the capture",
    '代码中关闭了 Jittor 的跟踪（trace_py_var={}），此后运行的内容不在捕获中',
  ],
  [
    'the watching of calls was interrupted, most likely by another profiler: the modules that operators belong to were not all seen, so none are shown',
    '调用的跟踪被中断（可能是另一个分析器），算子所属模块不完整，因此都不显示',
  ],
  [
    '{} operators were left out: they were created before the recording and ran during it (Jittor is lazy), such as those that initialise parameters',
    '略去了 {} 个算子：它们在记录之前创建、在记录期间运行（Jittor 是惰性的），例如参数初始化',
  ],
  [
    'the parameters of {} are not known: MegEngine builds them of parts that it does not show',
    '{} 的参数未知：MegEngine 没有公开其组成部分',
  ],
  ['they could not be recorded ({})', '无法记录（{}）'],
  [
    '{} gradient nodes belong to operators that ran before the recording or that were not seen',
    '{} 个梯度节点对应的算子在记录之前运行，或未被看到',
  ],
  [
    'a program made by to_static: branches that this input does not take may be in it',
    '由 to_static 生成的程序：可能包含此输入不会走的分支',
  ],
  [
    'the saved tensors of {} functions are not known: hooks have packed them (checkpointing, offloading), and to unpack them would run those',
    '{} 个函数保存的张量未知：它们被钩子打包（检查点、卸载），解包会运行这些钩子',
  ],
  [
    'the saved tensors of {} functions are not known: they were freed by a backward pass (call backward(retain_graph=True) to keep them) or changed in place',
    '{} 个函数保存的张量未知：已被反向过程释放（用 backward(retain_graph=True) 可保留）或被原地修改',
  ],
  [
    'the outputs are not single numbers: the gradients are those of the sum of all their elements',
    '输出不是单个数值：梯度为其所有元素之和的梯度',
  ],
  ['the gradients could not be measured: {}', '无法测量梯度：{}'],
  ['the shapes are not known: the traced graph does not run on these arguments: {}', '形状未知：跟踪得到的图无法用这些参数运行：{}'],
  ['stage {}: nothing in this graph requires a gradient, so it has no backward', '阶段 {}：图中没有需要梯度的内容，因此没有反向'],
  [
    '{} of {} backward operators have no forward operator: they add up the gradients of values that are read more than once',
    '{1} 个反向算子中有 {0} 个没有对应的前向算子：它们累加被多次读取的值的梯度',
  ],
  [
    '{} of {} backward operators have no forward operator: autograd gave them the number of none',
    '{1} 个反向算子中有 {0} 个没有对应的前向算子：autograd 没有给出对应编号',
  ],
  [
    'stage {}: {} operators are not in the joint graph: the partitioner made them ({})',
    '阶段 {}：{} 个算子不在联合图中，由划分器生成（{}）',
  ],
  [
    'the calls could not be followed ({}): lines are those inside of functions, and the calls of one module are not distinguished',
    '无法跟踪调用（{}）：源码行取自函数内部，同一模块的多次调用不作区分',
  ],
  [
    '{} gradient operators belong to forward operators that ran before the recording began',
    '{} 个梯度算子对应的前向算子在记录开始之前运行',
  ],
  ['torch {} does not say which operator a gradient belongs to: none are joined', 'torch {} 没有说明梯度对应哪个算子，因此都没有连接'],
  [
    "torch.compile was disabled while this was recorded: {} ran as written, operator by operator (how='dynamo' and how='joint' show what the compiler takes)",
    "记录期间停用了 torch.compile：{} 按原样逐个算子运行（how='dynamo' 和 how='joint' 可显示编译器所得）",
  ],
  ['the numbers of {} results could not be taken ({})', '{} 个结果的数值无法取得（{}）'],
  [
    '{} recomputed operators could not be joined to the ones that they run once more: the recomputation took another way than the forward pass',
    '{} 个重计算算子无法与原算子对应：重计算与前向走了不同的路径',
  ],
  ['{} ended itself by os._exit({})', '{} 以 os._exit({}) 结束了自己'],
  ['{} ended with exit code {}', '{} 以退出码 {} 结束'],
  ['{} also used {}, which is not in this capture: choose with --framework', '{} 还使用了 {}，不在此捕获中：可用 --framework 选择'],
  ['{}: only device {} is shown; {} others have a history as well', '{}：只显示设备 {}；另有 {} 个设备也有历史记录'],
  [
    '{}: no history of allocations: call torch.cuda.memory._record_memory_history() before the step',
    '{}：没有分配历史：请在该步骤之前调用 torch.cuda.memory._record_memory_history()',
  ],
  [
    'PyTorch takes another way while any recorder is active: without one it runs {}, and the last digits may differ',
    '有记录器时 PyTorch 走另一条路径：没有记录器时它运行 {}，末位数字可能不同',
  ],
  ['the profiler measured nothing: {}', '分析器没有测到任何内容：{}'],
  ['the text of {} modules is not kept: all of it is over {} MiB', '未保留 {} 个模块的文本：总量超过 {} MiB'],
  ['it was not lowered to StableHLO: {}', '未能降级（lower）为 StableHLO：{}'],
  ['XLA did not compile it here: {}', 'XLA 未能在此编译：{}'],
  ['XLA wrote no module: this backend does not dump what it compiles', 'XLA 没有写出模块：该后端不会转储其编译结果'],
  ['{} was stopped by {} while it waited in C code, such as for another rank', '{} 在 C 代码中等待时（例如等待其他 rank）被 {} 终止'],
];

const THINGS: Record<string, string> = {
  operator: '算子',
  variable: '变量',
  'backward operator': '反向算子',
  entry: '条目',
  entries: '条目',
};

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
let patterns: [RegExp, string][] | undefined;

/** As ir/gaps.py says it. */
const GAP = /^(?:some |([\d,]+) )(\S+ )?operators?(?: in (\S+))?(?: \((\w+)\))? (?:is|are) not in the graph: (.*)$/s;

/** The warning in Chinese, where its words are known; else as it is. */
export function inChinese(text: string): string {
  patterns ??= SAID.map(([said, to]) => [new RegExp(`^${said.split('{}').map(escaped).join('(.*?)')}$`, 's'), to]);
  const [isGap, count = '若干', op = '', where, phase, why = ''] = GAP.exec(text) ?? [];
  if (isGap) return `${[where, phase].filter(Boolean).join(' ')} 中有 ${count} 个 ${op}算子不在图中：${inChinese(why)}`.trim();
  for (const [pattern, to] of patterns) {
    const found = pattern.exec(text);
    if (!found) continue;
    let at = 0;
    return to.replace(/\{(\d?)\}/g, (_, place: string) => thing(found[1 + (place ? Number(place) : at++)] ?? ''));
  }
  return text;
}

/** `3 operators`: how many, of what. */
function thing(text: string): string {
  const [, count, what, which = ''] = /^([\d,]+) ([a-z ]+?)s?( \(.*\))?$/.exec(text) ?? [];
  const known = what && (THINGS[what] ?? THINGS[`${what}s`]);
  return known ? ` ${count} 个${known}${which}` : text;
}
