// The engine as the page sees it: every call is a promise.

import type { Calls } from '../engine/messages.ts';
import type { Answer } from '../engine/worker.ts';

type Promised = { [K in keyof Calls]: (...args: Parameters<Calls[K]>) => Promise<ReturnType<Calls[K]>> };

export interface Client extends Promised {
  /** True while an answer is awaited. Costs may come when they come. */
  busy(): boolean;
}

/** Calls wait for the worker, and fail where there is none. */
export function connect(worker: Promise<Worker>): Client {
  const waiting = new Map<number, { call: string; resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  let next = 0;
  const hear = ({ data }: MessageEvent<Answer>) => {
    const call = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error !== undefined) call?.reject(new Error(data.error));
    else call?.resolve(data.result);
  };
  const heard = worker.then((made) => Object.assign(made, { onmessage: hear }));
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
              heard.then((made) => made.postMessage({ id, call, args }, move)).catch(reject);
            }),
  });
}
