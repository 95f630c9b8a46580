import { describe, expect, test } from 'vitest';
import { createRandom } from '../../../core/random.ts';
import { openTinyModel } from '../../../learning/sona/harness.contract.ts';
import { joinFactors } from '../../../learning/lora-training/join-factors.contract.ts';
import { DEFAULT_POLICIES } from '../../../memory/policies/defaults.ts';
import { createTestLearning, type TestLearning } from './harness.contract.ts';

const DIM = 16;
const COLORS = { query: 'color', answer: 'a blue zog' };
const NUMBERS = { query: 'count', answer: 'ten and one' };
type Topic = typeof COLORS;

/** Rated requests about a topic, with embeddings scattered around `axis`. */
async function teach(desk: TestLearning, { query, answer }: Topic, axis: number, count: number): Promise<void> {
  const random = createRandom(axis + 1);
  for (let i = 0; i < count; i++) {
    const values = Float32Array.from({ length: DIM }, (_, d) => (d === axis ? 1 : 0) + (random.next() - 0.5) * 0.6);
    const length = Math.hypot(...values);
    const embedding = values.map((value) => value / length);
    const createdMs = (desk.services.timeMs += 1000);
    const id = await desk.add({ query: `${query} ${i}`, answer, embedding, space: 'topics-1', createdMs });
    await desk.learning.trajectories.rate('acme', id, { source: 'api', score: 1, correction: null, comment: null });
  }
}

/** Mean loss of a topic's answer under the active adapter. */
async function lossOf(desk: TestLearning, { query, answer }: Topic): Promise<number> {
  const training = await openTinyModel({ path: '', rank: 2, numLayers: 2, maxTokens: 32 });
  const parameters = joinFactors(desk.served.get('acme')!.trained!.factors);
  let sum = 0;
  for (let i = 0; i < 8; i++) {
    const example = (await desk.model.encodeExample({ query: `${query} ${900 + i}`, prompt: '' } as never, answer))!;
    sum += (await training.loss(parameters, example)).loss / 8;
  }
  await training.dispose();
  return sum;
}

interface RunReply {
  readonly report: { readonly ewc: { numTasks: number; lambda: number; boundaryMs: number | null } };
}
interface StatusReply {
  readonly models: readonly { readonly ewc: { numTasks: number; lambda: number; boundariesMs: number[] } }[];
}

/** Two topics, one run each; the second run's window no longer holds the first topic. */
async function learnTwo(second: Topic, axis: number, minSamples = 50) {
  const desk = await createTestLearning({ maxExamples: 100, fisherSamples: 40 });
  await desk.memory.policies.put('acme', {
    policyType: 'ewc',
    parameters: { ...DEFAULT_POLICIES.ewc.parameters, minSamples },
    confidence: 1,
    source: 'operator',
  });
  await teach(desk, COLORS, 0, 100);
  const first = await desk.run<RunReply>('learn.run', { waitMs: 50_000 });
  const before = await lossOf(desk, COLORS);
  const sinceMs = desk.services.timeMs;
  await teach(desk, second, axis, 100);
  const reply = await desk.run<RunReply>('learn.run', { waitMs: 50_000 });
  const [status] = (await desk.run<StatusReply>('learn.status')).models;
  return { desk, first, reply, status: status!, sinceMs, forgetting: (await lossOf(desk, COLORS)) - before };
}

describe('[LB15] tasks that come one after the other', () => {
  test('a boundary is recorded, the finished task holds, and less of it is forgotten than without', async () => {
    const { desk, first, reply, status, sinceMs, forgetting } = await learnTwo(NUMBERS, 1);
    expect(first.report.ewc).toEqual({ numTasks: 0, lambda: 2000, boundaryMs: null });
    // The first task lost some of what it had: λ rises.
    expect(reply.report.ewc).toMatchObject({ numTasks: 1, lambda: 2200 });
    const { boundaryMs } = reply.report.ewc;
    expect(boundaryMs).toBeGreaterThan(sinceMs);
    expect(boundaryMs).toBeLessThan(sinceMs + 5000);
    expect(status.ewc).toEqual({ numTasks: 1, lambda: 2200, boundariesMs: [boundaryMs] });
    const { versions } = await desk.run<{ versions: object[] }>('learn.history');
    expect(versions).toMatchObject([
      { reason: expect.stringContaining('a new task began'), metrics: { ewc_tasks: 1, ewc_lambda: 2200 } },
      { metrics: { ewc_tasks: 0, ewc_boundary: 0 } },
    ]);
    const blind = await learnTwo(NUMBERS, 1, 1_000_000);
    expect(blind.reply.report.ewc).toEqual({ numTasks: 0, lambda: 2000, boundaryMs: null });
    expect(forgetting).toBeLessThan(blind.forgetting / 2);
  });

  test('rolling back takes the boundary back', async () => {
    const { desk } = await learnTwo(NUMBERS, 1);
    await desk.run('learn.rollback', { toVersion: 1 });
    const { models } = await desk.run<StatusReply>('learn.status');
    expect(models[0]!.ewc).toEqual({ numTasks: 0, lambda: 2000, boundariesMs: [] });
  });

  test('more of the same task is no boundary, whatever it teaches', async () => {
    const { reply, status } = await learnTwo(NUMBERS, 0);
    expect(reply.report.ewc).toEqual({ numTasks: 0, lambda: 2000, boundaryMs: null });
    expect(status.ewc).toEqual({ numTasks: 0, lambda: 2000, boundariesMs: [] });
  });
});
