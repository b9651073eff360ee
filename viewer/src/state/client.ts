// The engine as the page sees it: every call is a promise.

import type { Calls } from '../engine/messages.ts';
import type { Answer } from '../engine/worker.ts';

type Promised = { [K in keyof Calls]: (...args: Parameters<Calls[K]>) => Promise<ReturnType<Calls[K]>> };

export interface Client extends Promised {
  /** True while an answer is awaited. Costs may come when they come. */
  busy(): boolean;
}

export function connect(worker: Worker): Client {
  const waiting = new Map<number, { call: string; resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  let next = 0;
  worker.onmessage = ({ data }: MessageEvent<Answer>) => {
    const call = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error !== undefined) call?.reject(new Error(data.error));
    else call?.resolve(data.result);
  };
  const busy = () => [...waiting.values()].some(({ call }) => call !== 'attach');
  return new Proxy({} as Client, {
    get: (_, call: string) =>
      call === 'busy'
        ? busy
        : (...args: unknown[]) =>
            new Promise((resolve, reject) => {
              const id = next++;
              waiting.set(id, { call, resolve, reject });
              const move = call === 'load' && ArrayBuffer.isView(args[0]) ? [args[0].buffer as ArrayBuffer] : [];
              worker.postMessage({ id, call, args }, move);
            }),
  });
}
