// `ruvllm serve --engine-process`: a fault of native code costs the requests of one engine, not the server.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from '../support/dist-server.ts';
import { createServeFolder, type ServeFolder, type ServeProcess } from '../support/serve-process.ts';

let folder: ServeFolder;
beforeAll(() => {
  folder = createServeFolder({ contextLength: 4096 });
});
afterEach(() => folder.killAll());
afterAll(() => folder.dispose());

const PROMPT = 'the same long beginning of every prompt, '.repeat(20);

const ask = (url: string, options: object): Promise<Response> =>
  fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny', prompt: PROMPT, max_tokens: 4, ...options }),
  });

interface Answer {
  readonly choices: readonly { readonly text: string }[];
  readonly usage: { readonly prompt_tokens_details: { readonly cached_tokens: number } };
}

/** The child processes of a server: its engines. */
function enginesOf(server: ServeProcess): number[] {
  const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  const pairs = rows.map((row) => row.trim().split(/\s+/).map(Number));
  return pairs.flatMap(([pid, parent]) => (parent === server.process.pid ? [pid!] : []));
}

const metric = async (url: string, name: string): Promise<number> =>
  Number(new RegExp(`^${name}{model="tiny"} (.*)$`, 'm').exec(await (await fetch(`${url}/metrics`)).text())?.[1]);

describe.skipIf(!isServerBuilt)('ruvllm serve --engine-process', () => {
  test('[M12] a fault ends the requests of its engine; the next request finds the spilled prefix', async () => {
    const spill = ['--kv-spill', join(folder.data, 'spill')];
    const server = await folder.start(folder.model, '--engine-process', '--no-memory', ...spill);
    const { url } = server;
    const [engine] = enginesOf(server);
    const before = (await (await ask(url, { seed: 1 })).json()) as Answer;
    expect(before.usage.prompt_tokens_details.cached_tokens).toBe(0);
    await expect.poll(() => metric(url, 'ruvllm_spill_bytes')).toBeGreaterThan(0);

    const stream = await ask(url, { prompt: 'another', max_tokens: 4000, ignore_eos: true, stream: true });
    const decoder = new TextDecoder();
    let text = '';
    for await (const part of stream.body!) {
      if (text === '') process.kill(engine!, 'SIGSEGV');
      text += decoder.decode(part, { stream: true });
    }
    expect(text.trim().split('\n\n').at(-1)).toMatch(/was ended by SIGSEGV.*"code":"engine_crashed"/);

    const after = (await (await ask(url, { seed: 1 })).json()) as Answer;
    expect(after.choices[0]!.text).toBe(before.choices[0]!.text);
    expect(after.usage.prompt_tokens_details.cached_tokens).toBeGreaterThan(16);
    expect(await metric(url, 'ruvllm_engine_losses_total')).toBe(1);
    expect(server.process.exitCode).toBe(null);
    expect(enginesOf(server)).not.toContain(engine);
  });

  test('answers with a grammar, whose tables are in shared memory, and ends its engine with SIGTERM', async () => {
    const server = await folder.start(folder.model, '--engine-process', '--no-memory');
    const engines = enginesOf(server);
    expect(engines).toHaveLength(1);
    const response = await ask(server.url, { grammar: 'root ::= "yes" | "no"', max_tokens: 8 });
    expect(((await response.json()) as Answer).choices[0]!.text).toMatch(/^(yes|no)$/);
    server.process.kill('SIGTERM');
    expect(await server.exit).toBe(0);
    await expect.poll(() => isRunning(engines[0]!)).toBe(false);
  });

  test('an engine ends with a killed server', async () => {
    const server = await folder.start(folder.model, '--engine-process', '--no-memory');
    const [engine] = enginesOf(server);
    server.process.kill('SIGKILL');
    await server.exit;
    await expect.poll(() => isRunning(engine!)).toBe(false);
  });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
