// A server process with a real model, killed while a learning loop runs: the old version serves the same bits.
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isHeldOut } from '../src/learning/sona/examples.ts';
import { isServerBuilt } from './support/dist-server.ts';
import { runCommand } from './support/run-command.ts';
import { createServeFolder, type ServeFolder, type ServeProcess } from './support/serve-process.ts';

const model = fileURLToPath(new URL('../../shared/models/stories260K-f32.gguf', import.meta.url));
const canRun = isServerBuilt && existsSync(model);
if (!canRun) console.log('skipped: they need dist/ and ../shared/models/stories260K-f32.gguf');

const NAMES = ['zog', 'mip', 'tarn', 'bell', 'dorf', 'hut', 'lamp', 'pond', 'rock', 'sled', 'fern', 'kite', 'moth'];
const promptOf = (name: string): string => `The ${name} was`;
let serving: ServeFolder;
let server: ServeProcess;

interface Run {
  readonly state: string;
  readonly reason: string | null;
  readonly report: { readonly version: number | null; readonly isAccepted: boolean } | null;
}

async function call<T = Record<string, unknown>>(path: string, body: object): Promise<T> {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as T;
  if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

interface Answer {
  readonly id: string;
  readonly text: string;
  readonly logprobs: readonly number[];
}
async function ask(name: string): Promise<Answer> {
  const request = { model: 'stories', prompt: promptOf(name), max_tokens: 8, temperature: 0, logprobs: 1 };
  const { id, choices } = await call<{ id: string; choices: { text: string; logprobs: { token_logprobs: number[] } }[] }>('/v1/completions', request); // prettier-ignore
  const [{ text, logprobs }] = choices as [(typeof choices)[0]];
  return { id: id.replace('cmpl-', ''), text, logprobs: logprobs.token_logprobs };
}
const forget = (requestId: string) => call('/admin/learning/forget', { requestId });
/** Sent and forgotten: looking at answers must not influence the model. */
async function answers(): Promise<Omit<Answer, 'id'>[]> {
  const collected: Omit<Answer, 'id'>[] = [];
  for (const name of NAMES.slice(0, 2)) {
    const { id, ...answer } = await ask(name);
    collected.push(answer);
    await forget(id);
  }
  return collected;
}

const start = async (): Promise<void> => {
  server = await serving.start(`stories=${model}`, '--context', '256', '--no-corrections');
};
/** Like a power failure. */
async function kill(): Promise<void> {
  server.process.kill('SIGKILL');
  await server.exit;
}
async function restart(): Promise<void> {
  await kill();
  await start();
}
/** Corrections for training and for the held-out test; the request id decides the set. */
async function teach(numTrained: number, numHeldOut: number): Promise<void> {
  const left = { trained: numTrained, heldOut: numHeldOut };
  for (let i = 0; left.trained + left.heldOut > 0; i++) {
    const { id: requestId } = await ask(NAMES[i % NAMES.length]!);
    const use = isHeldOut(requestId) ? 'heldOut' : 'trained';
    if (left[use] === 0) await forget(requestId);
    else {
      left[use]--;
      await call('/admin/learning/feedback', { requestId, correction: 'purple.', waitMs: 60_000 });
    }
  }
}
const history = () => call<{ serves: number; versions: { version: number }[] }>('/admin/learning/history', {});
const run = (loop: string, waitMs: number) => call<Run>('/admin/learning/run', { loop, waitMs });
const latest = async (): Promise<Run> => (await call<{ runs: readonly Run[] }>('/admin/learning/status', {})).runs[0]!;
/** Runs the deep loop for a while and stops it; returns its number of steps. */
async function stepsAfter(delayMs: number): Promise<number> {
  expect((await run('deep', 0)).state).toBe('running');
  await sleep(delayMs);
  await call('/admin/learning/cancel', {});
  let ended = await latest();
  while (ended.state === 'running') ended = await latest();
  expect(ended.state).toBe('cancelled');
  return Number(/stopped after (\d+) steps/.exec(ended.reason!)?.[1] ?? 0);
}

beforeAll(async () => {
  serving = createServeFolder({ contextLength: 128 });
  if (canRun) await start();
});
afterAll(() => serving.dispose());

describe.skipIf(!canRun)('a killed server', () => {
  let [plain, taught, learned]: Awaited<ReturnType<typeof answers>>[] = [];

  test("[LE8] serves the instant loop's state if killed while the background loop trains", async () => {
    plain = await answers();
    await teach(14, 4);
    taught = await answers();
    expect(taught).not.toEqual(plain);
    expect((await run('background', 0)).state).toBe('running');
    await sleep(30); // Nothing else in between: it takes less than a second.
    await restart();
    expect(await answers()).toEqual(taught);
    expect(await history()).toMatchObject({ serves: 0, versions: [] });
  });

  test('[LE9] has a complete background version as soon as it is visible', async () => {
    await run('background', 0);
    // Reads the state first: a run that ends between the two has its version.
    for (let { state } = await latest(); (await history()).serves === 0; { state } = await latest()) {
      expect(state).toBe('running');
    }
    await restart();
    expect(await history()).toMatchObject({ serves: 1, versions: [{ version: 1 }] });
    expect(await call('/admin/learning/export', {})).toMatchObject({ version: 1 });
    expect(await answers()).not.toEqual(taught);
  });

  test('[LE10] serves the version before the deep loop, to the bit, and the loop resumes where it was', async () => {
    const before = await answers();
    let numSteps = 0;
    // More than the first moments of a restarted run.
    for (let delayMs = 60; numSteps < 4; delayMs *= 2) numSteps = await stepsAfter(delayMs);
    expect((await run('deep', 0)).state).toBe('running');
    await restart();
    // Before anything else: forgetting removes half-trained state.
    let again = 0;
    for (let delayMs = 20; again === 0; delayMs *= 2) again = await stepsAfter(delayMs);
    expect(again).toBeGreaterThanOrEqual(numSteps);
    expect(await answers()).toEqual(before);
    expect(await history()).toMatchObject({ serves: 1, versions: [{ version: 1 }] });
    let deep = await run('deep', 20_000);
    while (deep.state === 'running') deep = await run('deep', 20_000);
    expect(deep).toMatchObject({ state: 'done', report: { version: 2, isAccepted: true } });
    learned = await answers();
    expect(learned).not.toEqual(before);
  });

  test('[LE11] local commands run a loop, export the active version, and the adapters commands read it', async () => {
    server.process.kill('SIGTERM');
    expect(await server.exit).toBe(0);
    const command = (...args: string[]) =>
      runCommand([...args, '--json'], { environment: { ...serving.environment, HF_HUB_OFFLINE: '1' } });
    const json = async (...args: string[]): Promise<Record<string, unknown>> =>
      JSON.parse((await command(...args)).stdout) as Record<string, unknown>;
    const modelArgs = ['--model', `stories=${model}`];
    const message = 'nothing was rated since the version that serves';
    expect(await json('learn', 'run', ...modelArgs)).toMatchObject({
      state: 'done',
      reason: message,
      parts: [
        { part: 'model', state: 'kept', reason: message },
        { part: 'reranking', state: 'kept' },
        { part: 'routing', state: 'absent', reason: expect.stringContaining('requires --url') as string },
      ],
    });
    expect(await command('learn', 'run', '--of', 'routing')).toMatchObject({
      status: 1,
      stdout: expect.stringContaining('requires --url') as string,
    });
    const out = `${serving.data}-learned.gguf`;
    expect(await json('learn', 'export', out, ...modelArgs)).toMatchObject({ path: out, version: 2 });
    const answer = async (...more: string[]): Promise<unknown> =>
      (await json('run', model, promptOf(NAMES[0]!), '--temperature', '0', '--max-tokens', '8', ...more))['text'];
    expect(await answer('--adapter', out)).toBe(learned![0]!.text);
    expect(plain![0]!.text).not.toBe(learned![0]!.text);
    expect(await json('learn', 'rollback', '0', ...modelArgs)).toEqual({
      model: 'stories',
      serves: null,
      numCorrections: expect.any(Number) as number,
    });
    expect(await command('learn', 'export', out, ...modelArgs)).toMatchObject({ status: 1 });
  });
});
