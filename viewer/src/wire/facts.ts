// What Python and the page agree on: generated from src/opscope/ir by `make viewer`. Do not edit.

export const FILE_VERSION = 3;

/** A chain of scopes that is longer than both ends together is printed as these; a label at most so long. */
export const CHAIN_ENDS = 16;
export const LONGEST_LABEL = 200;

/** Counts of exponents: ranges of so many powers of two, from 2 to this one on. */
export const EXPONENTS = { width: 4, lowest: -128 };

export const PHASES = ['init', 'forward', 'backward', 'recompute', 'optimizer', 'other'] as const;
export type Phase = (typeof PHASES)[number];

export const ROLES = ['input', 'parameter', 'buffer', 'constant', 'activation', 'gradient', 'state'] as const;
export type Role = (typeof ROLES)[number];

export const HOW = ['exact', 'zero', 'estimated', 'unknown'] as const;
export type How = (typeof HOW)[number];

export const MEMORY_CLASSES = ['parameter', 'buffer', 'state', 'input', 'constant', 'gradient', 'activation', 'temporary'] as const;
export type MemoryClass = (typeof MEMORY_CLASSES)[number];

export const CHANGE_CLASSES = ['fused', 'split', 'rewritten', 'changed', 'moved', 'removed', 'added', 'same'] as const;
export type ChangeClass = (typeof CHANGE_CLASSES)[number];

export const EVIDENCE = ['reported', 'name', 'structure'] as const;
export type Evidence = (typeof EVIDENCE)[number];

export const GAP_TOUCHES = ['compute', 'traffic', 'memory', 'parameters'] as const;
export type GapTouches = (typeof GAP_TOUCHES)[number];

export const FAMILIES = ['matmul', 'convolution', 'attention', 'normalization', 'activation', 'elementwise', 'reduction', 'loss', 'pooling', 'indexing', 'movement', 'recurrent', 'optimizer', 'random', 'other'] as const;
export type Family = (typeof FAMILIES)[number];

export const LINK_KINDS = ['grad', 'recompute', 'alias', 'control'] as const;
export type LinkKind = (typeof LINK_KINDS)[number];

export const GROUP_KINDS = ['kernel', 'partition', 'pattern'] as const;
export type GroupKind = (typeof GROUP_KINDS)[number];

export const LISTING_KINDS = ['table', 'code', 'native', 'signature', 'symbols', 'breaks'] as const;
export type ListingKind = (typeof LISTING_KINDS)[number];

export const EVENT_KINDS = ['operator', 'call', 'region', 'step', 'python', 'launch', 'kernel', 'copy', 'set'] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

export const TRACK_KINDS = ['thread', 'stream'] as const;
export type TrackKind = (typeof TRACK_KINDS)[number];

export const SAVING_KINDS = ['launch-bound', 'idle', 'below-peak', 'memory-bound', 'small-kernels', 'copies', 'conversions', 'communication', 'unknown-device'] as const;
export type SavingKind = (typeof SAVING_KINDS)[number];

/** Bits of one element, by every spelling of a dtype in lower case; only dtypes of a fixed size. */
export const DTYPE_BITS: Readonly<Record<string, number>> = {
  bool: 8,
  boolean: 8,
  pred: 8,
  bool8: 8,
  b1: 8,
  int1: 1,
  int1b: 1,
  intb1: 1,
  int2: 2,
  int2b: 2,
  s2: 2,
  intb2: 2,
  int3: 3,
  int3b: 3,
  int4: 4,
  int4b: 4,
  s4: 4,
  intb4: 4,
  int5: 5,
  int6: 6,
  int7: 7,
  int8: 8,
  s8: 8,
  i8: 8,
  char: 8,
  int16: 16,
  s16: 16,
  i16: 16,
  short: 16,
  int32: 32,
  s32: 32,
  i32: 32,
  int: 32,
  int64: 64,
  s64: 64,
  i64: 64,
  long: 64,
  uint1: 1,
  uint1b: 1,
  uint2: 2,
  uint2b: 2,
  u2: 2,
  uint3: 3,
  uint3b: 3,
  uint4: 4,
  uint4b: 4,
  u4: 4,
  uintb4: 4,
  uint5: 5,
  uint6: 6,
  uint7: 7,
  uint8: 8,
  u8: 8,
  byte: 8,
  uint16: 16,
  u16: 16,
  uint32: 32,
  u32: 32,
  uint64: 64,
  u64: 64,
  float16: 16,
  f16: 16,
  half: 16,
  fp16: 16,
  bfloat16: 16,
  bf16: 16,
  float32: 32,
  f32: 32,
  float: 32,
  fp32: 32,
  single: 32,
  tfloat32: 32,
  tf32: 32,
  float64: 64,
  f64: 64,
  double: 64,
  fp64: 64,
  float8: 8,
  f8: 8,
  float8_e3m4: 8,
  f8e3m4: 8,
  float8e3m4: 8,
  float8_e4m3: 8,
  f8e4m3: 8,
  float8e4m3: 8,
  float8_e4m3fn: 8,
  f8e4m3fn: 8,
  float8e4m3fn: 8,
  fp8_e4m3fn: 8,
  float8_e4m3fnuz: 8,
  f8e4m3fnuz: 8,
  float8e4m3fnuz: 8,
  float8_e4m3b11fnuz: 8,
  f8e4m3b11fnuz: 8,
  float8e4m3b11fnuz: 8,
  float8_e5m2: 8,
  f8e5m2: 8,
  float8e5m2: 8,
  fp8_e5m2: 8,
  float8_e5m2fnuz: 8,
  f8e5m2fnuz: 8,
  float8e5m2fnuz: 8,
  float8_e8m0fnu: 8,
  f8e8m0fnu: 8,
  float8e8m0: 8,
  float8_e8m0: 8,
  float6_e2m3fn: 6,
  f6e2m3fn: 6,
  float6e2m3: 6,
  float6_e3m2fn: 6,
  f6e3m2fn: 6,
  float6e3m2: 6,
  float4_e2m1fn: 4,
  f4e2m1fn: 4,
  float4e2m1: 4,
  float4_e2m1fn_x2: 8,
  complex32: 32,
  chalf: 32,
  bcomplex32: 32,
  complex64: 64,
  c64: 64,
  cfloat: 64,
  complex128: 128,
  c128: 128,
  cdouble: 128,
  qint8: 8,
  quantizeds8: 8,
  qint8_narrow: 8,
  quint8: 8,
  quantized8asymm: 8,
  qint16: 16,
  quantizeds16: 16,
  qint32: 32,
  quantizeds32: 32,
  qint4: 4,
  quantizeds4: 4,
  quint4: 4,
  quantized4asymm: 4,
  quint2: 2,
  qint2: 2,
  qint1: 1,
  quantizeds1: 1,
  quint4x2: 4,
  quint2x4: 2,
  bits8: 8,
  bits16: 16,
  bits1x8: 8,
  bits2x4: 8,
  bits4x2: 8,
  float0: 0,
};

/** What a spelling may have around the name of a dtype: whose it is, `tensor(…)`, the lanes of a vector. */
export const DTYPE_PATTERNS = {
  prefix: /^(?:[a-z_]\w*\.)+/,
  around: /^tensor\((\w+)\)$/,
  vector: /^(\w+?)x(\d+)$/,
};

export const MOST_LANES = 1024; // of a vector

/** Measured figures of a tensor: columns of `values`, and fields of the search language. */
export const VALUE_FIGURES = ['norm', 'min', 'max', 'mean', 'std', 'nan', 'inf', 'neginf', 'zeros', 'subnormal', 'rms'] as const;

/** Units of time, in seconds. */
export const TIME_UNITS: Readonly<Record<string, number>> = { s: 1, ms: 0.001, us: 1e-6, ns: 1e-9 };

/** Kinds of facts; a column is named as in its declaration. */
export const FACTS = {
  /** What was measured while it ran. */
  times: { name: 'times', by: ['node', 'scope', 'group:kernel', 'group:copy'], of: 'graph', columns: { time: 'column time', cpu: 'column cpu', start: 'column start', least: 'column least', most: 'column most', median: 'column median', runs: 'column runs' } },
  /** How much of a measured profile found its place in the graph: kernels by evidence, and by name those without. */
  profile: { name: 'profile', by: ['row'], of: 'graph', columns: { evidence: 'column evidence', name: 'column name', reason: 'column reason', kernels: 'column kernels', time: 'column time', 'with module': 'column with module', 'with line': 'column with line' } },
  /** Where the time of a profiled run went: work, overlap, and why devices were idle. */
  split: { name: 'split', by: ['row'], of: 'graph', columns: { name: 'column name', time: 'column time', count: 'column count', explanation: 'column explanation' } },
  /** What ran when in a measured profile, by what of the graph it belongs to; a row: nothing of the graph. */
  events: { name: 'events', by: ['node', 'scope', 'group:kernel', 'group:copy', 'row'], of: 'stage', columns: { start: 'column start', time: 'column time', track: 'column track', name: 'column name', kind: 'column kind', delay: 'column delay', 'launched on': 'column launched on' } },
  /** The threads and streams of a measured profile. */
  tracks: { name: 'tracks', by: ['row'], of: 'stage', columns: { name: 'column name', kind: 'column kind', device: 'column device', 'left out': 'column left out' } },
  /** What the events of a measured profile are called, each name once. */
  event_names: { name: 'event_names', by: ['row'], of: 'stage', columns: { name: 'column name' } },
  /** The devices that a profile was taken on, as the profiler describes them. */
  devices: { name: 'devices', by: ['row'], of: 'stage', columns: { number: 'column number', name: 'column name' } },
  /** Where time could be won in a measured run: what was found, by which rule, and how much it is at most. */
  savings: { name: 'savings', by: ['row'], of: 'graph', columns: { kind: 'column kind', name: 'column name', time: 'column time', most: 'column most', count: 'column count', nodes: 'column nodes', why: 'column why' } },
  /** Pieces of work that were measured, by the first operator of each: what ran together, and what that costs. */
  work: { name: 'work', by: ['node'], of: 'graph', columns: { time: 'column time', macs: 'column macs', causal: 'column causal', other: 'column other', bytes: 'column bytes', kernels: 'column kernels', nodes: 'column nodes' } },
  /** What a measured step made of its device. */
  utilization: { name: 'utilization', by: ['row'], of: 'graph', columns: { name: 'column name', share: 'column share', time: 'column time', device: 'column device', 'at least': 'column at least' } },
  /** Memory that an allocator had handed out when most was alive, or when it refused to hand out more. */
  blocks: { name: 'blocks', by: ['row'], of: 'graph', columns: { value: 'column value', bytes: 'column bytes', class: 'column class', evidence: 'column evidence', stack: 'column stack' } },
  /** What every operator costs; docs/stats.md defines the figures. */
  costs: { name: 'costs', by: ['node'], of: 'graph', columns: { macs: 'column macs', causal: 'column causal', other: 'column other', read: 'column read', written: 'column written', wire: 'column wire', activations: 'column activations', how: 'column how', 'at least': 'column at least' } },
  /** Every storage, by the value that owns it: how large it is and when it is alive. */
  lifetimes: { name: 'lifetimes', by: ['value'], of: 'graph', columns: { bytes: 'column bytes', class: 'column class', born: 'column born', dies: 'column dies' } },
  /** Every parameter, by the value that owns its storage. */
  parameters: { name: 'parameters', by: ['value'], of: 'graph', columns: { elements: 'column elements', bytes: 'column bytes', node: 'column node' } },
  /** The operation behind an operator's name, and of nodes that are another one than their name says. */
  kinds: { name: 'kinds', by: ['op', 'node'], of: 'graph', columns: { kind: 'column kind', family: 'column family' } },
  /** Numbers of tensors, and statistics of them. */
  values: { name: 'values', by: ['value'], of: 'graph', columns: { values: 'column values', norm: 'column norm', min: 'column min', max: 'column max', mean: 'column mean', std: 'column std', nan: 'column nan', inf: 'column inf', neginf: 'column neginf', zeros: 'column zeros', subnormal: 'column subnormal', rms: 'column rms', exponents: 'column exponents', sampled: 'column sampled', hash: 'column hash' } },
  /** Where numbers that are not finite were born, the first first. */
  origins: { name: 'origins', by: ['row'], of: 'stage', columns: { node: 'column node', value: 'column value', kind: 'column kind', what: 'column what', forward: 'column forward', spread: 'column spread', story: 'column story' } },
  /** What was seen of the gradients that an autograd engine handed on, by the value of each. */
  gradients: { name: 'gradients', by: ['value'], of: 'graph', columns: { place: 'column place', evidence: 'column evidence', out_slot: 'column out_slot', out_rank: 'column out_rank', in_slot: 'column in_slot', in_rank: 'column in_rank', norm: 'column norm', min: 'column min', max: 'column max', mean: 'column mean', nan: 'column nan', inf: 'column inf' } },
  /** The numbers that a framework itself gives to operators and tensors; its messages speak of them. */
  ids: { name: 'ids', by: ['node', 'value'], of: 'graph', columns: { id: 'column id' } },
  /** What a stage changed in the stage it was made from. */
  changes: { name: 'changes', by: ['row'], of: 'stage', columns: { class: 'column class', before: 'column before', after: 'column after', evidence: 'column evidence', detail: 'column detail' } },
  /** Where and why a compiler stopped a graph before the program ended. */
  breaks: { name: 'breaks', by: ['row'], of: 'stage', columns: { file: 'column file', line: 'column line', reason: 'column reason', frame: 'column frame', before: 'column before', after: 'column after', crossing: 'column crossing' } },
  /** What a compiler compiled once more, and why. */
  recompiles: { name: 'recompiles', by: ['row'], of: 'stage', columns: { frame: 'column frame', reason: 'column reason' } },
  /** How long a compiler took, by what it compiled and by phase. Phases of one frame and direction do not overlap. */
  compile_times: { name: 'compile_times', by: ['row'], of: 'stage', columns: { frame: 'column frame', function: 'column function', direction: 'column direction', phase: 'column phase', time: 'column time' } },
  /** Why two kernels of a stage are not one, in the compiler's own words. */
  not_fused: { name: 'not_fused', by: ['row'], of: 'stage', columns: { kernel: 'column kernel', other: 'column other', reason: 'column reason' } },
  /** What ran and is not in the graph: every figure that it touches is only a lower bound. By the module it ran in. */
  gaps: { name: 'gaps', by: ['scope'], of: 'graph', columns: { reason: 'column reason', count: 'column count', inside: 'column inside', phase: 'column phase', op: 'column op', touches: 'column touches' } },
  /** Which lines of the stage's listings belong to which operators: any number of lines to any number of operators. */
  lines: { name: 'lines', by: ['node'], of: 'stage', columns: { listing: 'column listing', line: 'column line' } },
  /** The files that hold the generated code of kernels. Python files are named by the frames of stacks. */
  files: { name: 'files', by: ['group:kernel'], of: 'graph', columns: { file: 'column file' } },
  /** Figures of the user's own, of operators or whole modules: any columns, of numbers or of text. */
  own: { name: 'own', by: ['node', 'scope'], of: 'graph', columns: {  } },
  /** Which rank of a distributed program a stage was recorded as. */
  rank: { name: 'rank', by: ['row'], of: 'stage', columns: { rank: 'column rank', world: 'column world' } },
  /** The groups of ranks that the recorded rank was in. */
  rank_groups: { name: 'rank_groups', by: ['row'], of: 'stage', columns: { dimension: 'column dimension', ranks: 'column ranks' } },
  /** The ranks that compute what a stage computes, and what one of them takes. */
  rank_class: { name: 'rank_class', by: ['row'], of: 'stage', columns: { ranks: 'column ranks', seen: 'column seen', parameters: 'column parameters', 'parameter bytes': 'column parameter bytes', 'state bytes': 'column state bytes', 'gradient bytes': 'column gradient bytes', 'activation bytes': 'column activation bytes', 'peak bytes': 'column peak bytes', macs: 'column macs', other: 'column other', 'moved bytes': 'column moved bytes', 'wire bytes': 'column wire bytes', 'at least': 'column at least', odd: 'column odd' } },
  /** What a rank sends to others, by dimension of the mesh. */
  rank_wires: { name: 'rank_wires', by: ['row'], of: 'stage', columns: { dimension: 'column dimension', size: 'column size', bytes: 'column bytes', operators: 'column operators' } },
  /** How the ranks of a distributed program are laid out: a dimension a row, the outermost first. */
  mesh: { name: 'mesh', by: ['row'], of: 'graph', columns: { dimension: 'column dimension', size: 'column size', stride: 'column stride' } },
} as const;

/** Headers of a user's table: those that say what a row is about, and those that are words for an operator. */
export const OWN_KEYS = { node: ['node', 'node_id', 'id', 'index', '#'], path: ['path', 'scope', 'module', 'layer'], name: ['name', 'node_name'] } as const;
export const OWN_LABELS: readonly string[] = ['op', 'phase', 'type', 'class', 'kind', 'how'];

/** Attributes that opscope itself writes. */
export const ATTRIBUTES = { WRITTEN_BEFORE: 'written before', MASK_SHOWS: 'mask_shows', INSIDE: 'inside_of', GROUP: 'rank_group', NESTED: 'nested_sizes', SPARSE: 'sparse_entries', ROWS: 'rows_in_groups', MODULE: 'module', MODULE_GUESSED: 'module is guessed', NOT_KNOWN: 'not known', FAILED: 'failed', STARTS_FROM: 'starts_from', NO_GRADIENT: 'no_gradient', UNPAIRED: 'unpaired', WITHOUT_RECORDER: 'without a recorder', COPIES_FOR: 'copies for', RECOMPUTE_POLICY: 'recompute policy', RECOMPUTED_BECAUSE: 'recomputed because', EXPORTED_FROM: 'exported from' } as const;

/** How frameworks spell what the page recognises. */
export const SPELLINGS = {
  FRAMEWORK_FILE: /[\\/](?:site|dist)-packages[\\/](?:torch|jittor|paddle|megengine|hidet)[\\/]|^torch[\\/]|[\\/]torchinductor_|<frozen/,
  NATIVE_OPERATOR: /^(?:torch\.ops\.)?(?:aten|prims|prim)(?:\.|::)(\w+)/,
  PYTHON_OPERATOR: /^(?:torch\.(?:nn\.functional|nn|_C\._nn|_C\._linalg|_C)|nn\.functional|torch|nn|F|_?operator|Tensor|builtins|math)\.(\w+)$/,
  OPERATOR_GROUP: /^(?:binary|unary)\./,
  READS_ATTRIBUTE: 'GetAttr',
  CALLS_METHOD: 'CallMethod',
  SAVED_COPY: /^(?:torch\.ops\.)?aten(?:\.|::)detach(?:\.default)?$/,
} as const;
