import { createHash } from 'node:crypto';
import type { GgufFile, TensorInfo } from '../../gguf/types.ts';
import type { CommonComponents } from '../../memory/embedder/common-components.ts';
import { createStaticEmbedder, type StaticEmbedder, type TokenTable } from '../../memory/embedder/static-embedder.ts';
import { estimateFrequencies } from '../../memory/embedder/token-frequencies.ts';
import { dequantizeRow, rowBytes } from '../../quant/rows.ts';
import { createTokenizer } from '../../tokenizers/tokenizer.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';

/** Output rows are closer to meaning, and stored with more bits. */
const TABLES = ['output.weight', 'token_embd.weight'] as const;
/**
 * WordPiece vocabularies are ordered by word frequency. Merges are ordered by pair frequency, which falls less steeply; the
 * default is for them.
 */
const SMOOTHINGS: Readonly<Record<string, number>> = { bert: 3e-5 };
/** Cache of unpacked rows: reading and unpacking is half of an embedding's time. */
const KEPT_BYTES = 8 << 20;
/** Rows hashed for the fingerprint: hashing the whole table would take seconds at each start. */
const HASHED_ROWS = 1024;

/** The static embedder of a model file; reads token rows on demand, without an engine. */
export function openTableEmbedder(
  path: string,
  common?: CommonComponents,
): StaticEmbedder & { close(): Promise<void> } {
  const file = openModelFile(path);
  try {
    const table = file.tensor(TABLES.find((name) => file.tensors.has(name)) ?? 'token_embd.weight');
    const pieces = file.metadata.strings('tokenizer.ggml.tokens');
    const tokenizer = createTokenizer(file.metadata);
    const smoothing = SMOOTHINGS[file.metadata.string('tokenizer.ggml.model', '')];
    const embedder = createStaticEmbedder({
      table: readTable(file, table),
      encode: (text) => tokenizer.encode(text),
      modelHash: hashTable(file, table, pieces),
      common,
      frequencies: estimateFrequencies(pieces, table.dims[1] ?? 0),
      options: smoothing === undefined ? {} : { smoothing },
      sha256: (bytes) => createHash('sha256').update(bytes).digest(),
    });
    return { ...embedder, close: async () => file.source.close() };
  } catch (error) {
    file.source.close();
    throw error;
  }
}

function readTable(file: GgufFile, tensor: TensorInfo): TokenTable {
  const [width, numRows] = tensor.dims as readonly [number, number];
  const bytes = new Uint8Array(rowBytes(tensor.type, width));
  const numKept = Math.max(1, Math.min(numRows, Math.floor(KEPT_BYTES / (4 * width))));
  const kept = new Float32Array(numKept * width);
  const keptIds = new Int32Array(numKept).fill(-1);
  return {
    width,
    numRows,
    readRow(id, out) {
      const place = id % numKept;
      const row = kept.subarray(place * width, (place + 1) * width);
      if (keptIds[place] !== id) {
        keptIds[place] = -1; // a failed read must not leave half a row
        file.readTensor(tensor, bytes, id * bytes.length);
        dequantizeRow(tensor.type, bytes, row, width);
        keptIds[place] = id;
      }
      out.set(row);
    },
  };
}

function hashTable(file: GgufFile, tensor: TensorInfo, pieces: readonly string[]): string {
  const { name, type, dims } = tensor;
  const [width, numRows] = dims as readonly [number, number];
  const hash = createHash('sha256').update(JSON.stringify([name, type, dims]));
  const bytes = new Uint8Array(rowBytes(type, width));
  const step = Math.max(1, numRows / HASHED_ROWS);
  for (let row = 0; row < numRows; row += step) {
    file.readTensor(tensor, bytes, Math.floor(row) * bytes.length);
    hash.update(bytes);
  }
  return hash.update(JSON.stringify(pieces)).digest('hex');
}
