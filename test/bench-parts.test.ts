// A part of a bench that fails is told, and is not the end of the others.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { addFindings, createFindings, showFindings } from '../bench/support/learn/findings.ts';
import { runInProcess, runParts, showOutcomes, throwFailed } from '../bench/support/learn/run-parts.ts';

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

test('what one part throws is told and noted, and the next runs', async () => {
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
  expect(() => throwFailed(result)).toThrow('broken: no data');
  expect(() => throwFailed([result[0]!, result[2]!])).not.toThrow();
  expect(linesOf(() => showOutcomes(result))[3]).toMatch(/^\| broken .*failed: no data/);
});

test('figures that were not measured are null in their place, measured ones with interval and control', () => {
  const findings = createFindings(['gain', 'time']);
  const rows = { gain: { value: '0.5', interval: '0.4 … 0.6', control: 'shuffled: 0.0' } };
  addFindings(findings, { figures: { extra: true, gain: 0.5 }, rows });
  expect(JSON.stringify(findings.figures)).toBe('{"gain":0.5,"time":null,"extra":true}');
  const lines = linesOf(() => showFindings(findings, ['gain', 'time']));
  expect(lines[2]).toMatch(/gain +\| 0\.5 +\| 0\.4 … 0\.6 +\| shuffled: 0\.0/);
  expect(lines[3]).toMatch(/time +\| not measured/);
});

test('the process of a part tells what it found, also when it fails; one that dies is an error', async () => {
  const file = join(folder, 'part.mjs');
  writeFileSync(
    file,
    `if (process.argv[2] === 'die') process.kill(process.pid, 'SIGKILL');
     else process.send({ findings: { figures: { gain: 1 }, rows: {} }, outcomes: [{ name: 'x', seconds: 1, error: 'half' }] }, () => process.exit(1));`,
  );
  const message = await runInProcess(file, ['live']);
  expect(message.findings.figures).toEqual({ gain: 1 });
  expect(message.outcomes[0]!.error).toBe('half');
  await expect(runInProcess(file, ['die'])).rejects.toThrow(
    'its process ended with SIGKILL before it had told anything',
  );
});
