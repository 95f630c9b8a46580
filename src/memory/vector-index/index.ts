export type { BlockFile } from './block-file.ts';
export * from './create-index.ts';
export { PAGE_BYTES } from './dirty-pages.ts';
export { SMALL_GRAPH, type VectorIndexOptions, type VectorStorage } from './options.ts';
export * from './types.ts';
