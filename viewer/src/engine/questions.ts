// What may be asked about the stage in view. A question is a function of the view and has one line here; the page asks it
// by its name (state/client.ts), tests and scripts by `engine.ask`.

import type { Place } from '../wire/capture.ts';
import type { OfScene } from '../scene.ts';
import { children, details, inside, kernel, kernels, labels, summed } from './answers.ts';
import { boxes, hiddenOf, kernelOf, metric, pairs } from './boxes.ts';
import { compiling } from './compiling.ts';
import { alive, costMap, memoryLine, roofs, steps, totals } from './costviews.ts';
import { across, changes, drawn, follow } from './history.ts';
import { families, saidOf } from './families.ts';
import { items, paths, scopeOf } from './names.ts';
import { between, sizeOf, trace } from './paths.ts';
import { csv, table } from './rows.ts';
import { completions, found } from './searching.ts';
import { edgeTensors, tensorFacts } from './tensors.ts';
import { numbers } from './numbers.ts';
import { playback } from './playback.ts';
import { timelineAt, timelineInfo, timelineMark, timelineOverview, timelineSpan, timelineWindow } from './timeline/timeline.ts';
import { values } from './values.ts';
import type { View } from './view.ts';
import { deviceNames, reached, savings } from './work.ts';

interface Manner {
  counted?: boolean; // what operators cost and took is read before it is answered: the first picture does not wait for that
  moves?: boolean; // the buffers of the answer are handed over, not copied: nobody here needs them any more
}

const question = <A extends unknown[], R>(answer: (view: View, ...args: A) => R, { counted = false, moves = false }: Manner = {}) => ({
  answer,
  counted,
  moves,
});
/** A question whose answer counts by box: it says which scene's. */
const byBox = <A extends unknown[], R>(answer: (view: View, ...args: A) => R, manner: Manner = {}) =>
  question((view: View, ...args: A): OfScene<R> => ({ scene: view.scene, of: answer(view, ...args) }), manner);
const COUNTED: Manner = { counted: true };
const MOVES: Manner = { moves: true };

export const QUESTIONS = {
  // items and boxes
  boxes: byBox(boxes),
  pairs: byBox(pairs),
  paths: question(paths),
  items: question(items),
  details: question(details, COUNTED),
  children: question(children),
  labels: question(labels),
  kernels: question(kernels, COUNTED),
  kernel: question(kernel),
  find: question(found),
  completions: question(completions),
  trace: question(trace),
  between: question(between),
  sizeOf: question(sizeOf),
  scopeOf: question(scopeOf),
  hiddenOf: question(hiddenOf),
  // colours
  metric: byBox(metric, { ...COUNTED, ...MOVES }),
  kernelOf: byBox(kernelOf, MOVES),
  families: question(async (view): Promise<OfScene<Uint8Array>> => ({ of: await families(view), scene: view.scene }), {
    ...COUNTED,
    ...MOVES,
  }),
  saidOf: byBox(saidOf, { ...COUNTED, ...MOVES }),
  // the table
  table: question(table, COUNTED),
  csv: question(csv, COUNTED),
  // source, and the framework's own texts
  source: question((view, file: string) => view.sources.text(file)),
  lineNodes: question((view, file: string, line: number) => view.sources.nodesAt(file, line)),
  lines: question((view, file: string) => view.sources.lines(file)),
  files: question((view) => view.sources.files()),
  listing: question(listing),
  listingLines: question(listingLines),
  // other stages
  across: question(across),
  changes: question(changes),
  follow: question(follow),
  drawn: question(drawn),
  // costs and values
  costMap: question(costMap, COUNTED),
  memoryLine: question(memoryLine, COUNTED),
  alive: question(alive, COUNTED),
  steps: question(steps, COUNTED),
  roofs: question(roofs, COUNTED),
  reached: question(reached, COUNTED),
  deviceNames: question(deviceNames),
  savings: question(savings),
  totals: question(totals, COUNTED),
  // the measured profile
  timelineInfo: question(timelineInfo),
  timelineWindow: question(timelineWindow, MOVES),
  timelineOverview: question(timelineOverview, MOVES),
  timelineMark: question(timelineMark),
  timelineSpan: question(timelineSpan),
  timelineAt: question(timelineAt),
  values: question(values),
  numbers: question(numbers),
  compiling: question(compiling),
  edgeTensors: question(edgeTensors),
  tensorFacts: question(tensorFacts, COUNTED),
  summed: question(summed, COUNTED),
  playback: byBox(playback, COUNTED),
};

export function isQuestion(call: string): call is keyof typeof QUESTIONS {
  return Object.hasOwn(QUESTIONS, call);
}

type Answers = { [Q in keyof typeof QUESTIONS]: (typeof QUESTIONS)[Q]['answer'] };

/** The questions as they are asked: without the view, which the engine knows. */
export type Ask = { [Q in keyof Answers]: Answers[Q] extends (view: View, ...args: infer A) => infer R ? (...args: A) => R : never };

/** The same, for who gets the answer when it is there. */
export type Questions = { [Q in keyof Ask]: (...args: Parameters<Ask[Q]>) => Awaited<ReturnType<Ask[Q]>> };

/** All questions about the view that is the one at that time. */
export function asking(view: () => View): Ask {
  const bound = Object.entries(QUESTIONS).map(([name, { answer }]) => {
    const ask = answer as (view: View, ...args: unknown[]) => unknown;
    return [name, (...args: unknown[]) => ask(view(), ...args)];
  });
  return Object.fromEntries(bound) as Ask;
}

function listing({ listings }: View, kind: string): { text: string; pairs: Int32Array; places: Place[] } {
  return { text: listings.text(kind), pairs: listings.pairs(kind), places: listings.places(kind) };
}

function listingLines(view: View, kind: string, items: number[]): number[] {
  const { listings, bodies } = view;
  const nodes = new Set<number>();
  for (const item of items) {
    for (let node of inside(view, item)) {
      // A text tells about the outer graph: what is inside an operator is on that operator's line.
      while (bodies.bodyOf[node]! >= 0) node = bodies.owner[bodies.bodyOf[node]!]!;
      nodes.add(node);
    }
  }
  return listings.lines(kind, nodes);
}
