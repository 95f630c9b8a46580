// The built package in separate processes that are killed: prefixes and conversations survive.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { buildRandomModel } from './support/random-model.ts';

const library = pathToFileURL(join(fileURLToPath(new URL('..', import.meta.url)), 'dist/lib/index.js')).href;
const folder = mkdtempSync(join(tmpdir(), 'ruvllm-restart-'));
const modelPath = join(folder, 'random.gguf');
writeFileSync(modelPath, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 3 }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Answers lines of JSON, [method, …arguments], with lines of JSON; never exits. */
const PROGRAM = `
import { createInterface } from 'node:readline';
import { loadModel } from ${JSON.stringify(library)};
const [, , path, spill] = process.argv;
const options = { temperature: 0, maxTokens: 8, ignoreEos: true };
const model = await loadModel(path, {
  maxContext: 128,
  kernels: 'wasm',
  numThreads: 1,
  kvSpill: { folder: spill, limitBytes: 2 ** 26, masterKey: new Uint8Array(32).fill(5) },
});
const methods = {
  generate: async (prompt, more) => {
    const { tokenIds, usage } = await model.generate(prompt, { ...options, ...more });
    return { tokenIds, cachedTokens: usage.cachedTokens };
  },
  turn: async (id, prompt) => {
    const { tokenIds, usage } = await model.session(id).generate(prompt, options);
    return { tokenIds, cachedTokens: usage.cachedTokens, numTurns: model.session(id).numTurns };
  },
  spill: async () => (await model.stats()).cache.spill,
  dispose: async () => model.dispose(),
};
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...args] = JSON.parse(line);
  console.log(JSON.stringify((await methods[name](...args)) ?? null));
}
`;

interface Process {
  call<T>(...message: unknown[]): Promise<T>;
  kill(signal: NodeJS.Signals): Promise<void>;
}

function startProgram(spill: string): Process {
  const program = join(folder, 'program.mjs');
  writeFileSync(program, PROGRAM);
  const child = spawn(process.execPath, [program, modelPath, spill], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, RUVLLM_CACHE_DIR: join(folder, 'cache') },
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async call<T>(...message: unknown[]) {
      child.stdin.write(`${JSON.stringify(message)}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`the process ended with ${child.exitCode ?? child.signalCode}`);
      return JSON.parse(value) as T;
    },
    async kill(signal) {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill(signal);
      await ended;
    },
  };
}

interface Answer {
  tokenIds: number[];
  cachedTokens: number;
  numTurns?: number;
}

const prompt = Array.from({ length: 50 }, (_, i) => (i * 7) % 90);

async function untilWritten(process: Process): Promise<void> {
  while ((await process.call<{ numWaiting: number }>('spill')).numWaiting > 0);
}

test('after kill -9 the next process finds prefix and conversation and gives the same answer', async () => {
  const spill = join(folder, 'killed');
  const first = startProgram(spill);
  const cold = await first.call<Answer>('generate', prompt);
  const turn = await first.call<Answer>('turn', 'talk', prompt.slice(0, 20));
  expect(cold.cachedTokens).toBe(0);
  await untilWritten(first);
  await first.kill('SIGKILL');

  const second = startProgram(spill);
  const warm = await second.call<Answer>('generate', prompt);
  expect(warm).toEqual({ tokenIds: cold.tokenIds, cachedTokens: 48 });
  const anew = await second.call<Answer>('generate', prompt, { cachePrefix: false });
  expect(anew).toEqual({ tokenIds: cold.tokenIds, cachedTokens: 0 });
  const other = await second.call<Answer>('generate', prompt, { tenant: 'other' });
  expect(other).toEqual({ tokenIds: cold.tokenIds, cachedTokens: 0 });
  const next = await second.call<Answer>('turn', 'talk', [9, 8, 7]);
  expect(next.numTurns).toBe(2);
  const whole = [...prompt.slice(0, 20), ...turn.tokenIds, 9, 8, 7];
  const history = await second.call<Answer>('generate', whole, { cachePrefix: false });
  expect(next.tokenIds).toEqual(history.tokenIds);
  await second.kill('SIGKILL');
});

test('killed at any moment: restored pages are right, and damaged ones are computed again', async () => {
  const spill = join(folder, 'torn');
  const alone = startProgram(join(folder, 'alone'));
  const expected = (await alone.call<Answer>('generate', prompt, { cachePrefix: false })).tokenIds;
  await alone.kill('SIGKILL');
  for (let round = 0; round < 3; round++) {
    const process = startProgram(spill);
    expect((await process.call<Answer>('generate', prompt)).tokenIds).toEqual(expected);
    await process.kill('SIGKILL'); // While pages are being written.
  }
  const process = startProgram(spill);
  expect((await process.call<Answer>('generate', prompt)).tokenIds).toEqual(expected);
  await untilWritten(process);
  await process.kill('SIGKILL');
  const pages = readdirSync(spill, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.page'));
  expect(pages.length).toBeGreaterThanOrEqual(3);
  for (const name of pages) {
    const bytes = readFileSync(join(spill, name));
    bytes[bytes.length >> 1]! ^= 1;
    writeFileSync(join(spill, name), bytes);
  }
  const last = startProgram(spill);
  expect(await last.call<Answer>('generate', prompt)).toEqual({ tokenIds: expected, cachedTokens: 0 });
  expect(await last.call('spill')).toMatchObject({ numCorrupt: 1 });
  await last.kill('SIGKILL');
});
