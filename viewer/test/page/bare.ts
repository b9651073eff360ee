// A page without a browser: the real state, the real engine, the real camera; only nothing is painted.

import { readFileSync } from 'node:fs';
import { Camera } from '../../src/draw/camera.ts';
import { light } from '../../src/draw/theme.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { Calls } from '../../src/engine/messages.ts';
import type { Page } from '../../src/page/page.ts';
import type { Client } from '../../src/state/client.ts';
import { newState } from '../../src/state/page.ts';
import { Views } from '../../src/state/store.ts';

const DATA = new URL('../../../tests/data/page/', import.meta.url);

export interface Bare {
  page: Page;
  engine: Engine;
  said: string[];
}

export async function barePage(file: string): Promise<Bare> {
  const engine = new Engine();
  const client = new Proxy({} as Client, {
    get:
      (_, call: string) =>
      async (...args: unknown[]) =>
        structuredClone(await engine.answer(call as keyof Calls, args)),
  });
  const said: string[] = [];
  const state = newState({ language: 'en', theme: light });
  const camera = new Camera();
  camera.resize(900, 700);
  const page = {
    inStep: false,
    dropped: 0,
    awaited: false,
    lastHit: null,
    state,
    client,
    views: new Views(
      (error) => {
        throw error;
      },
      () => undefined,
    ),
    renderer: { camera, setScene: () => undefined, setPaint: () => undefined, setMarks: () => undefined, resize: () => undefined },
    places: { canvas: { clientWidth: 900, clientHeight: 700 } },
    words: () => state.words.get(),
    say: (text: string) => void said.push(text),
  };
  state.captures.set([await engine.load(new Uint8Array(readFileSync(new URL(file, DATA))), file)]);
  return { page: page as unknown as Page, engine, said };
}
