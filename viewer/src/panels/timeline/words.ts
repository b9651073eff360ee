// The texts of the timeline, in English and Chinese.

import type { SavingKind } from '../../wire/facts.ts';
import { LANGUAGES, type Language, type Words } from '../../state/words.ts';

export interface TimelineWords {
  title: string;
  help: string;
  reading: string;
  unknown: string;
  keys: string;
  whole: string;
  fit: string;
  python: (n: number) => string;
  pythonHelp: string;
  lit: (spans: number, kernels: number, time: string) => string;
  apart: string;
  leftOut: (n: number) => string;
  leftOutHelp: string;
  device: (n: number) => string;
  busy: (share: string) => string;
  streams: string;
  threads: string;
  modules: string;
  idle: (time: string) => string;
  several: (n: number) => string;
  zoomIn: string;
  delay: (time: string) => string;
  at: (time: string) => string;
  nothing: string;
  kinds: Record<string, string>;
  count: (events: number, span: string) => string;
  won: string;
  wonHelp: string;
  hideWon: string;
  atMost: string;
  atMostHelp: string;
  nobody: string;
  took: (time: string, count: number) => string;
  savings: Record<SavingKind, string>;
  used: (name: string, share: string) => string;
  step: (time: string, busy: string) => string;
}

const EN: TimelineWords = {
  title: 'Timeline',
  help: 'What ran when: GPU streams and CPU threads, with their modules',
  reading: 'Reading the profile…',
  unknown:
    'This capture has times, but it does not say when each operator began. Record it with times="device", or join a profile: opscope view CAPTURE --profile TRACE.',
  keys: 'Wheel, W and S: zoom. Drag, A and D: pan. Arrow keys: next span, outer, inner. Enter: select. F: fit the selection. 0: whole run.',
  whole: 'Whole run',
  fit: 'Fit selection',
  python: (n) => `Python functions (${n.toLocaleString()})`,
  pythonHelp: 'Show the Python functions that called the operators',
  lit: (spans, kernels, time) =>
    `${spans.toLocaleString()} span${spans === 1 ? '' : 's'} selected${kernels ? ` · ${kernels.toLocaleString()} kernel${kernels === 1 ? '' : 's'}, ${time}` : ''}`,
  apart: 'The selection did not run in this profile',
  leftOut: (n) => `${n.toLocaleString()} events left out`,
  leftOutHelp: 'The profile has more events than a capture holds: Python functions are left out first, then what operators call.',
  device: (n) => `GPU ${n}`,
  busy: (share) => `${share} busy`,
  streams: 'GPU',
  threads: 'CPU',
  modules: 'modules',
  idle: (time) => `idle ${time}`,
  several: (n) => `${n.toLocaleString()} spans`,
  zoomIn: 'Zoom in to see each',
  delay: (time) => `started ${time} after its launch`,
  at: (time) => `at ${time}`,
  nothing: 'not in the graph',
  kinds: {
    operator: 'operator',
    call: 'call inside an operator',
    region: 'named region',
    step: 'step',
    python: 'Python function',
    launch: 'CUDA library call',
    kernel: 'kernel',
    copy: 'copy',
    set: 'memory set',
    module: 'module, from its first to its last operator',
    phase: 'phase, from its first to its last operator',
  },
  count: (events, span) => `${events.toLocaleString()} events, ${span}`,
  won: 'Where time could be won',
  wonHelp: 'What the profile shows to be slow, by which rule, and what it would save at most',
  hideWon: 'Hide this list',
  atMost: 'at most',
  atMostHelp: 'What it would save at most, each row by itself',
  nobody: 'nobody can say',
  took: (time, count) => (count > 1 ? `${time} in ${count.toLocaleString()}` : time),
  savings: {
    'launch-bound': 'GPU waits for the CPU',
    idle: 'GPU idle',
    'below-peak': 'Far from the peak',
    'memory-bound': 'Bound by memory',
    'small-kernels': 'Small kernels',
    copies: 'Copies',
    conversions: 'Type conversions',
    communication: 'Exposed communication',
    'unknown-device': 'Unknown device',
  },
  used: (name, share) => `${name} ${share}`,
  step: (time, busy) => `step ${time}, GPU busy ${busy}`,
};

const ZH: TimelineWords = {
  title: '时间线',
  help: '何时运行了什么：GPU 流与 CPU 线程，以及所属模块',
  reading: '正在读取性能数据…',
  unknown: '此文件有耗时数据，但没有各算子的开始时刻。请用 times="device" 录制，或合并性能文件：opscope view CAPTURE --profile TRACE。',
  keys: '滚轮、W、S：缩放。拖动、A、D：平移。方向键：前后、外层、内层。Enter：选择。F：缩放到所选。0：全程。',
  whole: '全程',
  fit: '缩放到所选',
  python: (n) => `Python 函数（${n.toLocaleString()}）`,
  pythonHelp: '显示调用算子的 Python 函数',
  lit: (spans, kernels, time) => `已选 ${spans.toLocaleString()} 段${kernels ? ` · ${kernels.toLocaleString()} 个内核，${time}` : ''}`,
  apart: '所选内容在此性能数据中没有运行',
  leftOut: (n) => `省略了 ${n.toLocaleString()} 个事件`,
  leftOutHelp: '性能数据的事件多于文件的上限：先省略 Python 函数，再省略算子内部的调用。',
  device: (n) => `GPU ${n}`,
  busy: (share) => `忙碌 ${share}`,
  streams: 'GPU',
  threads: 'CPU',
  modules: '模块',
  idle: (time) => `空闲 ${time}`,
  several: (n) => `${n.toLocaleString()} 段`,
  zoomIn: '放大可逐一查看',
  delay: (time) => `启动后 ${time} 才开始`,
  at: (time) => `位于 ${time}`,
  nothing: '不在图中',
  kinds: {
    operator: '算子',
    call: '算子内部的调用',
    region: '命名区域',
    step: '步',
    python: 'Python 函数',
    launch: 'CUDA 库调用',
    kernel: '内核',
    copy: '拷贝',
    set: '内存设置',
    module: '模块，从首个到末个算子',
    phase: '阶段，从首个到末个算子',
  },
  count: (events, span) => `${events.toLocaleString()} 个事件，${span}`,
  won: '可以节省的时间',
  wonHelp: '性能数据中较慢的部分、所依据的规则，以及最多可节省多少',
  hideWon: '隐藏此列表',
  atMost: '最多',
  atMostHelp: '每一行单独最多可节省的时间',
  nobody: '无法得知',
  took: (time, count) => (count > 1 ? `${time}，${count.toLocaleString()} 次` : time),
  savings: {
    'launch-bound': 'GPU 等待 CPU',
    idle: 'GPU 空闲',
    'below-peak': '远低于峰值',
    'memory-bound': '访存受限',
    'small-kernels': '小内核',
    copies: '拷贝',
    conversions: '类型转换',
    communication: '未被掩盖的通信',
    'unknown-device': '未知设备',
  },
  used: (name, share) => `${name} ${share}`,
  step: (time, busy) => `每步 ${time}，GPU 忙碌 ${busy}`,
};

const WORDS: Record<Language, TimelineWords> = { en: EN, zh: ZH };

export function timelineWords(words: Words): TimelineWords {
  return WORDS[words === LANGUAGES.zh ? 'zh' : 'en'];
}
