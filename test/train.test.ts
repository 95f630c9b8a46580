// `ruvllm train` through the built program, with a real model.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { type CommandOutcome, runCommand } from './support/run-command.ts';

const model = fileURLToPath(new URL('../../shared/models/stories15M-q8_0.gguf', import.meta.url));
const canRun = isServerBuilt && existsSync(model);
if (!canRun) console.log('skipped: they need dist/ and ../shared/models/stories15M-q8_0.gguf');

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-train-'));
afterAll(() => rmSync(folder, { recursive: true }));
const environment = { ...process.env, RUVLLM_HOME: folder, XDG_CACHE_HOME: folder, HF_HUB_OFFLINE: '1' };
const file = (name: string): string => join(folder, name);
const run = (...args: string[]): Promise<CommandOutcome> => runCommand(args, { environment });

interface Report {
  readonly contentHash: string;
  readonly heldOut: { readonly before: number; readonly after: number; readonly low: number; readonly high: number };
}
async function report(...args: string[]): Promise<Report & Record<string, unknown>> {
  const { stdout, status } = await run(...args, '--json');
  expect(status, stdout).toBe(0);
  return JSON.parse(stdout) as Report & Record<string, unknown>;
}

const NAMES = 'cat dog bird fox bear frog duck mouse horse cow pig hen goat owl bee ant crab fish lion wolf'.split(' ');
const prompt = (name: string): string => `Once upon a time there was a ${name}. The ${name} was`;
const jsonl = (name: string, values: readonly object[]): string => {
  writeFileSync(file(name), values.map((value) => `${JSON.stringify(value)}\n`).join(''));
  return file(name);
};
const answers = jsonl('answers.jsonl', NAMES.map((name) => ({ prompt: prompt(name), completion: ' purple.' }))); // prettier-ignore
const PARTS = ['--held-out', '0.4', '--validation', '0.15'];

describe.skipIf(!canRun)('ruvllm train', () => {
  test('[TR11] sft lowers the held-out loss, changes the answer, and its provenance is in the adapter', async () => {
    const out = file('sft.gguf');
    const done = await report('train', 'sft', answers, '--model', model, '--output', out, ...PARTS, '--learning-rate', '0.01', '--schedule', 'linear', '--warmup', '1'); // prettier-ignore
    expect(done).toMatchObject({ method: 'sft', stoppedBy: 'end', data: { name: 'answers.jsonl', numLines: 20 } });
    expect(done.heldOut.after).toBeLessThan(done.heldOut.before / 2);
    expect(done.heldOut.high).toBeLessThan(0);
    expect(existsSync(`${out}.checkpoint`)).toBe(false);
    const answer = async (...more: string[]): Promise<string> =>
      (await run('run', model, prompt('zog'), '--raw', '--temperature', '0', '--max-tokens', '4', ...more)).stdout;
    expect(await answer('--adapter', out)).toContain('purple');
    expect(await answer()).not.toContain('purple');
    const text = readFileSync(out).toString('latin1');
    expect(text).toContain('ruvllm.training');
    expect(text).toContain((done['data'] as { sha256: string }).sha256);
  });

  test.each(['distill', 'dpo', 'kto'])('%s improves its held-out part', async (method) => {
    const pairs = NAMES.map((name) => ({ prompt: prompt(name), chosen: ' very kind.', rejected: ' very mean.' }));
    const data = jsonl(`${method}.jsonl`, pairs);
    const done = await report('train', method, data, '--model', model, '--output', file(`${method}.gguf`), ...PARTS, '--epochs', '2', '--learning-rate', '0.002'); // prettier-ignore
    expect(done['method']).toBe(method);
    expect(done.heldOut.high).toBeLessThan(0);
  });

  test('grpo samples, rewards and reports; without any reward it says so', async () => {
    const tasks = NAMES.map((name) => ({ prompt: `${name}:`, schema: { type: 'object' }, expected: { name } }));
    const options = ['--rounds', '1', '--prompts', '2', '--group-size', '2', '--max-tokens', '6', '--layers', '1'];
    const { stderr, status } = await run('train', 'grpo', jsonl('tasks.jsonl', tasks), '--model', model, '--output', file('grpo.gguf'), ...options); // prettier-ignore
    expect(status, stderr).toBe(0);
    expect(stderr).toMatch(/mean reward of \d+ held-out tasks: 0\.000 → 0\.000/);
    expect(stderr).toContain('no sampled answer earned a reward');
    const refused = await run('train', 'grpo', file('tasks.jsonl'), '--model', model, '--output', file('no.gguf'), '--from', file('sft.gguf'), '--layers', '1'); // prettier-ignore
    expect(refused.status).toBe(2);
    expect(refused.stderr).toContain('14 matrices of rank 4; this run trains 7 of rank 4');
  });

  test('[TR8] a run that Ctrl-C stops resumes to the same weights; another run does not take its checkpoint', async () => {
    const options = [model, ...PARTS, '--epochs', '6', '--evaluate-every', '1'];
    const args = (name: string, ...more: string[]): string[] => ['train', 'sft', answers, '--output', file(name), '--model', ...options, ...more]; // prettier-ignore
    const whole = await report(...args('whole.gguf'));
    const bin = fileURLToPath(new URL('../bin/ruvllm.mjs', import.meta.url));
    const child = spawn(process.execPath, [bin, ...args('half.gguf')], { env: environment, stdio: 'ignore' });
    const exit = new Promise<number | null>((resolve) => child.on('exit', resolve));
    while (!existsSync(file('half.gguf.checkpoint')) && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 20)); // prettier-ignore
    child.kill('SIGINT');
    expect(await exit).toBe(130);
    expect(existsSync(file('half.gguf'))).toBe(false);
    const again = await run(...args('half.gguf'));
    expect(again.status).toBe(1);
    expect(again.stderr).toContain('--resume continues it');
    const other = await run(...args('half.gguf', '--resume', '--learning-rate', '0.5'));
    expect(other.status).toBe(1);
    expect(other.stderr).toContain('belongs to another run: learningRate 0.001, here 0.5');
    const resumed = await report(...args('half.gguf', '--resume'));
    expect(resumed.contentHash).toBe(whole.contentHash);
    expect(resumed.heldOut).toEqual(whole.heldOut);
    expect(existsSync(file('half.gguf.checkpoint'))).toBe(false);
    expect((await run(...args('half.gguf', '--resume'))).stderr).toContain('no checkpoint to resume from');
  });

  test('refuses malformed lines, methods without data, names and numbers before training', async () => {
    const bad = file('bad.jsonl');
    writeFileSync(bad, '{"prompt": "a", "completion": "b"}\n{"prompt": "a", "completion": "b", "wieght": 1}\nnope\n');
    const train = (...more: string[]) => run('train', ...more, '--model', model);
    const out = ['--output', file('no.gguf')];
    const lines = await train('sft', bad, ...out);
    expect(lines.status).toBe(2);
    expect(lines.stderr).toMatch(/2 of 3 lines are malformed: line 2: "wieght".*line 3: not JSON/);
    expect((await train('dpo', answers, ...out)).stderr).toContain('0 training and 0 held-out examples for dpo in 20 lines'); // prettier-ignore
    expect((await train('sft', answers, '--output', file('no.bin'))).stderr).toContain('must end with .gguf');
    expect((await train('sft', answers, ...out, '--epochs', '0')).stderr).toContain('--epochs must be from 1');
    expect((await train('sft', answers, ...out, '--beta', '1')).stderr).toContain(
      '--beta is not an option of train sft',
    );
    expect((await train('sft', answers)).stderr).toContain('requires --output');
    expect((await train('rlhf', answers, ...out)).stderr).toContain('unknown action "rlhf"');
    expect(existsSync(file('no.gguf'))).toBe(false);
  });
});

test.skipIf(!isServerBuilt)(
  'train data writes the parts with their lines as they are, and the provenance',
  async () => {
    const data = jsonl('whole.jsonl', [...NAMES.map((name) => ({ prompt: name, completion: 'x', id: name })), { prompt: 'cat', completion: 'x' }]); // prettier-ignore
    const { status } = await run('train', 'data', data, file('parts'));
    expect(status).toBe(0);
    const linesOf = (name: string): string[] => readFileSync(join(file('parts'), name), 'utf8').split('\n').filter(Boolean); // prettier-ignore
    const parts = ['train.jsonl', 'validation.jsonl', 'held-out.jsonl'].map(linesOf);
    const written = parts.flat().toSorted();
    expect(written).toEqual(readFileSync(data, 'utf8').split('\n').slice(0, 20).toSorted());
    const provenance = JSON.parse(readFileSync(join(file('parts'), 'provenance.json'), 'utf8')) as object;
    expect(provenance).toMatchObject({
      numLines: 21,
      numDuplicates: 1,
      duplicates: [{ line: 21, of: 1, isExact: true }],
    });
    expect((await run('train', 'data', data, file('parts'))).stderr).toContain('exists; choose another folder');
  },
);
