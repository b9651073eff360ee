// Cost by module: every module as large as its share, with what is inside it. One selection with the graph.

import { textOn, type Theme } from '../draw/theme.ts';
import type { Figure } from '../engine/cost.ts';
import { percent, secondsText, shortNumber, bytesText } from '../text/figures.ts';
import type { CostCell, CostMap } from '../engine/messages.ts';
import { cellAt, HEADER } from '../engine/treemap.ts';
import type { Words } from '../state/words.ts';
import { BOLD, Chart, fitted, FONT } from '../widgets/chart.ts';
import { h, replace } from '../widgets/dom.ts';

/** What may be mapped; `time` where it was measured. */
export const FIGURES: Figure[] = ['macs', 'other', 'parameters', 'bytes', 'activations', 'time'];

export interface TreemapCalls {
  map(figure: Figure, root: number, width: number, height: number): Promise<CostMap | null>;
  select(items: number[]): void;
  hover(items: number[]): void;
  isTimed(): boolean;
  run(work: Promise<unknown>): void;
}

export class Treemap {
  readonly head = h('div', { class: 'chart-head' });
  private chart = new Chart(() => this.calls.run(this.show()));
  readonly element = this.chart.element;
  figure: Figure = 'macs';
  map: CostMap | null = null;
  private root = -1;
  private key = '';
  private marked = new Set<number>(); // cells
  private hovered = -1;
  private selection: number[] = [];
  private path: number[] = [];
  private theme!: Theme;

  constructor(
    private calls: TreemapCalls,
    private words: () => Words,
  ) {
    const { canvas } = this.chart;
    canvas.addEventListener('mousemove', (event) => this.point(...this.chart.place(event)));
    canvas.addEventListener('mouseleave', () => this.point(-1, -1));
    canvas.addEventListener('click', (event) => this.pick(cellAt(this.cells, ...this.chart.place(event))));
    canvas.addEventListener('dblclick', (event) => this.enter(cellAt(this.cells, ...this.chart.place(event))));
    canvas.addEventListener('keydown', (event) => this.onKey(event));
  }

  private get cells(): CostCell[] {
    return this.map?.cells ?? [];
  }

  /** `key` distinguishes graphs: another one is mapped from its root. */
  reset(key: string): void {
    if (key !== this.key) this.root = -1;
    this.key = key;
  }

  async show(theme = this.theme): Promise<void> {
    this.theme = theme;
    if (!this.chart.measure()) return;
    this.map = await this.calls.map(this.figure, this.root, this.chart.width, this.chart.height);
    this.hovered = -1;
    this.redrawHead();
    this.mark(this.selection, this.path);
  }

  /** What is selected, or (`path`, from the outside in) the innermost of what is around it that is drawn. */
  mark(selection: number[], path: number[]): void {
    this.selection = selection;
    this.path = path;
    this.marked.clear();
    const place = new Map<number, number>();
    this.cells.forEach((cell, i) => {
      if (cell.kind !== 'rest') for (const item of [...cell.also, cell.item]) place.set(item, i);
    });
    for (const item of selection) if (place.has(item)) this.marked.add(place.get(item)!);
    if (!this.marked.size && selection.length === 1) {
      const near = [...path].reverse().find((item) => (place.get(item) ?? 0) > 0);
      if (near !== undefined) this.marked.add(place.get(near)!);
    }
    this.draw();
  }

  text(value: number): string {
    return figureWithUnit(this.figure, value);
  }

  private redrawHead(): void {
    const words = this.words();
    const { map } = this;
    const zoom = (item: number) => {
      this.root = item;
      this.calls.run(this.show());
    };
    const path = map?.path ?? [];
    const least = map?.unknown ? '≥ ' : '';
    replace(
      this.head,
      h(
        'label',
        { class: 'pick' },
        h(
          'select',
          {
            'aria-label': words.costs.metric,
            onchange: (event: Event) => {
              this.figure = (event.target as HTMLSelectElement).value as Figure;
              this.calls.run(this.show());
              this.changed();
            },
          },
          ...FIGURES.filter((figure) => figure !== 'time' || this.calls.isTimed()).map((figure) =>
            h('option', { value: figure, selected: figure === this.figure }, words.costs.figures[figure]),
          ),
        ),
      ),
      path.length
        ? h(
            'nav',
            { class: 'crumbs', 'aria-label': words.costs.path },
            h('button', { class: 'link', onclick: () => zoom(-1) }, words.costs.all),
            ...path.flatMap((ref) => [h('span', {}, '/'), h('button', { class: 'link', onclick: () => zoom(ref.item) }, ref.label)]),
          )
        : null,
      h('span', { class: 'grow' }),
      map && h('b', { class: 'chart-total', title: map.total.toLocaleString() }, `${least}${this.text(map.total)}`),
      map?.unknown
        ? h(
            'span',
            { class: 'chart-warning', title: map.unknownOps.join('\n') },
            words.costs.unknownOps(map.unknown, map.unknownOps[0] ?? ''),
          )
        : null,
    );
    const sum = map ? `${words.costs.figures[this.figure]}: ${least}${this.text(map.total)}` : '';
    this.chart.canvas.setAttribute('aria-label', `${words.costs.views.treemap}. ${sum}. ${words.costs.mapKeys}`);
  }

  changed: () => void = () => undefined;

  // -- what the user does ---------------------------------------------------------------------------

  private point(x: number, y: number): void {
    const cell = x < 0 ? -1 : cellAt(this.cells, x, y);
    if (cell === this.hovered && cell < 0) return;
    const other = cell !== this.hovered;
    this.hovered = cell;
    if (cell >= 0) this.describe(cell, x, y);
    else this.chart.quiet();
    if (!other) return;
    this.draw();
    this.calls.hover(cell > 0 ? [this.cells[cell]!.item] : []);
  }

  private describe(place: number, x: number, y: number): void {
    const cell = this.cells[place]!;
    const words = this.words();
    const titles: string[] = [];
    for (let at = place; at > 0; at = this.cells[at]!.around) if (this.cells[at]!.kind !== 'rest') titles.unshift(this.cells[at]!.title);
    const around = cell.around >= 0 ? this.cells[cell.around]! : null;
    this.chart.note(x, y, [
      titles.join(' / ') || words.costs.all,
      [cell.kind === 'rest' ? words.costs.rest(cell.count) : cell.cls, this.text(cell.figure)].filter(Boolean).join(' · '),
      [
        `${percent(cell.figure, this.map!.total)} ${words.costs.ofAll}`,
        around && cell.around > 0 ? `${percent(cell.figure, around.figure)} ${words.costs.ofParent(around.title)}` : '',
      ]
        .filter(Boolean)
        .join(', '),
    ]);
  }

  private pick(place: number): void {
    const cell = this.cells[place];
    if (cell) this.calls.select(place > 0 ? [cell.item] : []);
  }

  /** Map one module alone. */
  private enter(place: number): void {
    let at = place;
    while (at > 0 && this.cells[at]!.kind !== 'group') at = this.cells[at]!.around;
    if (at < 0 || !this.cells[at]) return;
    this.root = at > 0 ? this.cells[at]!.item : -1;
    this.calls.run(this.show());
  }

  private leave(): void {
    const path = this.map?.path ?? [];
    if (!path.length) return;
    this.root = path.at(-2)?.item ?? -1;
    this.calls.run(this.show());
  }

  private onKey(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const at = [...this.marked][0] ?? 0;
    const { cells } = this;
    const real = (place: number) => cells[place]!.kind !== 'rest';
    const siblings = cells.flatMap((cell, i) => (cell.around === cells[at]?.around && real(i) ? [i] : []));
    const children = cells.flatMap((cell, i) => (cell.around === at && real(i) ? [i] : []));
    const next: Record<string, number | undefined> = {
      ArrowRight: siblings[siblings.indexOf(at) + 1],
      ArrowLeft: siblings[siblings.indexOf(at) - 1],
      ArrowUp: cells[at]?.around,
      ArrowDown: children[0],
    };
    if (event.key in next) {
      const to = next[event.key] ?? -1;
      if (to > 0) {
        this.pick(to);
        this.describe(to, cells[to]!.x, cells[to]!.y + HEADER);
      }
    } else if (event.key === 'Enter') this.enter(at);
    else if (event.key === 'Backspace') this.leave();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // -- drawing --------------------------------------------------------------------------------------

  draw(): void {
    if (!this.chart.width || !this.theme) return;
    const context = this.chart.begin();
    const { theme } = this;
    const depth: number[] = [];
    const open = new Set(this.cells.map((cell) => cell.around));
    this.cells.forEach((cell, i) => {
      depth[i] = cell.around < 0 ? 0 : depth[cell.around]! + 1;
      if (i === 0) return;
      const phase = theme.phases[cell.phase] ?? theme.phases[5]!;
      const isLeaf = !open.has(i);
      const [x, y, w, height] = [cell.x + 0.5, cell.y + 0.5, cell.width - 1, cell.height - 1];
      context.fillStyle = cell.kind === 'rest' ? theme.panels[3]! : isLeaf ? phase.flat : depth[i]! % 2 ? phase.tint : theme.panels[0]!;
      context.strokeStyle = phase.border;
      context.lineWidth = 1;
      context.beginPath();
      context.roundRect(x, y, Math.max(0, w), Math.max(0, height), Math.max(0, Math.min(3, w / 4, height / 4)));
      context.fill();
      if (w > 3 && height > 3 && !isLeaf) context.stroke();
      this.label(context, cell, !isLeaf, isLeaf ? textOn(theme, phase.flat) : theme.text);
    });
    this.ring(
      context,
      [this.hovered].filter((i) => i > 0),
      theme.hover,
      1.5,
    );
    this.ring(
      context,
      [...this.marked].filter((i) => i > 0),
      theme.selected,
      2.5,
    );
  }

  private label(context: CanvasRenderingContext2D, cell: CostCell, open: boolean, colour: string): void {
    const isGroup = cell.kind === 'group';
    if (cell.kind === 'rest' || cell.width < 26 || cell.height < 13) return;
    const room = cell.width - 10;
    context.fillStyle = colour;
    context.font = isGroup ? BOLD : FONT;
    const title = fitted(context, cell.title, room);
    if (!title) return;
    const two = cell.height >= 34; // room for a second line
    const y = open ? cell.y + HEADER / 2 + 1 : cell.y + Math.min(cell.height / 2, 12);
    context.fillText(title, cell.x + 5, y);
    const used = context.measureText(title).width;
    context.font = FONT;
    context.globalAlpha = 0.72;
    const space = open ? room - used - 14 : two ? room : 0;
    const said = this.text(cell.figure);
    const figure = [`${said} · ${percent(cell.figure, this.map!.total)}`, said].find((text) => context.measureText(text).width < space);
    if (figure) context.fillText(figure, cell.x + 5 + (open ? used + 8 : 0), open ? y : y + 14);
    context.globalAlpha = 1;
  }

  private ring(context: CanvasRenderingContext2D, places: number[], colour: string, width: number): void {
    context.strokeStyle = colour;
    context.lineWidth = width;
    for (const place of places) {
      const cell = this.cells[place];
      if (cell)
        context.strokeRect(cell.x + width / 2, cell.y + width / 2, Math.max(1, cell.width - width), Math.max(1, cell.height - width));
    }
  }
}

function figureWithUnit(figure: Figure, value: number): string {
  if (figure === 'bytes' || figure === 'read' || figure === 'written' || figure === 'activations') return bytesText(value);
  if (figure === 'time') return secondsText(value);
  const number = shortNumber(value);
  if (figure === 'parameters') return number;
  return `${number}${/[a-z]$/i.test(number) ? '' : ' '}${figure === 'macs' ? 'MACs' : 'FLOPs'}`;
}
