// Where an operator was called: the user's frames, and the framework's own, which are folded.

import { SPELLINGS } from '../wire/facts.ts';

export interface Frame {
  file: string;
  line: number;
  fn: string;
}

export function isFramework(file: string): boolean {
  return SPELLINGS.FRAMEWORK_FILE.test(file);
}

export interface Stack {
  user: Frame[]; // innermost first
  all: { frame: Frame; framework: boolean }[]; // innermost first
  folded: number; // framework frames
}

/** Frames come outermost first, as Python prints them; they are shown innermost first. */
export function stackOf(frames: readonly Frame[]): Stack {
  const all = [...frames].reverse().map((frame) => ({ frame, framework: isFramework(frame.file) }));
  const user = all.filter((entry) => !entry.framework).map((entry) => entry.frame);
  return { user, all, folded: all.length - user.length };
}

/** The frame at which the source opens: the innermost of the user's whose text is at hand, else the innermost of the user's. */
export function openingFrame(frames: readonly Frame[], hasText: (file: string) => boolean): Frame | undefined {
  const { user, all } = stackOf(frames);
  return user.find((frame) => hasText(frame.file)) ?? user[0] ?? all[0]?.frame;
}
