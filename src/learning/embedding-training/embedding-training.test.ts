import { expect, test } from 'vitest';
import { createRandom, drawNormal } from '../../core/random.ts';
import { createMemorySink, createMemorySource, openGguf, writeGguf } from '../../gguf/index.ts';
import { applyProjection, checkProjection, createProjection } from '../../memory/embedder/projection.ts';
import { contrastiveLoss } from './contrastive-loss.ts';
import { describeProjectionFile, readProjection } from './projection-file.ts';
import { projectRow, projectRowBackward } from './projection-pass.ts';
import { type EmbeddingPair, trainOnPairs } from './train-embeddings.ts';

function unit(values: readonly number[]): Float32Array {
  const length = Math.hypot(...values);
  return Float32Array.from(values, (value) => value / length);
}
function randomRows(count: number, width: number, seed: number): Float32Array[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, () => unit(Array.from({ length: width }, () => drawNormal(random))));
}

test('the gradient of the loss by the parameters equals finite differences', () => {
  const shape = { width: 5, rank: 2 };
  const random = createRandom(3);
  const parameters = Float32Array.from({ length: 20 }, () => 0.5 * drawNormal(random));
  const anchors = randomRows(3, 5, 1);
  const candidates = randomRows(4, 5, 2);
  const run = (values: Float32Array) => {
    const rows = { anchors: anchors.map((row) => projectRow(values, shape, row)), candidates: candidates.map((row) => projectRow(values, shape, row)) }; // prettier-ignore
    const batch = { anchors: rows.anchors.map(({ output }) => output), candidates: rows.candidates.map(({ output }) => output), isMasked: (i: number, j: number) => i === 0 && j === 2 }; // prettier-ignore
    return { rows, ...contrastiveLoss(batch, 0.5) };
  };
  const { rows, anchors: anchorSlopes, candidates: candidateSlopes } = run(parameters);
  const gradient = new Float32Array(20);
  rows.anchors.forEach((row, i) => projectRowBackward(parameters, shape, row, anchorSlopes[i]!, gradient));
  rows.candidates.forEach((row, i) => projectRowBackward(parameters, shape, row, candidateSlopes[i]!, gradient));
  for (let i = 0; i < 20; i++) {
    const at = (step: number): number => run(parameters.map((value, j) => (j === i ? value + step : value))).loss;
    expect(gradient[i]!).toBeCloseTo((at(1e-2) - at(-1e-2)) / 2e-2, 3);
  }
});

test('a masked candidate is no negative', () => {
  const [anchor, positive, other] = [unit([1, 0]), unit([0.8, 0.6]), unit([1, 0])];
  const lossOf = (isMasked: boolean): number =>
    contrastiveLoss({ anchors: [anchor], candidates: [positive, other], isMasked: (_, j) => isMasked && j === 1 }, 0.1).loss; // prettier-ignore
  expect(lossOf(true)).toBeCloseTo(0, 6);
  expect(lossOf(false)).toBeGreaterThan(2);
});

test('a hard negative adds to the loss', () => {
  const [anchor, positive] = [unit([1, 0]), unit([1, 0.1])];
  const lossOf = (negatives: Float32Array[]): number =>
    contrastiveLoss({ anchors: [anchor], candidates: [positive, ...negatives], isMasked: () => false }, 0.1).loss;
  expect(lossOf([])).toBeCloseTo(0, 6);
  expect(lossOf([unit([1, 0.2])])).toBeGreaterThan(0.5);
});

/** Pairs share the first dimensions; the others are loud noise, so that cosines of untrained vectors say little. */
function noisyPairs(count: number) {
  const [signalDims, noiseDims] = [8, 16];
  const random = createRandom(11);
  const vectors = new Map<string, Float32Array>();
  const pairs: EmbeddingPair[] = Array.from({ length: count }, (_, i) => {
    const signal = Array.from({ length: signalDims }, () => drawNormal(random));
    for (const name of [`q${i}`, `a${i}`])
      vectors.set(name, unit([...signal, ...Array.from({ length: noiseDims }, () => 1.5 * drawNormal(random))]));
    return { anchor: `q${i}`, positive: `a${i}` };
  });
  return { pairs, embed: async (texts: readonly string[]) => texts.map((text) => vectors.get(text)!) };
}

test('training finds the directions that pairs share, on held-out pairs, and shuffled pairs teach nothing', async () => {
  const { pairs, embed } = noisyPairs(200);
  const options = { rank: 16, learningRate: 0.01, numEpochs: 60, seed: 1 };
  const { report, parameters } = await trainOnPairs({ pairs, embed, options });
  const [before, after, control] = report.heldOut;
  expect(report).toMatchObject({ numTrained: 140, numValidation: 20, numHeldOut: 40, numTexts: 200 });
  expect(report.lossAfter).toBeLessThan(report.lossBefore);
  expect(after!.gains!['recall@10']!.low).toBeGreaterThan(0);
  expect(after!.figures['recall@10']!.mean).toBeGreaterThan(before!.figures['recall@10']!.mean + 0.2);
  expect(control!.gains!['recall@10']!.high).toBeLessThan(after!.gains!['recall@10']!.low);
  const again = await trainOnPairs({ pairs, embed, options });
  expect(again.parameters).toEqual(parameters);
});

test('a training that improves no validation loss leaves the identity', async () => {
  const vectors = randomRows(80, 12, 4);
  const pairs = Array.from({ length: 40 }, (_, i) => ({ anchor: `${2 * i}`, positive: `${2 * i + 1}` }));
  const embed = async (texts: readonly string[]) => texts.map((text) => vectors[Number(text)]!);
  const { parameters, rank, width, report } = await trainOnPairs({ pairs, embed, options: { learningRate: 1 } });
  expect(report.bestEpoch).toBe(0);
  const projection = createProjection({ width, rank, a: parameters.slice(0, rank * width), b: parameters.slice(rank * width), modelHash: 'm' }); // prettier-ignore
  expect(applyProjection(projection, vectors[0]!)).toEqual(vectors[0]);
});

test('groups stay on one side of the split, and too few of them are refused', async () => {
  const { pairs, embed } = noisyPairs(60);
  const grouped = pairs.map((pair, i) => ({ ...pair, group: `g${i % 30}` }));
  const { report } = await trainOnPairs({ pairs: grouped, embed, options: { numEpochs: 1 } });
  expect(report).toMatchObject({ numTrained: 42, numValidation: 6, numHeldOut: 12 });
  await expect(trainOnPairs({ pairs: pairs.slice(0, 19), embed })).rejects.toThrow('19 groups of pairs; at least 20');
  await expect(trainOnPairs({ pairs, embed, options: { rang: 3 } as never })).rejects.toThrow('rang');
});

const sample = () =>
  createProjection({ width: 3, rank: 2, a: Float32Array.of(1, 0, 0, 0, 1, 0), b: Float32Array.of(0, 1, 0, 0, 2, 0), modelHash: 'abc' }); // prettier-ignore

test('x becomes x + B · A · x', () => {
  expect(Array.from(applyProjection(sample(), Float32Array.of(1, 10, 100)))).toEqual([11, 10, 102]);
});

function written(): Uint8Array {
  const sink = createMemorySink();
  writeGguf(describeProjectionFile(sample(), 'mine'), sink);
  return sink.toBytes();
}

test('a projection survives its file, and other files are refused', () => {
  const read = readProjection(openGguf(createMemorySource(written(), 'mine.gguf')));
  expect(read).toEqual(sample());
  const sink = createMemorySink();
  const file = describeProjectionFile(sample(), 'mine');
  writeGguf({ ...file, metadata: file.metadata.map((entry) => (entry.key === 'adapter.type' ? { ...entry, value: 'lora' } : entry)) }, sink); // prettier-ignore
  expect(() => readProjection(openGguf(createMemorySource(sink.toBytes(), 'lora.gguf')))).toThrow('lora.gguf is not a projection: adapter.type is "lora"'); // prettier-ignore
});

test('a projection of another model is refused', () => {
  expect(() => checkProjection(sample(), { width: 3, modelHash: 'abc' })).not.toThrow();
  expect(() => checkProjection(sample(), { width: 3, modelHash: 'xyz' })).toThrow('trained on another model');
  expect(() => checkProjection(sample(), { width: 4, modelHash: 'abc' })).toThrow('this model has 4 values');
});

test('values that are no numbers and factors of the wrong size are refused', () => {
  const parts = { width: 2, rank: 1, a: Float32Array.of(1, NaN), b: Float32Array.of(0, 0), modelHash: 'm' };
  expect(() => createProjection(parts)).toThrow('value 1 of factor a of the projection is NaN');
  expect(() => createProjection({ ...parts, a: new Float32Array(3) })).toThrow('has 3 values, expected 2 x 1');
});
