import { createRandom } from '../../src/core/random.ts';
import { createReferencePackFactory } from '../../src/kernels/reference/reference-pack.ts';
import { createMemoryFile } from '../../src/memory/vector-index/index-fixture.contract.ts';
import {
  createVectorIndex,
  openVectorIndex,
  PAGE_BYTES,
  type VectorIndexOptions,
} from '../../src/memory/vector-index/index.ts';
import type { FuzzTarget } from '../target.ts';

const DIM = 4;
const OPTIONS: VectorIndexOptions = { kernels: createReferencePackFactory(), dim: DIM, storage: 'int8', graphFrom: 8, m: 4, efConstruction: 8 }; // prettier-ignore
const vectorOf = (seed: number): Float32Array => {
  const random = createRandom(seed);
  return Float32Array.from({ length: DIM }, () => random.next() * 2 - 1);
};

async function createSaved() {
  const index = await createVectorIndex(OPTIONS);
  for (let key = 1; key <= 24; key++) index.add(key, vectorOf(key));
  const file = createMemoryFile();
  await index.save(file, 24);
  return file.blocks();
}
let saved: Awaited<ReturnType<typeof createSaved>> | null = null;

/**
 * The plain contents of a saved vector index, which normally only a holder of the key can change. An input is a list of changes:
 * block, position (two bytes), new byte.
 */
export const indexTarget: FuzzTarget = {
  name: 'index',
  words: ['\u0000\u0000\u0000\u00ff', '\u0001\u0000\u0000\u00ff', '\u0000\u0010\u0000\u00ff'],
  seeds: () => [Uint8Array.from([0, 0, 0, 0]), Uint8Array.from([0, 4, 0, 1, 1, 0, 0, 255])],
  async run(bytes) {
    saved ??= await createSaved();
    const blocks = saved.map(({ name, bytes: plain }) => ({ name, bytes: Uint8Array.from(plain) }));
    for (let at = 0; at + 4 <= Math.min(bytes.length, 256); at += 4) {
      const block = blocks[bytes[at]! % blocks.length]!.bytes;
      if (block.length > 0)
        block[(bytes[at + 1]! + 256 * bytes[at + 2]!) % Math.min(block.length, PAGE_BYTES)] = bytes[at + 3]!;
    }
    const opened = await openVectorIndex(OPTIONS, createMemoryFile(blocks));
    opened?.index.search({ vector: vectorOf(1), k: 3 });
  },
};
