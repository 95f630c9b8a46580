import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** Another library with the same vectors, keys 1 to n, cosine, one thread. */
export interface VectorPeer {
  readonly name: string;
  /** 0: read from disk. */
  readonly buildMs: number;
  search(query: number): readonly number[];
}

export interface PeerData {
  readonly dim: number;
  readonly vectors: Float32Array;
  readonly queries: Float32Array;
  readonly m: number;
  readonly efConstruction: number;
  readonly ef: number;
  readonly k: number;
  /** Folder of graphs kept between runs, named by the data. */
  readonly cache: string;
}

const require = createRequire(join(process.cwd(), '.cache/vector-peers/'));

interface Usearch {
  Index: new (options: object) => {
    add(keys: BigUint64Array, vectors: Float32Array, threads: number): void;
    search(vector: Float32Array, k: number, threads: number): { keys: BigUint64Array };
    save(path: string): void;
    load(path: string): void;
  };
}

export function openUsearch({ dim, vectors, queries, m, efConstruction, ef, k, cache }: PeerData): VectorPeer {
  const { Index } = require('usearch') as Usearch;
  const index = new Index({
    dimensions: dim,
    metric: 'cos',
    quantization: 'f32',
    multi: false,
    connectivity: m,
    expansion_add: efConstruction,
    expansion_search: ef,
  });
  const path = `${cache}.usearch`;
  const began = performance.now();
  const isKept = existsSync(path);
  if (isKept) index.load(path);
  else {
    index.add(BigUint64Array.from({ length: vectors.length / dim }, (_, i) => BigInt(i + 1)), vectors, 1); // prettier-ignore
    index.save(path);
  }
  const buildMs = isKept ? 0 : performance.now() - began;
  const search = (query: number): number[] =>
    Array.from(index.search(queries.subarray(query * dim, (query + 1) * dim), k, 1).keys, Number);
  return { name: 'usearch', buildMs, search };
}

interface Hnswlib {
  HierarchicalNSW: new (
    space: string,
    dim: number,
  ) => {
    initIndex(most: number, m: number, efConstruction: number, seed: number): void;
    addPoint(vector: number[], key: number): void;
    searchKnn(vector: number[], k: number): { neighbors: number[] };
    setEf(ef: number): void;
    writeIndexSync(path: string): void;
    readIndexSync(path: string): void;
  };
}

export function openHnswlib({ dim, vectors, queries, m, efConstruction, ef, k, cache }: PeerData): VectorPeer {
  const { HierarchicalNSW } = require('hnswlib-node') as Hnswlib;
  const index = new HierarchicalNSW('cosine', dim);
  const path = `${cache}.hnswlib`;
  const began = performance.now();
  const isKept = existsSync(path);
  if (isKept) index.readIndexSync(path);
  else {
    const count = vectors.length / dim;
    index.initIndex(count, m, efConstruction, 1);
    for (let i = 0; i < count; i++) index.addPoint(Array.from(vectors.subarray(i * dim, (i + 1) * dim)), i + 1);
    index.writeIndexSync(path);
  }
  index.setEf(ef);
  const buildMs = isKept ? 0 : performance.now() - began;
  // It takes only arrays: created in advance, so that this is not measured.
  const queryArrays = Array.from({ length: queries.length / dim }, (_, i) => Array.from(queries.subarray(i * dim, (i + 1) * dim))); // prettier-ignore
  return { name: 'hnswlib-node', buildMs, search: (query) => index.searchKnn(queryArrays[query]!, k).neighbors };
}
