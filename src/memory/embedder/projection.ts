import { RuvLLMError } from '../../core/errors.ts';
import { createSha256, toHex } from '../../core/sha256.ts';

/** A trained change of a model's embeddings: x becomes x + B · A · x. It is linear, so the length of x does not matter. */
export interface EmbeddingProjection {
  /** Values of an embedding. */
  readonly width: number;
  readonly rank: number;
  /** f32[rank × width] */
  readonly a: Float32Array;
  /** f32[width × rank] */
  readonly b: Float32Array;
  /** Of the model whose embeddings it was trained on. */
  readonly modelHash: string;
  readonly contentHash: string;
}

/** Checks the parts of a projection and computes its hash. */
export function createProjection(parts: Omit<EmbeddingProjection, 'contentHash'>): EmbeddingProjection {
  const { width, rank, a, b, modelHash } = parts;
  for (const [name, factor] of Object.entries({ a, b })) {
    if (factor.length !== width * rank) {
      throw new RuvLLMError('invalid_model_file', `factor ${name} of the projection has ${factor.length} values, expected ${width} x ${rank}`, { data: { width, rank, numValues: factor.length } }); // prettier-ignore
    }
    const bad = factor.findIndex((value) => !Number.isFinite(value));
    if (bad >= 0) throw new RuvLLMError('invalid_model_file', `value ${bad} of factor ${name} of the projection is ${factor[bad]}`); // prettier-ignore
  }
  const hash = createSha256();
  hash.update(new TextEncoder().encode(`projection ${width} ${rank} ${modelHash}\n`));
  for (const { buffer, byteOffset, byteLength } of [a, b]) hash.update(new Uint8Array(buffer, byteOffset, byteLength));
  return { ...parts, contentHash: toHex(hash.digest()) };
}

/** The projected embedding, not normalized. */
export function applyProjection({ width, rank, a, b }: EmbeddingProjection, vector: Float32Array): Float32Array {
  const inner = new Float32Array(rank);
  for (let r = 0; r < rank; r++) {
    let sum = 0;
    for (let i = 0; i < width; i++) sum += a[r * width + i]! * vector[i]!;
    inner[r] = sum;
  }
  const output = Float32Array.from(vector);
  for (let i = 0; i < width; i++) {
    let sum = 0;
    for (let r = 0; r < rank; r++) sum += b[i * rank + r]! * inner[r]!;
    output[i]! += sum;
  }
  return output;
}

/** Refuses a projection that was trained on the embeddings of another model: its directions mean nothing here. */
export function checkProjection(projection: EmbeddingProjection, model: { width: number; modelHash: string }): void {
  const { width, modelHash } = projection;
  if (width === model.width && modelHash === model.modelHash) return;
  throw new RuvLLMError(
    'invalid_option',
    `the projection was trained on another model: ${width} values, hash ${modelHash.slice(0, 12)}; this model has ${model.width} values, hash ${model.modelHash.slice(0, 12)}`,
    { data: { option: 'projection', width, modelWidth: model.width } },
  );
}
