import { readFileSync } from 'node:fs';
import { createMemorySource } from '../../src/core/byte-source.ts';
import { importBuilt } from './dist.ts';

/** A GGUF file with the values of its weights as F32. */
export async function readAsFloats(path: string): Promise<Uint8Array> {
  const { openGguf, writeGguf, createMemorySink } =
    await importBuilt<typeof import('../../src/gguf/index.ts')>('gguf/index');
  const { quantFormats } = await importBuilt<typeof import('../../src/quant/index.ts')>('quant/index');
  const gguf = openGguf(createMemorySource(readFileSync(path)));
  const tensors = [...gguf.tensors.values()].map((tensor) => {
    const bytes = new Uint8Array(tensor.sizeBytes);
    gguf.readTensor(tensor, bytes);
    const values = new Float32Array(tensor.numElements);
    const format = quantFormats[tensor.type];
    format.dequantize(bytes, 0, values, 0, tensor.numElements / format.blockSize);
    return { name: tensor.name, type: 'F32' as const, dims: tensor.dims, data: new Uint8Array(values.buffer) };
  });
  const sink = createMemorySink();
  writeGguf({ metadata: gguf.entries, tensors }, sink);
  return sink.toBytes();
}
