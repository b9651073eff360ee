// The engine behind a message port: a call comes in, its answer goes back, buffers are moved and not copied.

import { bytesOf, type Address } from './content.ts';
import { Engine } from './engine.ts';
import { COMMANDS, type Calls } from './messages.ts';
import { isQuestion, QUESTIONS } from './questions.ts';

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

/** Milliseconds without a call before work that can wait begins. */
const PAUSE = 100;

export function serve(port: {
  postMessage(message: Answer, move: Transferable[]): void;
  onmessage: ((event: MessageEvent<Request>) => void) | null;
}): void {
  const engine = new Engine();
  let waiting = 0;
  let spare: ReturnType<typeof setTimeout> | undefined;
  // Work that nobody waits for begins when no call has come for a while, and lets every call pass.
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
        const result = await engine.answer(call, await ready);
        const { moves } = isQuestion(call) ? QUESTIONS[call] : COMMANDS[call];
        port.postMessage({ id, result }, moves ? buffers(result) : []);
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
