import { createHash } from 'node:crypto';
import { createRandom } from '../../src/core/random.ts';
import type { StaticEmbedder } from '../../src/memory/embedder/static-embedder.ts';
import { importBuilt } from './dist.ts';

const WIDTH = 768;

/** The control: a model's tokens and frequencies with random rows, which reflect only shared tokens. */
export async function openRandomRows(path: string): Promise<StaticEmbedder> {
  const { openModelFile } = await importBuilt<typeof import('../../src/platform/node/files/open-model-file.ts')>('platform/node/files/open-model-file'); // prettier-ignore
  const { createTokenizer } = await importBuilt<typeof import('../../src/tokenizers/tokenizer.ts')>('tokenizers/tokenizer'); // prettier-ignore
  const { createStaticEmbedder } = await importBuilt<typeof import('../../src/memory/embedder/static-embedder.ts')>('memory/embedder/static-embedder'); // prettier-ignore
  const { estimateFrequencies } = await importBuilt<typeof import('../../src/memory/embedder/token-frequencies.ts')>('memory/embedder/token-frequencies'); // prettier-ignore
  const file = openModelFile(path);
  const pieces = file.metadata.strings('tokenizer.ggml.tokens');
  const tokenizer = createTokenizer(file.metadata);
  const isWordPiece = file.metadata.string('tokenizer.ggml.model', '') === 'bert';
  file.source.close();
  const random = createRandom(9);
  const rows = Float32Array.from({ length: WIDTH * pieces.length }, () => random.next() - 0.5);
  return createStaticEmbedder({
    table: {
      width: WIDTH,
      numRows: pieces.length,
      readRow: (id, out) => out.set(rows.subarray(id * WIDTH, (id + 1) * WIDTH)),
    },
    encode: (text) => tokenizer.encode(text),
    modelHash: 'none',
    sha256: (bytes) => createHash('sha256').update(bytes).digest(),
    frequencies: estimateFrequencies(pieces, pieces.length),
    options: { numComponents: 0, ...(isWordPiece ? { smoothing: 3e-5 } : {}) },
  });
}
