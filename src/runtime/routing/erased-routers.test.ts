import { beforeEach, expect, test } from 'vitest';
import { openTestMemory, type TestMemory } from '../../../test/support/test-memory.ts';
import { configOf, serveConstant } from './routing.contract.ts';
import { createRouting } from './routing.ts';

const question = { turns: ['what is 2 and 3'], embedded: null, similarities: [], isLocalOnly: false, load: 0 };
let memory: TestMemory;
let routing: ReturnType<typeof createRouting>;
const idFor = async (tenant: string): Promise<string> => (await routing.decide(tenant, question)).candidate.id;

beforeEach(async () => {
  memory = await openTestMemory();
  const config = configOf();
  routing = createRouting({ config, memory, now: () => 0, seed: 1, report() {} });
  for (const tenant of ['acme', 'other'])
    await serveConstant(memory, tenant, config, { candidate: 1, confidence: 0.9 });
});

test('[ER7] a router in use is erased with its tenant, and those of others are not', async () => {
  expect([await idFor('acme'), await idFor('other')]).toEqual(['large', 'large']);
  await memory.erase({ tenant: 'acme' });
  expect(routing.tenants()).toEqual(['other']);
  expect([await idFor('acme'), await idFor('other')]).toEqual(['small', 'large']);
});

test('[ER7] after the erasure of a user, the router is read again', async () => {
  await idFor('acme');
  await memory.erase({ tenant: 'acme', userId: 'ann' });
  expect(routing.tenants()).toEqual([]);
});
