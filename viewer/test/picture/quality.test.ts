import { expect, test } from 'vitest';
import { clips, crossings, lineLength, overlaps, segments, through } from '../../src/picture/quality.ts';

const lines = (...all: number[][]) => {
  const pointStart = [0];
  for (const l of all) pointStart.push(pointStart[pointStart.length - 1] + l.length / 2);
  return { pointStart, points: all.flat() };
};

test('a crossing is counted once, shared pieces once, touching ends never', () => {
  expect(crossings(segments(lines([0, 0, 10, 10], [10, 0, 0, 10])))).toBe(1);
  expect(crossings(segments(lines([0, 0, 10, 10], [0, 0, 10, 10], [10, 0, 0, 10])))).toBe(1);
  expect(crossings(segments(lines([0, 0, 5, 5], [5, 5, 10, 0])))).toBe(0);
  expect(crossings(segments(lines([0, 0, 10, 0], [5, 0, 5, 10])))).toBe(0); // ends on the other line
  expect(crossings(segments(lines([0, 5, 10, 5], [5, 0, 5, 1000])))).toBe(1);
});

test('many crossings, long and short pieces', () => {
  const all: number[][] = [];
  for (let i = 0; i < 20; i++) all.push([0, 10 * i + 5, 1000, 10 * i + 5], [10 * i + 5, 0, 10 * i + 5, 1000]);
  expect(crossings(segments(lines(...all)))).toBe(400);
});

test('length counts what overlaps once', () => {
  expect(lineLength(segments(lines([0, 0, 0, 10], [0, 0, 0, 10])))).toBe(10);
  expect(lineLength(segments(lines([0, 0, 0, 10], [0, 0, 0, 25])))).toBe(25);
  expect(lineLength(segments(lines([0, 0, 3, 4])))).toBe(5);
});

test('lines through boxes, and boxes on boxes', () => {
  const boxes = { n: 2, x: [0, 20], y: [0, 0], width: [10, 10], height: [10, 10] };
  expect(through(boxes, lines([5, -5, 5, 15]), () => false)).toBe(1);
  expect(through(boxes, lines([-5, 5, 40, 5]), () => false)).toBe(2);
  expect(through(boxes, lines([-5, 5, 40, 5]), (_, b) => b === 0)).toBe(1);
  expect(through(boxes, lines([0, -5, 0, 15], [5, 10, 5, 20]), () => false)).toBe(0); // along a side, and from a border
  expect(overlaps(boxes)).toBe(0);
  expect(overlaps({ ...boxes, x: [0, 9] })).toBe(1);
  expect(clips(0, 0, 10, 10, 4, 4, 6, 6)).toBe(true);
  expect(clips(0, 0, 10, 0, 4, 4, 6, 6)).toBe(false);
});
