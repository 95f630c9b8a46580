import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Embedder } from '../../../src/memory/embedder-types.ts';
import type { Memory } from '../../../src/memory/memory.ts';
import { importBuilt } from '../../support/dist.ts';

const { openNodeMemory } = await importBuilt<typeof import('../../../src/node/memory/open-memory.ts')>('node/memory/open-memory'); // prettier-ignore
const { openModelEmbedder } = await importBuilt<typeof import('../../../src/node/memory/model-embedder.ts')>('node/memory/model-embedder'); // prettier-ignore
const { findEncoder } = await importBuilt<typeof import('../../../src/node/memory/find-encoder.ts')>('node/memory/find-encoder'); // prettier-ignore

/** The default encoder; each text is embedded once. */
export async function openEmbedder(): Promise<Embedder> {
  const inner = openModelEmbedder(await findEncoder());
  const vectors = new Map<string, Promise<Float32Array>>();
  return {
    fingerprint: inner.fingerprint,
    dim: inner.dim,
    async embed(text) {
      const cached = vectors.get(text) ?? Promise.resolve(inner.embed(text));
      vectors.set(text, cached);
      return (await cached).slice();
    },
    close: async () => inner.close?.(),
  };
}

/** Runs with a new memory on disk. */
export async function withMemory<T>(embedder: Embedder, run: (memory: Memory) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-bench-agents-'));
  const masterKey = { key: new Uint8Array(32).fill(5) };
  const { close: _, ...shared } = embedder; // closed by its opener, not with each memory
  const memory = await openNodeMemory({ place: join(folder, 'memory'), masterKey, embedder: shared, report: console.error }); // prettier-ignore
  try {
    return await run(memory);
  } finally {
    await memory.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
