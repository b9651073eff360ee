// The state of the page as named values. Who reads a value follows it: when it changes, what is derived from it is worked out
// anew, and the views that read it are shown again in the next frame, once, however much has changed. Nobody has to be told.

import { later } from './later.ts';

interface Reader {
  readonly sources: Set<Source>;
  stale(): void;
}

let reader: Reader | null = null;

/** Everything that `work` reads makes `who` stale when it changes. */
function followed<T>(who: Reader, work: () => T): T {
  for (const source of who.sources) source.forget(who);
  who.sources.clear();
  const outer = reader;
  reader = who;
  try {
    return work();
  } finally {
    reader = outer;
  }
}

abstract class Source {
  private readers = new Set<Reader>();

  constructor(readonly name: string) {}

  forget(who: Reader): void {
    this.readers.delete(who);
  }

  protected read(): void {
    if (!reader) return;
    this.readers.add(reader);
    reader.sources.add(this);
  }

  protected tell(): void {
    for (const who of [...this.readers]) who.stale();
  }
}

/** A value that is set. */
export class Value<T> extends Source {
  constructor(
    name: string,
    private now: T,
  ) {
    super(name);
  }

  get(): T {
    this.read();
    return this.now;
  }

  set(next: T): void {
    if (Object.is(next, this.now)) return;
    this.now = next;
    this.tell();
  }
}

/** A value that follows from others: worked out when it is read, and again only after one of those has changed. */
export class Derived<T> extends Source implements Reader {
  readonly sources = new Set<Source>();
  private known: { value: T } | null = null;

  constructor(
    name: string,
    private work: () => T,
  ) {
    super(name);
  }

  get(): T {
    this.read();
    return (this.known ??= { value: followed(this, this.work) }).value;
  }

  stale(): void {
    if (!this.known) return;
    this.known = null;
    this.tell();
  }
}

interface Shown extends Reader {
  readonly name: string;
  run(): void;
}

class View<T> implements Shown {
  readonly sources = new Set<Source>();
  private last: { now: T } | null = null;
  private isBusy = false;
  private isStale = false;

  constructor(
    readonly name: string,
    private read: () => T,
    private show: (now: T) => void | Promise<void>,
    private views: Views,
  ) {}

  stale(): void {
    // One answer after the other: what has changed meanwhile is shown when this one is there.
    if (this.isBusy) this.isStale = true;
    else this.views.ask(this);
  }

  run(): void {
    const now = followed(this, this.read);
    if (this.last && same(now, this.last.now)) return;
    this.last = { now };
    const work = this.show(now);
    if (!work) return;
    this.isBusy = true;
    this.views.wait(work, () => {
      this.isBusy = false;
      if (this.isStale) this.views.ask(this);
      this.isStale = false;
    });
  }
}

/** More rounds than this in one frame: views that change what they read themselves. */
const MOST_ROUNDS = 100;

/** What is shown of the state, in the order in which it was added. */
export class Views {
  private all: Shown[] = [];
  private asked = new Set<Shown>();
  private underWay = 0;

  /** `soon` runs a function in the next frame, once. */
  constructor(
    private failed: (error: unknown) => void,
    private soon: (work: () => void) => void = (work) => later(this, work),
  ) {}

  /**
   * `read` says what is shown: values in a list, or one. `show` shows it, now and whenever it is another; with a promise where
   * it has to ask. Only what `read` reads is followed.
   */
  add<T>(name: string, read: () => T, show: (now: T) => void | Promise<void>): void {
    const view = new View(name, read, show, this);
    this.all.push(view);
    this.ask(view);
  }

  ask(view: Shown): void {
    this.asked.add(view);
    this.soon(() => this.run());
  }

  wait(work: Promise<void>, done: () => void): void {
    this.underWay++;
    work.catch(this.failed).finally(() => {
      this.underWay--;
      done();
    });
  }

  get busy(): boolean {
    return this.asked.size > 0 || this.underWay > 0;
  }

  /** Show now what would be shown in the next frame. */
  run(): void {
    for (let round = 0; this.asked.size; round++) {
      const now = this.all.filter((view) => this.asked.has(view));
      this.asked.clear();
      if (round === MOST_ROUNDS) throw new Error(`these views never come to rest: ${now.map((view) => view.name).join(', ')}`);
      for (const view of now) {
        try {
          view.run();
        } catch (error) {
          this.failed(error);
        }
      }
    }
  }
}

/** The same thing, or lists of the same things. */
export function same(a: unknown, b: unknown): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return Object.is(a, b);
  return a.length === b.length && a.every((item, i) => Object.is(item, b[i]));
}
