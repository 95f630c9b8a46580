import { RuvLLMError } from '../../core/errors.ts';
import type { GgufFile, GgufToWrite } from '../../gguf/index.ts';
import { createProjection, type EmbeddingProjection } from '../../memory/embedder/projection.ts';

const KIND = 'embedding-projection';
/** Factors of wider models and higher ranks are not trained. */
const MAX_VALUES = 1 << 24;

/** A projection as a GGUF file; programs that expect a LoRA refuse it by its `adapter.type`. */
export function describeProjectionFile(
  { width, rank, a, b, modelHash }: EmbeddingProjection,
  name: string,
): GgufToWrite {
  const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
    new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength).slice();
  return {
    metadata: [
      { key: 'general.type', type: 'string', value: 'adapter' },
      { key: 'general.name', type: 'string', value: name },
      { key: 'adapter.type', type: 'string', value: KIND },
      { key: 'adapter.projection.model', type: 'string', value: modelHash },
    ],
    tensors: [
      { name: 'projection.a', type: 'F32', dims: [width, rank], data: bytesOf(a) },
      { name: 'projection.b', type: 'F32', dims: [rank, width], data: bytesOf(b) },
    ],
  };
}

/** Reads a projection; refuses models and other adapters. */
export function readProjection(file: GgufFile): EmbeddingProjection {
  const { metadata, source } = file;
  const kind = metadata.string('adapter.type', 'none');
  if (kind !== KIND) {
    throw new RuvLLMError('invalid_model_file', `${source.name} is not a projection: adapter.type is "${kind}", expected "${KIND}"`, { data: { adapterType: kind } }); // prettier-ignore
  }
  const read = (name: string): { dims: readonly number[]; values: Float32Array } => {
    const tensor = file.tensors.get(name);
    if (tensor === undefined) throw new RuvLLMError('invalid_model_file', `${source.name}: tensor ${name} is missing`, { data: { tensor: name } }); // prettier-ignore
    if (tensor.type !== 'F32' || tensor.dims.length !== 2 || tensor.numElements > MAX_VALUES) {
      throw new RuvLLMError('invalid_model_file', `${source.name}: tensor ${name} is ${tensor.type} with shape [${tensor.dims.join(', ')}], expected F32 with two dimensions and at most ${MAX_VALUES} values`, { data: { tensor: name } }); // prettier-ignore
    }
    const bytes = new Uint8Array(tensor.sizeBytes);
    file.readTensor(tensor, bytes);
    return { dims: tensor.dims, values: new Float32Array(bytes.buffer) };
  };
  const [a, b] = [read('projection.a'), read('projection.b')];
  const [width, rank] = a.dims as [number, number];
  if (b.dims[0] !== rank || b.dims[1] !== width) {
    throw new RuvLLMError('invalid_model_file', `${source.name}: projection.a is [${a.dims.join(', ')}] and projection.b is [${b.dims.join(', ')}]`); // prettier-ignore
  }
  const modelHash = metadata.string('adapter.projection.model');
  return createProjection({ width, rank, a: a.values, b: b.values, modelHash });
}
