// Where the lanes of the timeline stand, and which times are in view.

import type { TimelineInfo } from '../../engine/timeline/timeline.ts';

export const GUTTER = 168; // the names of the tracks
export const OVERVIEW = 30;
export const RULER = 20;
export const TOP = OVERVIEW + RULER;
const HEIGHT = { phase: 6, module: 16, event: 18 } as const;
const BETWEEN = 10; // tracks
const LEAST_SPAN = 1e-8; // seconds

export interface LanePlace {
  y: number; // of the whole, from the top of the first track
  height: number;
}

export interface TrackPlace {
  track: number;
  y: number;
  height: number;
}

/** What is in view: times along, lanes down. */
export class View {
  lanes: LanePlace[] = [];
  tracks: TrackPlace[] = [];
  from = 0;
  to = 1;
  scroll = 0;
  width = 0; // of the times
  height = 0; // of the lanes
  private whole = 1;
  private content = 0;

  set(info: TimelineInfo): void {
    this.whole = Math.max(info.span, LEAST_SPAN);
    this.lanes = [];
    this.tracks = [];
    let y = BETWEEN / 2;
    info.lanes.forEach((lane, i) => {
      if (info.lanes[i - 1]?.track !== lane.track) {
        if (i) y += BETWEEN;
        this.tracks.push({ track: lane.track, y, height: 0 });
      }
      const height = HEIGHT[lane.kind];
      this.lanes.push({ y, height });
      y += height + 1;
      const track = this.tracks.at(-1)!;
      track.height = y - track.y;
    });
    this.content = y + BETWEEN;
  }

  get span(): number {
    return this.to - this.from;
  }

  get isZoomed(): boolean {
    return this.from > 0 || this.to < this.whole;
  }

  x(time: number): number {
    return GUTTER + ((time - this.from) / this.span) * this.width;
  }

  time(x: number): number {
    return this.from + ((x - GUTTER) / this.width) * this.span;
  }

  /** Times as near as possible to these: no shorter than can be told apart, and inside of the run. */
  show(from: number, to: number): void {
    const span = Math.max(LEAST_SPAN, Math.min(this.whole, to - from));
    const middle = (from + to) / 2;
    this.from = Math.max(0, Math.min(this.whole - span, middle - span / 2));
    this.to = this.from + span;
  }

  /** Times around some, with room beside them. */
  fit(from: number, to: number): void {
    const room = Math.max((to - from) * 0.08, LEAST_SPAN * 4);
    this.show(from - room, to + room);
  }

  zoom(x: number, factor: number): void {
    const at = this.time(Math.max(GUTTER, x));
    const share = (at - this.from) / this.span;
    const span = Math.max(LEAST_SPAN, Math.min(this.whole, this.span * factor));
    this.show(at - share * span, at + (1 - share) * span);
  }

  pan(pixels: number): void {
    const by = (pixels / this.width) * this.span;
    this.show(this.from + by, this.to + by);
  }

  get mostScroll(): number {
    return Math.max(0, this.content - this.height);
  }

  scrollBy(pixels: number): void {
    this.scroll = Math.max(0, Math.min(this.mostScroll, this.scroll + pixels));
  }

  /** The lanes that are in view. */
  get shown(): [first: number, last: number] {
    let first = 0;
    while (first < this.lanes.length && this.lanes[first]!.y + this.lanes[first]!.height < this.scroll) first++;
    let last = first;
    while (last < this.lanes.length && this.lanes[last]!.y < this.scroll + this.height) last++;
    return [first, last];
  }

  laneAt(y: number): number {
    const at = y - TOP + this.scroll;
    return y < TOP ? -1 : this.lanes.findIndex((lane) => at >= lane.y - 0.5 && at < lane.y + lane.height + 0.5);
  }

  /** The top of a lane on the canvas. */
  y(lane: number): number {
    return TOP + (this.lanes[lane]?.y ?? 0) - this.scroll;
  }

  reveal(lane: number): void {
    const place = this.lanes[lane];
    if (!place) return;
    if (place.y < this.scroll) this.scroll = Math.max(0, place.y - BETWEEN);
    else if (place.y + place.height > this.scroll + this.height)
      this.scroll = Math.min(this.mostScroll, place.y + place.height - this.height + BETWEEN);
  }
}
