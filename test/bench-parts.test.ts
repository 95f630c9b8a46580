// A failing part of a bench is reported and does not stop the others.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { addFindings, createFindings, showFindings } from '../bench/support/learn/findings.ts';
import { runInProcess, runParts, runPartsApart, showOutcomes } from '../bench/support/learn/run-parts.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ruvllm-parts-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const quietly = async <T>(work: () => Promise<T>): Promise<{ result: T; errors: string }> => {
  const spy = vi.spyOn(console, 'error').mockImplementation(() => {});
  try {
    const result = await work();
    return { result, errors: spy.mock.calls.flat().join('\n') };
  } finally {
    spy.mockRestore();
  }
};
const linesOf = (work: () => void): string[] => {
  const spy = vi.spyOn(console, 'log').mockImplementation(() => {});
  try {
    work();
    return spy.mock.calls.map(([line]) => String(line));
  } finally {
    spy.mockRestore();
  }
};

test('reports the error of one part and runs the next', async () => {
  const ran: string[] = [];
  const parts = ['first', 'broken', 'last'].map((name) => ({
    name,
    async run() {
      ran.push(name);
      if (name === 'broken') throw new Error('no data');
    },
  }));
  const { result, errors } = await quietly(() => runParts(parts, () => {}));
  expect(ran).toEqual(['first', 'broken', 'last']);
  expect(result.map(({ error }) => error)).toEqual([null, 'no data', null]);
  expect(errors).toContain('error: broken: Error: no data');
  expect(linesOf(() => showOutcomes(result))[3]).toMatch(/^\| broken .*failed: no data/);
});

test('a group of parts fails if one of its parts failed', async () => {
  const inner = [{ name: 'a', seconds: 1, cpuSeconds: 1, error: null }, { name: 'b', seconds: 2, cpuSeconds: 3, error: 'no data' }]; // prettier-ignore
  const outcomes = await runParts([{ name: 'whole', run: async () => inner }, { name: 'fine', run: async () => [inner[0]!] }], () => {}); // prettier-ignore
  expect(outcomes.map(({ name, error }) => [name, error])).toEqual([
    ['whole', 'b: no data'],
    ['whole, a', null],
    ['whole, b', 'no data'],
    ['fine', null],
    ['fine, a', null],
  ]);
});

test('unmeasured figures are null, measured ones have interval and control', () => {
  const findings = createFindings(['gain', 'time']);
  const rows = { gain: { value: '0.5', interval: '0.4 … 0.6', control: 'shuffled: 0.0' } };
  addFindings(findings, { figures: { extra: true, gain: 0.5 }, rows });
  expect(JSON.stringify(findings.figures)).toBe('{"gain":0.5,"time":null,"extra":true}');
  const lines = linesOf(() => showFindings(findings, ['gain', 'time']));
  expect(lines[2]).toMatch(/gain +\| 0\.5 +\| 0\.4 … 0\.6 +\| shuffled: 0\.0/);
  expect(lines[3]).toMatch(/time +\| not measured/);
});

test('the process of a part reports its results, also on failure; if it dies, that is an error and the next runs', async () => {
  const file = join(folder, 'part.mjs');
  writeFileSync(
    file,
    `const [, name] = process.argv.slice(2);
     if (name === 'die') process.kill(process.pid, 'SIGKILL');
     else {
       const findings = { figures: { [name]: 1, other: null }, rows: {} };
       const outcomes = [{ name, seconds: 1, cpuSeconds: 1, error: name === 'half' ? 'no data' : null }];
       process.send({ findings, outcomes }, () => process.exit(1));
     }`,
  );
  const message = await runInProcess(file, ['--part', 'half']);
  expect(message.outcomes[0]!.error).toBe('no data');
  const findings = createFindings(['half', 'die', 'whole', 'other']);
  findings.figures['other'] = 7;
  const names = ['half', 'die', 'whole'];
  const { result, errors } = await quietly(() => runPartsApart({ file, args: [] }, names, findings, () => {}));
  const why = 'its process ended with SIGKILL without a result';
  expect(result.map(({ error }) => error)).toEqual(['no data', why, null]);
  expect(errors).toContain(`error: die: ${why}`);
  expect(findings.figures).toEqual({ half: 1, die: null, whole: 1, other: 7 });
});
