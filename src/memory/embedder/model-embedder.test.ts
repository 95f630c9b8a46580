import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { applyProjection, createProjection } from './projection.ts';
import { createModelEmbedder, type ModelEmbedderContext } from './model-embedder.ts';

const sha256 = (bytes: Uint8Array): Uint8Array => new Uint8Array(createHash('sha256').update(bytes).digest());

/** Hidden states that depend on the text alone. */
async function pool(text: string): Promise<Float32Array> {
  const random = createRandom(text.length);
  return Float32Array.from({ length: 384 }, () => (random.next() - 0.5) * 20);
}
const make = (changes: Partial<ModelEmbedderContext> = {}) =>
  createModelEmbedder({ width: 384, pool, modelHash: 'm', pooling: 'mean', maxTokens: 512, sha256, ...changes });
const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

/** Adds `scale` times the first value to the second one. */
function projectionOf(scale: number) {
  const [a, b] = [new Float32Array(384), new Float32Array(384)];
  [a[0], b[1]] = [1, scale];
  return createProjection({ width: 384, rank: 1, a, b, modelHash: 'm' });
}

test('[EM7] a projection changes the vectors by its matrix', async () => {
  const projection = projectionOf(3);
  const [pa, pb] = [applyProjection(projection, await pool('one')), applyProjection(projection, await pool('three'))];
  const embedder = make({ projection });
  const [a, b] = [await embedder.embed('one'), await embedder.embed('three')];
  expect(dot(a, b)).toBeCloseTo(dot(pa, pb) / Math.sqrt(dot(pa, pa) * dot(pb, pb)), 5);
  expect([...a]).not.toEqual([...(await make().embed('one'))]);
});

test('[EM7] turns the states of a model into unit vectors of 768, at the same angles, the same bits in each instance', async () => {
  const embedder = make();
  const [a, b] = [await embedder.embed('one'), await embedder.embed('three')];
  expect([a.length, embedder.dim]).toEqual([768, 768]);
  expect(dot(a, a)).toBeCloseTo(1, 6);
  const [pa, pb] = [await pool('one'), await pool('three')];
  expect(dot(a, b)).toBeCloseTo(dot(pa, pb) / Math.sqrt(dot(pa, pa) * dot(pb, pb)), 5);
  expect([...(await make().embed('one'))]).toEqual([...a]);
  // Bits noted once: a change of them must come with a new version in the fingerprint.
  expect(createHash('sha256').update(new Uint8Array(a.buffer)).digest('hex').slice(0, 16)).toBe('721ab26df1d77355');
});

test('[EM2] its fingerprint changes with model, pooling, length and dimension, and is never that of a static one', () => {
  const changes: Partial<ModelEmbedderContext>[] = [
    {},
    { modelHash: 'other' },
    { pooling: 'cls' },
    { maxTokens: 256 },
    { width: 385 },
    { options: { dim: 384 } },
    { projection: projectionOf(1) },
    { projection: projectionOf(2) },
  ];
  const prints = changes.map((change) => make(change).fingerprint);
  expect(new Set(prints).size).toBe(changes.length);
  expect(prints[0]).toMatch(/^model-1-[0-9a-f]{32}$/);
  expect(make().fingerprint).toBe(prints[0]);
});

test('[EM7] refuses states of another width, zero vectors and unknown options', async () => {
  await expect(make({ pool: async () => new Float32Array(3) }).embed('x')).rejects.toThrow(/3 values.*384/);
  await expect(make({ pool: async () => new Float32Array(384) }).embed('x')).rejects.toThrow(/is zero or not finite/);
  await expect(make({ pool: async () => new Float32Array(384).fill(NaN) }).embed('x')).rejects.toThrow(
    /is zero or not finite/,
  );
  expect(() => make({ width: 0 })).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  expect(() => make({ options: { colour: 1 } as never })).toThrow(/colour/);
});
