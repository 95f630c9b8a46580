import { RuvLLMError } from '../../core/errors.ts';
import type { BlockFile } from './block-file.ts';
import { type ColumnName, COLUMNS, columnStrides } from './columns.ts';
import { PAGE_BYTES } from './dirty-pages.ts';
import type { GraphState } from './graph.ts';
import { type IndexHeader, readHeader, readPages, type SavedIndex } from './index-file.ts';
import type { ResolvedVectorIndexOptions } from './options.ts';
import type { OpenedState } from './vector-index.ts';
import { createVectorSpace, fittingCapacity, type VectorSpace } from './vector-space.ts';

interface OpenedIndex {
  readonly saved: SavedIndex;
  readonly space: VectorSpace;
  readonly state: OpenedState;
}

const SHAPE = ['dim', 'metric', 'storage', 'keepsExact', 'm'] as const;
/** Spare capacity, so that the first write does not move everything. */
const SPARE = 1.125;
/** From this size, memory is prepared by another thread: allocating it takes as long as reading the blocks. */
const LARGE_BYTES = 8 << 20;

function checkShape(header: IndexHeader, options: ResolvedVectorIndexOptions): void {
  for (const name of SHAPE) {
    if (header[name] === options[name]) continue;
    throw new RuvLLMError(
      'invalid_option',
      `the saved vector index has ${name} ${header[name]}, expected ${options[name]}`,
      { data: { option: name } },
    );
  }
}

function fail(what: string): never {
  throw new RuvLLMError('hash_mismatch', `the saved vector index is damaged: ${what}; it must be rebuilt`);
}

/** Kernels follow links unchecked: a wrong one would lead out of the arena. */
function checkLinks({ columns }: VectorSpace, header: IndexHeader): void {
  const { end, upperEnd, entry, topLevel, m } = header;
  const { links, upper, upperAt, levels } = columns;
  const check = (ids: Int32Array, length: number): void => {
    // One comparison for both bounds: -1 becomes 0, and lower values become large.
    for (let i = 0; i < length; i++) if ((ids[i]! + 1) >>> 0 > end) fail(`a link to ${ids[i]} of ${end}`);
  };
  check(links, end * 2 * m);
  check(upper, upperEnd * m);
  for (let slot = 0; slot < end; slot++) {
    const level = levels[slot]! - 1;
    if (level > 0 && !(upperAt[slot]! >= 0 && upperAt[slot]! + level <= upperEnd))
      fail(`level ${level} of slot ${slot}`);
  }
  if (entry < -1 || entry >= end || (entry >= 0 && levels[entry]! - 1 !== topLevel))
    fail(`an entry ${entry} of ${end}`);
}

/** Reads the newest saved index; null: none. */
export async function openSaved(options: ResolvedVectorIndexOptions, file: BlockFile): Promise<OpenedIndex | null> {
  const saved = readHeader(file);
  if (saved === null) return null;
  const { header } = saved;
  checkShape(header, options);
  const { end, hasGraph, upperEnd, m } = header;
  const strides = columnStrides(options, hasGraph);
  const sizeOf = (name: ColumnName): number => strides[name] * (name === 'upper' ? upperEnd : end);
  // Before memory is allocated for them: the pages must hold as many slots as the header says.
  for (const name of COLUMNS) {
    const numPages = saved.pages.get(name)!.length;
    if (sizeOf(name) > numPages * PAGE_BYTES) fail(`${sizeOf(name)} bytes of ${name} in ${numPages} pages`);
  }
  if (header.numExtra * 8 > saved.pages.get('extra')!.length * PAGE_BYTES) fail(`${header.numExtra} extra numbers`);
  const wanted = Math.max(options.capacity, Math.ceil(end * SPARE), Math.ceil((upperEnd * m) / 2));
  const space = await createVectorSpace(options, fittingCapacity(options, wanted, end, hasGraph), hasGraph);
  try {
    const parts = COLUMNS.map((name) => {
      const whole = space.bytesOf(name);
      const sizeBytes = sizeOf(name);
      if (sizeBytes > whole.length) fail(`${sizeBytes} bytes of ${name}`);
      if (sizeBytes > LARGE_BYTES) space.pack.prepare?.(space.columnAt[name], sizeBytes);
      return [name, whole.subarray(0, sizeBytes)] as const;
    });
    const extra = new Uint8Array(header.numExtra * 8);
    await readPages(file, saved, [...parts, ['extra', extra]]);
    const numbers = new Float64Array(extra.buffer);
    const numTwins = numbers[0] ?? 0;
    if (hasGraph) checkLinks(space, header);
    const graph: GraphState | null = hasGraph ? { entry: header.entry, topLevel: header.topLevel, upperEnd } : null;
    const waiting = [...numbers.subarray(1 + numTwins)];
    return { saved, space, state: { end, graph, twins: numbers.slice(1, 1 + numTwins), waiting } };
  } catch (error) {
    await space.pack.dispose();
    throw error;
  }
}
