import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import { crossValidate } from './cross-validate.ts';
import type { LearningWork, TrainJob } from './types.ts';
import { createLearningWork } from './work-methods.ts';

const HEAD = { hiddenDim: 8, vocabSize: 12 };
const plan = { path: '', rank: 2, numLayers: 0, maxTokens: 16, head: HEAD };

/** A question with a hidden state of its own. */
function exampleOf(seed: number, label: number): TrainingExample {
  const random = createRandom(seed);
  const ids = Array.from({ length: HEAD.vocabSize }, (_, i) => i);
  const hidden = Float32Array.from({ length: HEAD.hiddenDim }, () => random.next() * 2 - 1);
  const logits = ids.map((id) => -id / 10);
  const prompt = [seed % HEAD.vocabSize, Math.floor(seed / HEAD.vocabSize)];
  return { tokenIds: [...prompt, label], numPromptTokens: 2, weight: 1, samples: [{ hidden, label, ids, logits }] };
}

const jobOf = (train: readonly TrainingExample[], avoid: readonly TrainingExample[] = []) => ({
  plan,
  train,
  parameters: null,
  tasks: [],
  lambda: 0,
  avoid: avoid.flatMap(({ samples = [] }) => samples.map(({ hidden }) => hidden)),
  numEpochs: 40,
  learningRate: 0.05,
  seed: 1,
});
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();
const createWork = () =>
  createLearningWork(() => Promise.reject(new Error('no weights are needed')), () => 0, sha256); // prettier-ignore
const PLENTY = { share: 1, endMs: 1e9, now: () => 0 };

describe('[LB19] cross-validation', () => {
  test('judges each example by weights that were trained without it and its copies', async () => {
    const train = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2].map((seed) => exampleOf(seed, 3));
    const seenBy = new Map<Float32Array, readonly TrainingExample[]>();
    const judged: TrainingExample[] = [];
    const work = {
      async train({ train: some }: TrainJob) {
        const parameters = new Float32Array(1);
        seenBy.set(parameters, some);
        return { parameters, isDone: true };
      },
      async losses(_plan: unknown, examples: readonly TrainingExample[], parameters: Float32Array | null) {
        const prompts = parameters === null ? [] : seenBy.get(parameters)!.map(({ tokenIds }) => tokenIds[0]);
        for (const { tokenIds } of examples) expect(prompts).not.toContain(tokenIds[0]);
        if (parameters !== null) judged.push(...examples);
        return { losses: examples.map(() => (parameters === null ? 2 : 1)), elapsedMs: 0 };
      },
    } as unknown as LearningWork;
    const fresh = train.slice(1);
    const result = await crossValidate(work, { job: jobOf(train), fresh, ...PLENTY });
    expect(result!.before).toHaveLength(8);
    expect(new Set(judged)).toEqual(new Set(fresh.filter((example) => example !== train[8]))); // a copy of the one it has seen
    // The example that the serving version has seen is trained on in each fold.
    for (const some of seenBy.values()) expect(some).toContain(train[0]);
  });

  test('finds what examples have in common, and nothing where they have nothing', async () => {
    const meanChange = async (labelOf: (i: number) => number): Promise<number> => {
      const train = Array.from({ length: 24 }, (_, i) => exampleOf(i, labelOf(i)));
      const { before, after } = (await crossValidate(createWork(), { job: jobOf(train), fresh: train, ...PLENTY }))!;
      return after.reduce((sum, loss, i) => sum + loss - before[i]!, 0) / after.length;
    };
    // The sign of a hidden value says the label.
    const signOf = (i: number): number => (exampleOf(i, 0).samples![0]!.hidden[0]! > 0 ? 3 : 9);
    const random = createRandom(5);
    expect(await meanChange(signOf)).toBeLessThan(-0.5);
    expect(await meanChange(() => Math.floor(random.next() * 12))).toBeGreaterThan(0);
  });

  test('is left out when the time is up', async () => {
    const train = [1, 2, 3, 4].map((seed) => exampleOf(seed, 3));
    expect(await crossValidate(createWork(), { job: jobOf(train), fresh: train, ...PLENTY, endMs: 0 })).toBeNull();
  });
});

test('[LB20] training in the LM head leaves the logits of avoided texts as they are', async () => {
  const train = [1, 2, 3, 4, 5, 6].map((seed) => exampleOf(seed, 3));
  const unrelated = [exampleOf(7, 5), exampleOf(8, 6)];
  const work = createWork();
  const changes = async (avoid: readonly TrainingExample[]): Promise<{ taught: number; other: number }> => {
    const { parameters } = await work.train({ ...jobOf(train, avoid), state: null, timeLimitMs: 1e9 });
    const change = async (examples: readonly TrainingExample[]): Promise<number> => {
      const { losses: before } = await work.losses(plan, examples, null, null);
      const { losses: after } = await work.losses(plan, examples, parameters, null);
      return Math.max(...after.map((loss, i) => Math.abs(loss - before[i]!)));
    };
    return { taught: await change(train), other: await change(unrelated) };
  };
  expect((await changes([])).other).toBeGreaterThan(0.1);
  const { taught, other } = await changes(unrelated);
  expect(other).toBeLessThan(1e-5);
  expect(taught).toBeGreaterThan(0.5);
});
