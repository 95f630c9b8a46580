import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Feedback, Learning, Memory, Model } from '../src/index.ts';
import { isHeldOut } from '../src/learning/sona/examples.ts';

const library = (await import(
  new URL('../dist/lib/index.js', import.meta.url).href
)) as typeof import('../src/index.ts');
const path = join(import.meta.dirname, '../../shared/models/stories15M-q8_0.gguf');
const hasModel = existsSync(path);
if (!hasModel) console.log('skipped: ../shared/models/stories15M-q8_0.gguf not found');

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-learning-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const PROMPT = 'Once upon a time there was a zog. The zog was';
const greedy = { temperature: 0, maxTokens: 6 } as const;

interface Opened {
  readonly memory: Memory;
  readonly learning: Learning;
  readonly model: Model;
}

async function open(name = 'a'): Promise<Opened> {
  const memory = await library.openMemory({
    place: join(folder, name),
    masterKey: { key: new Uint8Array(32).fill(7) },
    modelPath: path,
  });
  // No limit that a slow machine could reach before everything is learned.
  const limits = { backgroundLimitMs: 600_000 };
  const learning = await library.openLearning({
    memory,
    corrections: false,
    instantLearningRate: 0.02,
    fisherSamples: 10,
    ...limits,
  });
  const model = await library.loadModel(path, {
    memory,
    learning,
    modelName: 'stories',
    numThreads: 1,
    maxContext: 256,
  });
  return { memory, learning, model };
}

async function close({ memory, learning, model }: Opened): Promise<void> {
  await model.dispose();
  await learning.close();
  await memory.close();
}

async function ask(model: Model, tenant = 'local', more: object = {}): Promise<{ requestId: string; text: string }> {
  const requestId = crypto.randomUUID();
  const { text } = await model.generate(PROMPT, { ...greedy, requestId, tenant, ...more });
  return { requestId, text };
}

/** Audit entries are written asynchronously, and feedback may come first. */
async function rate({ learning }: Pick<Opened, 'learning'>, tenant: string, feedback: Feedback) {
  for (let tries = 0; ; tries++) {
    try {
      return await learning.feedback(tenant, feedback);
    } catch (error) {
      if ((error as { code?: string }).code !== 'not_found' || tries > 6000) throw error;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

/** Request ids decide which are held out; by chance there could be none. */
function idOf(willBeHeldOut: boolean): string {
  for (;;) {
    const id = crypto.randomUUID();
    if (isHeldOut(id) === willBeHeldOut) return id;
  }
}

async function correct({ learning, model }: Opened, correction: string, times: number) {
  const reports = [];
  for (let i = 0; i < times; i++) {
    const { requestId } = await ask(model);
    const receipt = await rate({ learning }, 'local', { requestId, correction });
    reports.push(await receipt.learned);
  }
  return reports;
}

describe.skipIf(!hasModel)('learning from feedback with a real model', () => {
  let opened: Opened;
  let plain: string;
  beforeAll(async () => {
    opened = await open();
    plain = (await ask(opened.model)).text;
  });
  afterAll(() => close(opened));

  test('without feedback nothing changes', async () => {
    const model = await library.loadModel(path, { numThreads: 1, maxContext: 256 });
    expect((await model.generate(PROMPT, greedy)).text).toBe(plain);
    await model.dispose();
    expect((await ask(opened.model)).text).toBe(plain);
  });

  test('a repeated correction becomes the answer, only for this tenant, and after a restart', async () => {
    const reports = await correct(opened, ' purple', 24);
    const outcomes = reports.map(({ outcome }) => outcome);
    expect(outcomes[0]).toBe('learned');
    expect(outcomes.at(-1)).toBe('already-known');
    expect(outcomes.every((outcome) => outcome === 'learned' || outcome === 'already-known')).toBe(true);
    expect(reports.at(-1)!.lossAfter!).toBeLessThan(reports[0]!.lossBefore! - 1);
    const learned = (await ask(opened.model)).text;
    expect(learned).not.toBe(plain);
    expect(learned).toBe(' purple'); // Both of its tokens, then the end.
    expect((await ask(opened.model, 'bob')).text).toBe(plain);
    expect((await ask(opened.model, 'local', { adapter: null })).text).toBe(plain);
    await close(opened);
    opened = await open();
    expect((await ask(opened.model)).text).toBe(learned);
    expect((await ask(opened.model, 'bob')).text).toBe(plain);
  });

  test("rejects feedback for an unknown request or another tenant's", async () => {
    const unknown = opened.learning.feedback('local', { requestId: crypto.randomUUID(), score: 1 });
    await expect(unknown).rejects.toMatchObject({ code: 'not_found' });
    const { requestId } = await ask(opened.model, 'bob');
    await new Promise((resolve) => setTimeout(resolve, 200));
    await expect(opened.learning.feedback('alice', { requestId, score: 1 })).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  test('the background loop learns the common part of corrections in its thread and serves it', async () => {
    const names = ['Anna', 'Ben', 'Carl', 'Dora', 'Emil', 'Finn', 'Gina', 'Hugo', 'Ida', 'Jack', 'Kim', 'Leo', 'Mia', 'Nora', 'Otto', 'Pia', 'Rosa', 'Sam', 'Tina', 'Udo', 'Vera', 'Will', 'Xena', 'Yuri', 'Zoe', 'Amy', 'Bob', 'Cleo', 'Dan', 'Eva', 'Fay', 'Gus']; // prettier-ignore
    const promptOf = (name: string): string => `${name} met a zorblin. The zorblin lived in`;
    for (const [i, name] of names.entries()) {
      const requestId = idOf(i % 4 === 0);
      await opened.model.generate(promptOf(name), { ...greedy, requestId, tenant: 'carol' });
      await opened.learning.settle();
      await rate(opened, 'carol', { requestId, correction: ' a glass tower under the lake.' });
    }
    await opened.learning.settle();
    const request = { ...greedy, tenant: 'carol', maxTokens: 5 };
    const { version, reason } = await opened.learning.sona.backgroundConsolidate('carol', 'stories');
    expect(reason).toContain('the held-out loss falls');
    expect(version).toMatchObject({ isAccepted: true, version: 1 });
    const { text } = await opened.model.generate(promptOf('Mister Green'), request);
    expect(text.startsWith(' a glass tower')).toBe(true);
    expect((await opened.model.generate(promptOf('Mister Green'), { ...request, adapter: null })).text).not.toContain(
      'glass',
    );
  });

  test('a reset restores the model of the file', async () => {
    await opened.learning.sona.reset('local', 'stories');
    expect((await ask(opened.model)).text).toBe(plain);
  });
});
