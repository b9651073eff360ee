// Changes of the page wait for the next frame and are made once, however often they were asked for. Reading a size
// between two changes makes the browser lay out the page each time, and that is what a page stands still for.

const waiting = new Map<object, () => void>();
let frame = 0;

/** Do this in the next frame; asked again for the same thing before that, it is done once. */
export function later(thing: object, work: () => void): void {
  waiting.delete(thing); // its turn is after what was asked for meanwhile
  waiting.set(thing, work);
  if (frame === 0) frame = requestAnimationFrame(run);
}

/** True while something waits. */
export function isLater(): boolean {
  return frame !== 0;
}

/** Let the browser take what came in and show what is drawn so far. A page in the background has no frames. */
export function breath(): Promise<void> {
  return new Promise((resolve) => {
    if (document.hidden) setTimeout(resolve, 0);
    else requestAnimationFrame(() => setTimeout(resolve, 0));
  });
}

function run(): void {
  frame = 0;
  const now = [...waiting.values()];
  waiting.clear();
  for (const work of now) work();
}
