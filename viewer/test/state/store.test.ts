// The store: who reads a value follows it, once a frame, whatever changed and in whatever order.

import { describe, expect, it } from 'vitest';
import { Derived, Value, Views } from '../../src/state/store.ts';

/** Views whose frames come when the test says so. */
function stage(): { views: Views; frame: () => Promise<void>; asked: () => number; errors: unknown[] } {
  const errors: unknown[] = [];
  let work: (() => void) | null = null;
  let asked = 0;
  const views = new Views(
    (error) => errors.push(error),
    (next) => {
      work = next;
      asked++;
    },
  );
  const frame = async () => {
    const now = work;
    work = null;
    now?.();
    for (let i = 0; i < 10; i++) await Promise.resolve();
  };
  return { views, frame, asked: () => asked, errors };
}

describe('derived values', () => {
  it('are worked out when they are read, and again only after what they read has changed', () => {
    const [a, b] = [new Value('a', 1), new Value('b', 10)];
    let times = 0;
    const sum = new Derived('sum', () => (times++, a.get() + b.get()));
    expect(times).toBe(0);
    expect([sum.get(), sum.get(), times]).toEqual([11, 11, 1]);
    a.set(2);
    a.set(3);
    expect(times).toBe(1);
    expect([sum.get(), times]).toEqual([13, 2]);
    b.set(10);
    expect([sum.get(), times]).toEqual([13, 2]);
  });

  it('follow only what they read last', () => {
    const [first, a, b] = [new Value('first', true), new Value('a', 1), new Value('b', 2)];
    let times = 0;
    const one = new Derived('one', () => (times++, first.get() ? a.get() : b.get()));
    one.get();
    first.set(false);
    expect(one.get()).toBe(2);
    a.set(5);
    expect([one.get(), times]).toEqual([2, 2]);
  });
});

describe('views', () => {
  it('are shown once a frame, in their order, however much has changed', async () => {
    const { views, frame } = stage();
    const [a, b] = [new Value('a', 1), new Value('b', 1)];
    const seen: string[] = [];
    views.add(
      'first',
      () => [a.get(), b.get()],
      (now) => void seen.push(`first ${now}`),
    );
    views.add(
      'second',
      () => a.get(),
      (now) => void seen.push(`second ${now}`),
    );
    await frame();
    expect(seen.splice(0)).toEqual(['first 1,1', 'second 1']);
    a.set(2);
    b.set(2);
    a.set(3);
    expect(views.busy).toBe(true);
    await frame();
    expect(seen).toEqual(['first 3,2', 'second 3']);
    expect(views.busy).toBe(false);
  });

  it('are not shown again for the same', async () => {
    const { views, frame } = stage();
    const a = new Value('a', 1);
    const isOdd = new Derived('odd', () => a.get() % 2 === 1);
    const seen: unknown[] = [];
    views.add(
      'odd',
      () => [isOdd.get()],
      (now) => void seen.push(now),
    );
    await frame();
    a.set(3);
    await frame();
    expect(seen).toEqual([[true]]);
  });

  it('do not follow what they only use while they show', async () => {
    const { views, frame, asked } = stage();
    const [a, b] = [new Value('a', 1), new Value('b', 1)];
    views.add(
      'a',
      () => a.get(),
      () => void b.get(),
    );
    await frame();
    const before = asked();
    b.set(2);
    expect(asked()).toBe(before);
  });

  it('that wait for an answer are shown again when it is there, with what is true then', async () => {
    const { views, frame } = stage();
    const a = new Value('a', 1);
    const answers: (() => void)[] = [];
    const seen: number[] = [];
    views.add(
      'asks',
      () => a.get(),
      async (now) => {
        await new Promise<void>((done) => answers.push(done));
        seen.push(now);
      },
    );
    await frame();
    a.set(2);
    a.set(3);
    await frame();
    expect(answers).toHaveLength(1);
    answers[0]!();
    await frame();
    await frame();
    expect(views.busy).toBe(true);
    answers[1]!();
    await frame();
    expect(seen).toEqual([1, 3]);
    expect(views.busy).toBe(false);
  });

  it('may change values, whose views then follow in the same frame', async () => {
    const { views, frame } = stage();
    const [a, double] = [new Value('a', 1), new Value('double', 0)];
    const seen: number[] = [];
    views.add(
      'sees',
      () => double.get(),
      (now) => void seen.push(now),
    );
    views.add(
      'doubles',
      () => a.get(),
      (now) => double.set(2 * now),
    );
    await frame();
    expect(seen).toEqual([0, 2]);
    a.set(4);
    await frame();
    expect(seen).toEqual([0, 2, 8]);
  });

  it('that never come to rest are named', () => {
    const { views } = stage();
    const a = new Value('a', 0);
    views.add(
      'restless',
      () => a.get(),
      (now) => a.set(now + 1),
    );
    expect(() => views.run()).toThrow('restless');
  });

  it('that fail say so, and others go on', async () => {
    const { views, frame, errors } = stage();
    const a = new Value('a', 1);
    const seen: number[] = [];
    views.add(
      'fails',
      () => a.get(),
      () => Promise.reject(new Error('no answer')),
    );
    views.add(
      'throws',
      () => a.get(),
      () => {
        throw new Error('no place');
      },
    );
    views.add(
      'works',
      () => a.get(),
      (now) => void seen.push(now),
    );
    await frame();
    expect(errors.map(String).sort()).toEqual(['Error: no answer', 'Error: no place']);
    expect(seen).toEqual([1]);
    expect(views.busy).toBe(false);
  });
});
