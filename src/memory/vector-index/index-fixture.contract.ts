import { createRandom } from '../../core/random.ts';
import { normals } from '../../../test/support/random-values.ts';
import { createNodeWasmPlatform } from '../../platform/node/kernels/wasm-platform.ts';
import { createWasmPackFactory } from '../../kernels/wasm/wasm-pack.ts';
import type { BlockFile } from './block-file.ts';
import { PAGE_BYTES } from './dirty-pages.ts';
import type { Metric, VectorHit, VectorIndex } from './types.ts';

/** Without relaxed SIMD, whose rounding is the processor's own: what is found can be counted exactly. */
export const wasm = createWasmPackFactory(createNodeWasmPlatform(['simd128']));

/** Vectors around a few centers; `order` by cluster or as drawn. */
export function clustered(count: number, dim: number, seed: number, numClusters = 20): Float32Array[] {
  const random = createRandom(seed);
  const centers = Array.from({ length: numClusters }, (_, i) => normals(dim, seed + i));
  return Array.from({ length: count }, (_, i) => {
    const center = centers[Math.floor(random.next() * numClusters)]!;
    return normals(dim, seed * 1000 + i + 1).map((value, d) => 0.6 * value + center[d]!);
  });
}

export const flat = (vectors: readonly Float32Array[]): Float32Array =>
  Float32Array.from(vectors.flatMap((vector) => [...vector]));

export const keysOf = (hits: readonly VectorHit[]): number[] => hits.map(({ key }) => key);

/** By definition, in double precision. */
export function plainScore(metric: Metric, x: Float32Array, y: Float32Array): number {
  const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
  if (metric === 'dot') return dot(x, y);
  if (metric === 'cosine') return dot(x, y) / Math.sqrt(dot(x, x) * dot(y, y));
  return -x.reduce((sum, value, i) => sum + (value - y[i]!) ** 2, 0);
}

/** The share of the exact results that another index finds, as a count: exact numbers make exact expectations. */
export function countFound(
  exact: VectorIndex,
  index: VectorIndex,
  queries: readonly Float32Array[],
  k = 10,
  ef = 64,
): number {
  return queries.reduce((sum, vector) => {
    const truth = new Set(keysOf(exact.search({ vector, k })));
    return sum + keysOf(index.search({ vector, k, ef })).filter((key) => truth.has(key)).length;
  }, 0);
}

interface Written {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** A file in memory. Blocks know their names; `crash` keeps what was flushed and does as `fate` says with the rest. */
export interface MemoryFile extends BlockFile {
  readonly writes: readonly number[];
  /** Calls of write and flush until one throws; null: never. */
  failAfter: number | null;
  crash(fate: (block: number) => 'written' | 'lost' | 'torn'): MemoryFile;
  damage(block: number): void;
  blocks(): readonly Written[];
  copyBlock(from: number, to: number): void;
}

export function createMemoryFile(initial: readonly Written[] = []): MemoryFile {
  const durable = [...initial];
  const now = [...initial];
  const unflushed = new Set<number>();
  const writes: number[] = [];
  const torn = { name: 'torn', bytes: new Uint8Array(0) };
  const file: MemoryFile = {
    blockBytes: PAGE_BYTES,
    get numBlocks() {
      return now.length;
    },
    writes,
    failAfter: null,
    read(block, name, into) {
      const found = now[block];
      if (found === undefined || found.name !== name) return false;
      into.fill(0).set(found.bytes.subarray(0, into.length));
      return true;
    },
    write(block, name, bytes) {
      count();
      if (block > now.length) throw new Error(`block ${block} of ${now.length}`);
      now[block] = { name, bytes: bytes.slice() };
      unflushed.add(block);
      writes.push(block);
    },
    flush() {
      count();
      for (const block of unflushed) durable[block] = now[block]!;
      unflushed.clear();
    },
    crash(fate) {
      const left = [...durable];
      for (const block of unflushed) {
        const what = fate(block);
        if (what === 'written') left[block] = now[block]!;
        else if (what === 'torn') left[block] = torn;
      }
      // A file that is longer than what was written has zeros between.
      return createMemoryFile(Array.from(left, (block) => block ?? torn));
    },
    damage: (block) => (now[block] = { ...now[block]!, name: 'damaged' }),
    blocks: () => now,
    copyBlock: (from, to) => (now[to] = now[from]!),
  };
  const count = (): void => {
    if (file.failAfter === null) return;
    if (file.failAfter === 0) throw new Error('the disk is gone');
    file.failAfter--;
  };
  return file;
}
