// The engine behind a message port: a call comes in, its answer goes back, buffers are moved and not copied.

import { bytesOf, type Address } from './content.ts';
import { Engine } from './engine.ts';
import type { Calls } from './messages.ts';

export interface Request {
  id: number;
  call: keyof Calls;
  args: unknown[];
}

export interface Answer {
  id: number;
  result?: unknown;
  error?: string;
}

const MOVED = new Set<keyof Calls>([
  'stage',
  'options',
  'speak',
  'open',
  'unfold',
  'openAll',
  'openDepth',
  'reveal',
  'restore',
  'aside',
  'metric',
  'kernelOf',
]);

/** Calls that ask what operators cost. */
const COUNTED = new Set<keyof Calls>(['details', 'table', 'csv', 'metric', 'costMap', 'memoryLine', 'alive', 'steps', 'roofs', 'totals']);

/** Milliseconds without a call before work that can wait begins. */
const PAUSE = 100;

export function serve(port: {
  postMessage(message: Answer, move: Transferable[]): void;
  onmessage: ((event: MessageEvent<Request>) => void) | null;
}): void {
  const engine = new Engine();
  const calls = engine as unknown as Record<string, (...args: unknown[]) => unknown>;
  let waiting = 0;
  let spare: ReturnType<typeof setTimeout> | undefined;
  // Work that nothing waits for begins when no call has come for a while, and lets every call pass.
  const rest = (pause: number): void => {
    clearTimeout(spare);
    spare = setTimeout(() => !waiting && engine.later() && rest(0), pause);
  };
  // One after the other: a picture is made from what the calls before it opened.
  let last: Promise<unknown> = Promise.resolve();
  port.onmessage = ({ data: { id, call, args } }) => {
    waiting++;
    // Costs that a server counts take their time: other calls do not wait for them.
    const ready = call === 'attach' ? bytesOf(args[1] as Address).then((bytes) => [args[0], bytes]) : Promise.resolve(args);
    const turn = async (): Promise<void> => {
      try {
        if (COUNTED.has(call)) await engine.count();
        const result = await calls[call]!(...(await ready));
        port.postMessage({ id, result }, MOVED.has(call) ? buffers(result) : []);
      } catch (error) {
        port.postMessage({ id, error: error instanceof Error ? error.message : String(error) }, []);
      }
      waiting--;
      if (engine.shown) rest(PAUSE);
    };
    if (call === 'attach') void ready.catch(() => undefined).then(() => (last = last.then(turn)));
    else last = last.then(turn);
  };
}

/** All buffers in an answer, each once. */
function buffers(value: unknown, found = new Set<ArrayBuffer>()): ArrayBuffer[] {
  if (ArrayBuffer.isView(value)) found.add(value.buffer as ArrayBuffer);
  else if (Array.isArray(value) && typeof value[0] !== 'object') return [...found];
  else if (value && typeof value === 'object') for (const inner of Object.values(value)) buffers(inner, found);
  return [...found];
}
