// Short forms of the campaign against a real server process; npm run campaign runs the long ones.
import { describe, expect, test } from 'vitest';
import { createClock, shorten } from '../campaign/part.ts';
import { PARTS } from '../campaign/parts.ts';
import { growthOfLastHalf } from '../campaign/parts/load.ts';
import { runPart } from '../campaign/run-part.ts';
import { aucBelow } from '../campaign/support/auc.ts';
import { isServerBuilt } from './support/dist-server.ts';
import { campaign } from './support/campaign.ts';

const seed = Date.now() % 100_000;
const log = (): void => {};

/** Rounds in `npm test`. */
const ROUNDS: Readonly<Record<string, number>> = {
  kills: campaign({ short: 2, long: 60 }),
  disk: campaign({ short: 1, long: 12 }),
  corrupt: campaign({ short: 4, long: 60 }),
  hostile: campaign({ short: 12, long: 78 }),
  documents: campaign({ short: 24, long: 192 }),
  mcp: campaign({ short: 20, long: 200 }),
  injections: campaign({ short: 600, long: 40_000 }),
  tenants: 1000,
  fetch: campaign({ short: 60, long: 2000 }),
  timing: campaign({ short: 3, long: 6 }),
  load: campaign({ short: 24, long: 200 }),
  audit: campaign({ short: 32, long: 1200 }),
  drain: campaign({ short: 1, long: 10 }),
};
const MINUTES: Readonly<Record<string, number>> = { load: campaign({ short: 0.04, long: 5 }) };

describe.skipIf(!isServerBuilt)('the campaign', () => {
  test.each(PARTS)(
    '$name finds nothing',
    async (part) => {
      const maxRounds = ROUNDS[part.name]!;
      const { figures, problems } = await runPart(part, { seed, minutes: MINUTES[part.name] ?? 60, maxRounds, log });
      if (figures['skipped'] !== undefined) return;
      expect([seed, part.name, problems]).toEqual([seed, part.name, []]);
      if (part.name === 'kills') expect(figures).toMatchObject({ kills: maxRounds, acked_lost: 0, wrong_data: 0 });
      if (part.name === 'fetch') expect(figures).toMatchObject({ fetch_escapes: 0, file_leaks: 0 });
      if (part.name === 'audit') expect(figures).toMatchObject({ verifies: maxRounds, false_alarms: 0 });
      if (part.name === 'drain') expect(figures).toMatchObject({ drain_cut: 0, drain_refused: 0 });
      if (part.name === 'mcp') expect(figures).toMatchObject({ mcp_messages: maxRounds, mcp_crashes: 0 });
      if (part.name === 'injections')
        expect(figures).toMatchObject({ injections_tried: maxRounds, injections_obeyed: 0 });
      if (part.name === 'load' && figures['watchers_skipped'] === undefined) expect(figures['chats_lost']).toBe(0);
      if (part.name === 'tenants') expect(figures['probes']).toBeGreaterThan(800);
    },
    1_800_000,
  );
});

test('the part names are those of the documentation', () => {
  expect(PARTS.map(({ name }) => name)).toEqual([
    'kills',
    'disk',
    'corrupt',
    'hostile',
    'documents',
    'mcp',
    'injections',
    'tenants',
    'fetch',
    'timing',
    'load',
    'audit',
    'drain',
  ]);
});

test('a part that throws has a problem, and one that cannot run says why', async () => {
  const options = { seed: 1, minutes: 1, log };
  const broken = { name: 'x', summary: '', run: () => Promise.reject(new Error('no server')) };
  expect((await runPart(broken, options)).problems[0]).toContain('no server');
  const skipped = { ...broken, whySkipped: () => 'it needs root' };
  expect(await runPart(skipped, options)).toMatchObject({ figures: { skipped: 'it needs root' }, problems: [] });
});

test('a part ends after its rounds or its time', () => {
  const count = (options: { minutes: number; maxRounds?: number }): number => {
    const clock = createClock({ seed: 1, log, ...options }, 7);
    while (clock.next());
    return clock.rounds;
  };
  expect(count({ minutes: 1 })).toBe(7);
  expect(count({ minutes: 1, maxRounds: 3 })).toBe(3);
  expect(count({ minutes: 0 })).toBe(0);
});

test('lists of problems are shortened by sort', () => {
  const problems = [...Array.from({ length: 9 }, (_, i) => `lost record ${i}`), 'another'];
  expect(shorten(problems)).toEqual([...problems.slice(0, 4), 'and 5 more like the last', 'another']);
});

test('the growth of the last half is its slope as a share of its mean', () => {
  expect(growthOfLastHalf([0, 900, 7, 7, 7, 7])).toBe(0);
  expect(growthOfLastHalf([0, 0, 9, 10, 11])).toBeCloseTo(0.3);
  expect(growthOfLastHalf([0, 0, 11, 10, 9])).toBeCloseTo(-0.3);
  expect(growthOfLastHalf([5])).toBe(0);
});

test('the area under the curve is 1, 0 or a half', () => {
  expect(aucBelow([1, 2], [3, 4])).toBe(1);
  expect(aucBelow([3, 4], [1, 2])).toBe(0);
  expect(aucBelow([1, 1], [1, 1])).toBe(0.5);
  expect(aucBelow([1, 3], [2, 2])).toBe(0.5);
});
