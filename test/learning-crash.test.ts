// A server that is killed while a loop runs, as a process with a real model: the old version serves, to the bit.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isHeldOut } from '../src/learning/sona/examples.ts';
import { isServerBuilt } from './support/dist-server.ts';
import { createServeFolder, type ServeFolder, type ServeProcess } from './support/serve-process.ts';

const bin = fileURLToPath(new URL('../bin/ruvllm.mjs', import.meta.url));
const model = fileURLToPath(new URL('../../shared/models/stories15M-q8_0.gguf', import.meta.url));
const canRun = isServerBuilt && existsSync(model);
if (!canRun) console.log('skipped: they need dist/ and ../shared/models/stories15M-q8_0.gguf');

const NAMES = [
  'zog',
  'mip',
  'tarn',
  'bell',
  'dorf',
  'hut',
  'lamp',
  'pond',
  'rock',
  'sled',
  'fern',
  'kite',
  'moth',
  'oak',
];
let serving: ServeFolder;
let server: ServeProcess;

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

async function ask(name: string, maxTokens = 8): Promise<{ id: string; text: string }> {
  const prompt = `Once upon a time there was a ${name}. The ${name} was`;
  const body = await call<{ id: string; choices: { text: string }[] }>('/v1/completions', { model: 'stories', prompt, max_tokens: maxTokens, temperature: 0 }); // prettier-ignore
  return { id: body.id, text: body.choices[0]!.text };
}
/** Asked and forgotten: what is only looked at must not say how the model should stay. */
async function answers(): Promise<string[]> {
  const asked = await Promise.all(NAMES.slice(0, 4).map((name) => ask(name)));
  for (const { id } of asked) await call('/admin/learning/forget', { requestId: id.replace('cmpl-', '') });
  return asked.map(({ text }) => text);
}

const start = async (): Promise<void> => {
  server = await serving.start(`stories=${model}`, '--context', '256');
};
/** As when the power goes. */
async function kill(): Promise<void> {
  server.process.kill('SIGKILL');
  await server.exit;
}
/** Until enough of them are held out to judge by. */
async function teach(correction: (name: string) => string): Promise<void> {
  let numHeldOut = 0;
  for (let i = 0; i < 58 && (numHeldOut < 5 || i < 20); i++) {
    const name = NAMES[i % NAMES.length]!;
    const requestId = (await ask(name)).id.replace('cmpl-', '');
    numHeldOut += Number(isHeldOut(requestId));
    await call('/admin/learning/feedback', { requestId, correction: correction(name), waitMs: 60_000 });
  }
}
const historyOf = () => call<{ serves: number; versions: { version: number }[] }>('/admin/learning/history', {});

beforeAll(async () => {
  serving = createServeFolder({ contextLength: 128 });
  if (canRun) await start();
});
afterAll(() => serving.dispose());

describe.skipIf(!canRun)('a server that is killed', () => {
  test('[LE8] while loop B trains serves what single answers taught before, and loop B goes on to a version', async () => {
    await teach((name) => `purple. The ${name} was purple all day.`);
    const taught = await answers();
    const cut = call('/admin/learning/run', { waitMs: 50_000 });
    const isCut = expect(cut).rejects.toThrow();
    await new Promise((resolve) => setTimeout(resolve, 500));
    await kill();
    await isCut;
    await start();
    expect(await answers()).toEqual(taught);
    expect(await historyOf()).toMatchObject({ serves: 0, versions: [] });
    const again = () => call<{ state: string; reason: string | null }>('/admin/learning/run', { waitMs: 20_000 });
    let run = await again();
    while (run.state === 'running') run = await again();
    console.log(run.reason);
    expect(run).toMatchObject({ state: 'done', report: { version: 1, isAccepted: true } });
  }, 300_000);

  test('[LE9] while loop C trains serves the version before, to the bit, and after a restart still', async () => {
    const before = await answers();
    const cut = call('/admin/learning/run', { loop: 'deep', waitMs: 50_000 });
    const isCut = expect(cut).rejects.toThrow();
    await new Promise((resolve) => setTimeout(resolve, 800));
    await kill();
    await isCut;
    await start();
    expect(await answers()).toEqual(before);
    expect(await historyOf()).toMatchObject({ serves: 1, versions: [{ version: 1 }] });
    await kill();
    await start();
    expect(await answers()).toEqual(before);
  }, 300_000);

  test('[LE10] local commands run a loop, export what serves, and are understood by the adapters', async () => {
    server.process.kill('SIGTERM');
    expect(await server.exit).toBe(0);
    const run = (...args: string[]) =>
      spawnSync(process.execPath, [bin, ...args, '--json'], { env: { ...serving.environment, HF_HUB_OFFLINE: '1' }, encoding: 'utf8', input: '' }); // prettier-ignore
    const json = (...args: string[]): Record<string, unknown> =>
      JSON.parse(run(...args).stdout) as Record<string, unknown>;
    const named = ['--model', `stories=${model}`];
    expect(json('learn', 'run', ...named)).toMatchObject({
      state: 'done',
      reason: 'nothing was rated since the version that serves',
    });
    const out = `${serving.data}-learned.gguf`;
    expect(json('learn', 'export', out, ...named)).toMatchObject({ path: out, version: 1 });
    const answer = (...more: string[]): string =>
      json('run', model, 'Once upon a time there was a yak. The yak was', '--temperature', '0', '--max-tokens', '6', ...more)['text'] as string; // prettier-ignore
    expect(answer('--adapter', out)).toContain('purple');
    expect(answer()).not.toContain('purple');
    expect(json('learn', 'rollback', '0', ...named)).toEqual({ model: 'stories', serves: null });
    expect(run('learn', 'export', out, ...named)).toMatchObject({ status: 1 });
    expect(json('learn', 'history', ...named)).toMatchObject({ serves: 0, versions: [{ version: 1 }] });
    const { id } = (json('learn', 'status') as { models: { model: string }[] }).models.map((one) => ({ id: one.model }))[0]!; // prettier-ignore
    expect(id).toBe('stories');
  }, 300_000);
});
