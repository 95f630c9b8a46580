import type { FloatTensor } from './float-tensor.ts';

type RowReader = FloatTensor['readRows'];

/**
 * Hugging Face rotates value i of a head with value i + half; some GGUF architectures rotate adjacent values. So row 2i + j of a
 * head in GGUF is row j * half + i in the checkpoint.
 */
export function pairAdjacent(readRows: RowReader, dims: readonly number[], headLength: number): RowReader {
  const numCols = dims[0]!;
  return (firstRow, out) => {
    // Allocated here: every layer has such a reader, but only one works at a time.
    const head = new Float32Array(headLength * numCols);
    let loadedHead = -1;
    for (let at = 0, row = firstRow; at < out.length; at += numCols, row++) {
      const headIndex = Math.floor(row / headLength);
      if (headIndex !== loadedHead) readRows(headIndex * headLength, head);
      loadedHead = headIndex;
      const inHead = row % headLength;
      const source = (inHead % 2) * (headLength / 2) + (inHead >> 1);
      out.set(head.subarray(source * numCols, (source + 1) * numCols), at);
    }
  };
}
