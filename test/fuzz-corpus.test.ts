// Inputs that once reached new code of a parser: none may end in anything but a result or a typed error. The long form also looks
// for new ones, a minute each.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { readCorpus } from '../fuzz/corpus.ts';
import { mutate } from '../fuzz/mutate.ts';
import { findBug } from '../fuzz/run-input.ts';
import { TARGETS } from '../fuzz/targets.ts';
import { createRandom } from '../src/core/random.ts';
import { RuvLLMError } from '../src/core/errors.ts';
import { campaign } from './support/campaign.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

describe.each(TARGETS)('$name', (target) => {
  test('reads or refuses every input of its corpus', async () => {
    const inputs = [
      ...(await target.seeds()).map((bytes, index) => ({ name: `seed ${index}`, bytes })),
      ...readCorpus(target.name),
    ];
    expect(inputs.length).toBeGreaterThan(2);
    for (const { name, bytes } of inputs) expect([name, await findBug(target, bytes)]).toEqual([name, null]);
  });

  test.skipIf(campaign({ short: true, long: false }))(
    'a minute of new inputs finds no bug',
    () => {
      const { status, stdout } = spawnSync(process.execPath, ['scripts/fuzz.mjs', target.name, '--seconds', '60', '--seed', String(Date.now() % 1e6)], { cwd: root, encoding: 'utf8' }); // prettier-ignore
      expect([status, stdout]).toEqual([0, expect.stringContaining('"bugs":0}') as string]);
    },
    600_000,
  );
});

test('everything but a typed error of bad input is a bug', async () => {
  const targetOf = (run: () => unknown) => ({ name: 'x', words: [], seeds: () => [], run });
  const refuse = (code: 'malformed' | 'internal') => () => {
    throw new RuvLLMError(code as never, 'no');
  };
  const empty = new Uint8Array(0);
  expect(await findBug(targetOf(refuse('malformed')), empty)).toBeNull();
  expect(await findBug(targetOf(refuse('internal')), empty)).toContain('no');
  expect(
    await findBug(
      targetOf(() => (null as unknown as { a: number }).a),
      empty,
    ),
  ).toContain('TypeError');
});

test('mutations are the same for the same seed, and change something', () => {
  const input = Uint8Array.from({ length: 64 }, (_, i) => i);
  const run = (): string[] => {
    const random = createRandom(5);
    return Array.from({ length: 50 }, () => Buffer.from(mutate(random, input, input, ['word'])).toString('hex'));
  };
  expect(run()).toEqual(run());
  expect(new Set(run()).size).toBeGreaterThan(40);
});
