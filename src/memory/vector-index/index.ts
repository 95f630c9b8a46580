export type { BlockFile } from './block-file.ts';
export * from './create-index.ts';
export { PAGE_BYTES } from './dirty-pages.ts';
export type { VectorIndexOptions } from './options.ts';
export * from './types.ts';
