import { expect, test } from 'vitest';
import { recordsOf } from '../test-store.contract.ts';
import { createHarness, numbered, writeAll } from './harness.contract.ts';

test('keeps the stored names of existing databases', async () => {
  const { open, store } = createHarness();
  const log = await open();
  await writeAll(log, numbered(1));
  const records = [...(await recordsOf(store)), ...(await recordsOf(store, 'ruvllm'))];
  const names = records.map(({ kind, fields }) => [kind, fields['name'] ?? null]);
  expect(names.sort()).toEqual([
    ['state', 'witness-head'],
    ['state', 'witness-run'],
    ['witness', null],
  ]);
});
