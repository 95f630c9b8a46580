// Erasure as users see it: a word is planted in every part of a server, then searched for.
import { expect, test } from 'vitest';
import { runEraseScenario } from '../bench/support/erase-scenario.ts';
import { isServerBuilt } from './support/dist-server.ts';

test.skipIf(!isServerBuilt)('[OP11] an erased tenant leaves no trace in the API or in any file', async () => {
  const { planted, parts, numLost } = await runEraseScenario();
  expect(planted.filter(({ traces }) => traces > 0)).toEqual([]);
  expect(numLost).toBe(0);
  expect(parts.every(({ numLeft }) => numLeft === 0)).toBe(true);
  const found = parts.filter(({ numFound }) => numFound > 0).map(({ name }) => name);
  for (const name of ['memory', 'models', 'stored objects']) expect(found).toContain(name);
  expect(found.some((name) => name.startsWith('spill folder'))).toBe(true);
});
