// Input of clients that must not be learned; for adapters that do not fit see test/adapters-refused.test.ts.
import { beforeEach, expect, test } from 'vitest';
import { createMemoryKeys, createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { TrainJob } from '../../learning/sona/types.ts';
import { createTestLearning, type TestLearning } from '../../runtime/learning/operations/harness.contract.ts';
import { createKeyStore } from '../keys/key-store.ts';

let desk: TestLearning;
let server: TestServer;
const tokens = new Map<string, string>();
const UNKNOWN_ID = '0199a0b4-7c00-7000-8000-0000000000ff';

beforeEach(async () => {
  const { model } = await createToyRuntime();
  desk = await createTestLearning({}, 'toy');
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  for (const [name, scope] of [
    ['acme', 'inference'],
    ['bob', 'inference'],
  ] as const) {
    tokens.set(name, (await keys.create({ name, tenant: name, scopes: [scope] })).token);
  }
  tokens.set('root', (await keys.create({ name: 'root', tenant: 'acme', scopes: ['admin'] })).token);
  const { memory, learning } = desk;
  server = createTestServer([entryOf('toy', async () => model)], { keys, isOpen: false, memory, learning });
});

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown> & { readonly error?: { code: string; param: string | null } };
}
async function send(path: string, text: string, who = 'acme'): Promise<Answer> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${tokens.get(who)!}` };
  const response = await server.fetch(new Request(`http://localhost${path}`, { method: 'POST', headers, body: text }));
  return { status: response.status, body: (await response.json()) as Answer['body'] };
}
const post = (path: string, body: object, who?: string) => send(path, JSON.stringify(body), who);
const untouched = async (id: string) =>
  expect(await desk.learning.trajectories.get('acme', id)).toMatchObject({ verdict: 'unknown', feedback: [] });

test('[LS18] feedback on an unknown request or one of another tenant is neither stored nor learned', async () => {
  const id = await desk.add();
  for (const [request, who] of [
    [UNKNOWN_ID, 'acme'],
    ['no id at all', 'acme'],
    [id, 'bob'],
  ] as const) {
    const words = { thumbs: 'up', correction: 'x' };
    expect(await post('/v1/feedback', { request_id: request, ...words }, who)).toMatchObject({
      status: 404,
      body: { error: { code: 'request_not_found', param: 'request_id' } },
    });
    expect((await post('/admin/learning/feedback', { requestId: request, ...words }, who)).status).toBe(404);
  }
  await untouched(id);
  expect([...desk.served.keys()]).toEqual([]);
});

test('[LS18] both routes reject scores that are not numbers from 0 to 1', async () => {
  const id = await desk.add();
  for (const score of [
    'NaN',
    'Infinity',
    '-Infinity',
    '1e999',
    '-1e999',
    '1.0000001',
    '-1e-9',
    '"0.5"',
    '[0.5]',
    '{}',
  ]) {
    const feedback = await send('/v1/feedback', `{"request_id": "${id}", "score": ${score}}`);
    expect([score, feedback.status]).toEqual([score, 400]);
    expect((await send('/admin/learning/feedback', `{"requestId": "${id}", "score": ${score}}`)).status).toBe(400);
  }
  await untouched(id);
});

test('[LS18] limits contradictory feedback to 60, and the model does not collapse', async () => {
  const ids: string[] = [];
  for (let i = 0; i < 4; i++) ids.push(await desk.add({ query: `${i}?`, answer: 'a blue zog' }));
  const statuses: number[] = [];
  for (let i = 0; i < 70; i++) {
    const words = i % 2 === 0 ? { thumbs: 'up' } : { thumbs: 'down' };
    statuses.push((await post('/v1/feedback', { request_id: ids[i % 4], ...words })).status);
  }
  expect(statuses).toEqual([...Array.from({ length: 60 }, () => 200), ...Array.from({ length: 10 }, () => 429)]);
  await desk.learning.settle();
  const factors = desk.served.get('acme')?.instant?.factors ?? [];
  for (const { a, b } of factors) expect([...a, ...b].every(Number.isFinite)).toBe(true);
  expect(normOf(factors[0])).toBeLessThanOrEqual(1.001);
  // Later feedback is still learned from.
  desk.services.timeMs += 60_000;
  const late = await post('/admin/learning/feedback', { requestId: await desk.add(), thumbs: 'up', waitMs: 60_000 });
  expect(late).toMatchObject({ status: 200, body: { learned: { state: 'applied' } } });
});

/** Norm of scale · B · A. */
function normOf(
  one: NonNullable<ReturnType<typeof desk.served.get>>['instant'] extends infer A
    ? A extends { factors: readonly (infer F)[] }
      ? F | undefined
      : never
    : never,
): number {
  // prettier-ignore
  if (one === undefined) return 0;
  const { a, b, rank, numCols, numRows, scale } = one;
  let squares = 0;
  for (let row = 0; row < numRows; row++) {
    for (let col = 0; col < numCols; col++) {
      let sum = 0;
      for (let r = 0; r < rank; r++) sum += b[row * rank + r]! * a[r * numCols + col]!;
      squares += (scale * sum) ** 2;
    }
  }
  return Math.sqrt(squares);
}

interface Run {
  readonly state: string;
  readonly parts: readonly { part: string; state: string; version: number | null; reason: string }[];
}
const run = async () => (await post('/admin/learning/run', { waitMs: 50_000 }, 'root')).body as unknown as Run;
const history = async () => (await post('/admin/learning/history', {}, 'root')).body;

test('[LS18] the gate rejects an update that increases the loss, and records it in the history', async () => {
  await desk.teach(40);
  const { train } = desk.work;
  // A failed run: in the wrong direction, with steps that are far too large.
  Object.assign(desk.work, {
    train: (generation: TrainJob) =>
      train({ ...generation, train: generation.train.map((one) => ({ ...one, weight: -1 })), learningRate: 0.5 }),
  });
  const { state, parts } = await run();
  expect([state, parts[0]!.state, parts[0]!.version]).toEqual(['done', 'refused', 1]);
  expect(await history()).toMatchObject({
    serves: 0,
    versions: [
      {
        version: 1,
        isAccepted: false,
        reason: parts[0]!.reason,
        metrics: { held_out_mean: expect.any(Number) as number },
      },
    ],
  });
  const { metrics } = ((await history())['versions'] as { metrics: Record<string, number> }[])[0]!;
  expect(metrics['held_out_mean']).toBeGreaterThan(1);
  expect(desk.served.get('acme')?.trained ?? null).toBeNull();
});

test('[LS18] rejects and records losses and gradients that are not numbers, and learns from the next feedback', async () => {
  await desk.teach(40);
  const { train } = desk.work;
  Object.assign(desk.work, {
    async train(generation: TrainJob) {
      const outcome = await train(generation);
      return { ...outcome, parameters: outcome.parameters.map(() => Number.NaN) };
    },
  });
  const noLoss = 'a loss is not a number: the update would break the model';
  expect((await run()).parts[0]).toMatchObject({ part: 'model', state: 'refused', version: 1, reason: noLoss });
  await desk.teach(1);
  const noGradient = 'the gradient of step 3 has the norm NaN';
  Object.assign(desk.work, { train: () => Promise.reject(new RuvLLMError('bad_gradient', noGradient)) });
  expect((await run()).parts[0]).toMatchObject({ state: 'refused', version: 2, reason: noGradient });
  expect(await history()).toMatchObject({
    serves: 0,
    versions: [
      { version: 2, isAccepted: false, reason: noGradient },
      { version: 1, isAccepted: false, reason: noLoss },
    ],
  });
  expect(desk.served.get('acme')?.trained ?? null).toBeNull();
  Object.assign(desk.work, { train });
  await desk.teach(1);
  expect((await run()).parts[0]).toMatchObject({ state: 'trained', version: 3 });
});
