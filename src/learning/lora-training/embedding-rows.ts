import type { GgufFile } from '../../gguf/index.ts';
import type { DecoderShape } from '../../models/types.ts';
import { dequantizeRow, rowBytes } from '../../quant/index.ts';

/** Reads rows of the embedding table from the file: an example needs few rows of a large table. */
export function createEmbeddingRows(
  gguf: GgufFile,
  { embeddingDim }: DecoderShape,
): (tokenIds: ArrayLike<number>, out: Float32Array) => void {
  const tensor = gguf.tensor('token_embd.weight');
  const bytes = new Uint8Array(rowBytes(tensor.type, embeddingDim));
  return (tokenIds, out) => {
    for (let row = 0; row < tokenIds.length; row++) {
      gguf.readTensor(tensor, bytes, tokenIds[row]! * bytes.length);
      dequantizeRow(tensor.type, bytes, out, embeddingDim, { valueOffset: row * embeddingDim });
    }
  };
}
