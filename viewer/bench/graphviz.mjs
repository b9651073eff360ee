// Graphviz as a layout engine: boxes and gaps in, boxes and curves out. SVG, because its numbers keep two decimals at
// any size, where the other text formats keep five digits.

const INCH = 72;

/** The graph for dot: boxes of fixed size without text, lines without arrows, so that only the layout is compared. */
export function writeDot(flat, edges, gapX, gapY) {
  const out = [
    'digraph g {',
    `graph [rankdir=TB, nodesep=${gapX / INCH}, ranksep=${gapY / INCH}];`,
    'node [shape=box, fixedsize=true, label=""];',
    'edge [dir=none];',
  ];
  for (let i = 0; i < flat.n; i++) out.push(`n${i} [width=${flat.width[i] / INCH}, height=${flat.height[i] / INCH}];`);
  for (const [s, t] of edges) out.push(`n${s} -> n${t};`);
  out.push('}');
  return out.join('\n');
}

/** Boxes by node and curves (control points: one, then three per piece) by edge, from what dot drew. */
export function readSvg(svg, n, edges) {
  const numbers = (text) => text.match(/-?\d+(?:\.\d+)?/g).map(Number);
  const boxes = { x: new Float64Array(n), y: new Float64Array(n), width: new Float64Array(n), height: new Float64Array(n) };
  let nodes = 0;
  for (const [, id, points] of svg.matchAll(/<title>n(\d+)<\/title>\s*<polygon[^>]* points="([^"]+)"/g)) {
    const p = numbers(points);
    const xs = p.filter((_, i) => i % 2 === 0),
      ys = p.filter((_, i) => i % 2 === 1);
    boxes.x[id] = Math.min(...xs);
    boxes.y[id] = Math.min(...ys);
    boxes.width[id] = Math.max(...xs) - boxes.x[id];
    boxes.height[id] = Math.max(...ys) - boxes.y[id];
    nodes++;
  }
  const found = new Map();
  for (const [, s, t, d] of svg.matchAll(/<title>n(\d+)&#45;&gt;n(\d+)<\/title>\s*<path[^>]* d="([^"]+)"/g)) {
    const p = numbers(d);
    found.set(
      `${s} ${t}`,
      Array.from({ length: p.length / 2 }, (_, i) => ({ x: p[2 * i], y: p[2 * i + 1] })),
    );
  }
  const curves = edges.map(([s, t]) => found.get(`${s} ${t}`));
  if (nodes !== n || curves.includes(undefined)) throw new Error(`dot drew ${nodes} of ${n} boxes, ${found.size} of ${edges.length} lines`);
  const [, width, height] = svg.match(/<svg width="(\d+)pt" height="(\d+)pt"/).map(Number);
  return { boxes, curves, width, height };
}

/** A chain of cubic curves as straight pieces that stay within `far` of it. Straight stretches stay one piece. */
export function flatten(curve, far = 0.25) {
  const out = [curve[0]];
  for (let i = 0; i + 3 < curve.length; i += 3) {
    const [a, b, c, d] = curve.slice(i, i + 4);
    // the second differences bound how far a cubic leaves its chords
    const bend = Math.max(Math.hypot(a.x - 2 * b.x + c.x, a.y - 2 * b.y + c.y), Math.hypot(b.x - 2 * c.x + d.x, b.y - 2 * c.y + d.y));
    const steps = Math.max(1, Math.ceil(Math.sqrt((0.75 * bend) / far)));
    for (let k = 1; k <= steps; k++) {
      const t = k / steps,
        u = 1 - t;
      const [p, q, r, s] = [u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t];
      out.push({ x: p * a.x + q * b.x + r * c.x + s * d.x, y: p * a.y + q * b.y + r * c.y + s * d.y });
    }
  }
  return out;
}
