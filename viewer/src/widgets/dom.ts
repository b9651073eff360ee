// Making elements. Text is always set as text, so no name in a file can become markup.

type Child = Node | string | null | undefined | false;
type Props = Record<string, unknown>;

const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Text without marks that turn the direction of writing: with them a name can look like another one. */
export function straight(text: string): string {
  return text.replace(TURNING, '\ufffd');
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false || value === null) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value as EventListener);
    else if (name === 'class') element.className = String(value);
    else if (name === 'style') element.style.cssText = String(value);
    else element.setAttribute(name, value === true ? '' : straight(String(value)));
  }
  for (const child of children) if (child || child === '') element.append(typeof child === 'string' ? straight(child) : child);
  return element;
}

/** Other children. The control that had the focus is known by its `data-key`: the new one of the same key gets it. */
export function replace(element: Element, ...children: Child[]): void {
  const shown = children.filter((child): child is Node | string => Boolean(child));
  const focused = document.activeElement;
  const held = focused && focused !== element && element.contains(focused) ? focused : null;
  element.replaceChildren(...shown.map((child) => (typeof child === 'string' ? straight(child) : child)));
  if (!held || held === document.activeElement) return;
  if (element.contains(held)) (held as HTMLElement).focus({ preventScroll: true });
  else refocus(element as HTMLElement, held.getAttribute('data-key'));
}

/** Without a successor, the focus stays in the place: Tab goes on from there and not from the top of the page. */
function refocus(place: HTMLElement, key: string | null): void {
  const next = key === null ? null : place.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
  if (!next && !place.hasAttribute('tabindex')) place.tabIndex = -1;
  (next ?? place).focus({ preventScroll: true });
}

/** Long names are cut in the middle, where they differ least. */
export function short(text: string, most = 80): string {
  return text.length <= most ? text : `${text.slice(0, Math.ceil(most * 0.6))}…${text.slice(-Math.floor(most * 0.35))}`;
}

/** Rows of a definition list. */
export function pairs(rows: [string, string][]): HTMLElement[] {
  return rows.flatMap(([key, text]) => [h('dt', {}, key), h('dd', {}, short(text, 400))]);
}
