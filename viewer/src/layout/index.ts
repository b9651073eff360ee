export { layoutFlat } from './flat.ts';
export { layoutNested, LayoutCache } from './nested.ts';
export * from './metrics.ts';
export * from './types.ts';
