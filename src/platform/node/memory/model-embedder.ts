import { createHash } from 'node:crypto';
import type { GgufFile, TensorInfo } from '../../../gguf/types.ts';
import {
  createStaticEmbedder,
  type StaticEmbedder,
  type TokenTable,
} from '../../../memory/embedder/static-embedder.ts';
import { dequantizeRow, rowBytes } from '../../../quant/rows.ts';
import { createTokenizer } from '../../../tokenizers/tokenizer.ts';
import { openModelFile } from '../open-model-file.ts';

const TABLE = 'token_embd.weight';
/** Rows that stand for the whole table in its fingerprint: hashing a table of gigabytes would take seconds at each start. */
const HASHED_ROWS = 1024;

/** The embedder of a model file: its token rows are read from the file when a text has them, no engine is needed. */
export function openModelEmbedder(path: string): StaticEmbedder & { close(): void } {
  const file = openModelFile(path);
  try {
    const table = file.tensor(TABLE);
    const tokenizer = createTokenizer(file.metadata);
    const embedder = createStaticEmbedder({
      table: readTable(file, table),
      encode: (text) => tokenizer.encode(text),
      modelHash: hashTable(file, table),
      sha256: (bytes) => createHash('sha256').update(bytes).digest(),
    });
    return { ...embedder, close: () => file.source.close() };
  } catch (error) {
    file.source.close();
    throw error;
  }
}

function readTable(file: GgufFile, tensor: TensorInfo): TokenTable {
  const [width, numRows] = tensor.dims as readonly [number, number];
  const bytes = new Uint8Array(rowBytes(tensor.type, width));
  return {
    width,
    numRows,
    readRow(id, out) {
      file.readTensor(tensor, bytes, id * bytes.length);
      dequantizeRow(tensor.type, bytes, out, width);
    },
  };
}

function hashTable(file: GgufFile, tensor: TensorInfo): string {
  const { type, dims } = tensor;
  const [width, numRows] = dims as readonly [number, number];
  const hash = createHash('sha256').update(JSON.stringify([TABLE, type, dims]));
  const bytes = new Uint8Array(rowBytes(type, width));
  const step = Math.max(1, numRows / HASHED_ROWS);
  for (let row = 0; row < numRows; row += step) {
    file.readTensor(tensor, bytes, Math.floor(row) * bytes.length);
    hash.update(bytes);
  }
  return hash.update(JSON.stringify(file.metadata.strings('tokenizer.ggml.tokens'))).digest('hex');
}
