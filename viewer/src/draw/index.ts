// What the worker needs of drawing: no DOM behind it.
export { buffersOf, buildIndex } from './spatial.ts';
export type { SceneIndex } from './spatial.ts';
