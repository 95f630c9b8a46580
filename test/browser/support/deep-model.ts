import { createMemorySource } from '../../../src/core/byte-source.ts';
import { type ByteSink, openGguf, type TensorToWrite, writeGguf } from '../../../src/gguf/index.ts';
import { quantFormats } from '../../../src/quant/index.ts';

/**
 * Writes a llama model with more layers before its own. All their matrices are zeros, so the logits keep their bits. The type of the
 * matrices is small in a file and five times as large in the memory of the WASM kernels.
 */
export function writeDeepModel(model: Uint8Array<ArrayBuffer>, numEmptyLayers: number, sink: ByteSink): void {
  const gguf = openGguf(createMemorySource(model));
  const type = 'Q1_0';
  const { blockSize, blockBytes } = quantFormats[type];
  const tensors: TensorToWrite[] = [];
  const first = [...gguf.tensors.values()].filter(({ name }) => name.startsWith('blk.0.'));
  for (let layer = 0; layer < numEmptyLayers; layer++) {
    for (const { name, dims } of first) {
      const [numCols = 0, numRows = 1] = dims;
      const isVector = dims.length === 1;
      const sizeBytes = isVector ? 4 * numCols : (numRows * numCols * blockBytes) / blockSize;
      tensors.push({
        name: name.replace('blk.0.', `blk.${layer}.`),
        type: isVector ? 'F32' : type,
        dims,
        data: () => [new Uint8Array(sizeBytes)],
      });
    }
  }
  for (const tensor of gguf.tensors.values()) {
    const data = new Uint8Array(tensor.sizeBytes);
    gguf.readTensor(tensor, data);
    const name = tensor.name.replace(/^blk\.(\d+)/, (_, layer) => `blk.${Number(layer) + numEmptyLayers}`);
    tensors.push({ name, type: tensor.type, dims: tensor.dims, data });
  }
  const metadata = gguf.entries.map((entry) =>
    entry.key === 'llama.block_count' ? { ...entry, value: Number(entry.value) + numEmptyLayers } : entry,
  );
  writeGguf({ metadata: metadata as typeof gguf.entries, tensors }, sink);
}
