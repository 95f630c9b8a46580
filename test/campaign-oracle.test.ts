// The oracle of the campaign against servers that answer wrongly: a lost write, an unreported loss and a changed value each count as such.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { compareReports } from '../campaign/parts/corrupt.ts';
import { acknowledge, createOracle, type Oracle, type Replaceable } from '../campaign/support/oracle.ts';
import type { Site } from '../campaign/support/site.ts';
import { createFindings, type Findings, verify } from '../campaign/support/verify.ts';
import { createRandom } from '../src/core/random.ts';

const servers: ReturnType<typeof createServer>[] = [];
afterEach(() => servers.splice(0).forEach((server) => server.close()));

const site = { tokens: { alice: 'a', bob: 'b', admin: 'c' } } as unknown as Site;

/** A server that has these ratings and chats, and no records. */
async function check(oracle: Oracle, stored: Readonly<Record<string, object>>): Promise<Findings> {
  const server = createServer((request, response) => {
    const body = request.url === '/admin/memory/list' ? { records: [], next: null } : stored[request.url!];
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body ?? {}));
  }).listen(0, '127.0.0.1');
  servers.push(server);
  await new Promise((resolve) => server.once('listening', resolve));
  const found = createFindings();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await verify(url, site, oracle, found, { random: createRandom(1), isWhole: true });
  return found;
}

function written(...values: readonly string[]): Replaceable {
  const one: Replaceable = { tenant: 'alice', value: null, earlier: new Set(), maybe: null };
  for (const value of values) acknowledge(one, value);
  return one;
}

function oracleOf(values: readonly string[], maybe: string | null = null): Oracle {
  const oracle = createOracle();
  oracle.ratings.set('r', { ...written(...values), maybe });
  oracle.chats.set('c', { ...written(...values), maybe, version: values.length });
  return oracle;
}

const both = (value: string): Record<string, object> => ({ '/v1/feedback/r': { verdict: value }, '/v1/chats/c': { title: value } }); // prettier-ignore
const shapeOf = ({ lost, wrong }: Findings) => ({ lost: lost.map(({ kind }) => kind), numWrong: wrong.length });

test('the last acknowledged value and one without an answer are right', async () => {
  expect(shapeOf(await check(oracleOf(['x', 'y']), both('y')))).toEqual({ lost: [], numWrong: 0 });
  expect(shapeOf(await check(oracleOf(['x'], 'y'), both('y')))).toEqual({ lost: [], numWrong: 0 });
  expect(shapeOf(await check(oracleOf(['x', 'y', 'x']), both('x')))).toEqual({ lost: [], numWrong: 0 });
});

test('an earlier acknowledged value is the loss of the later write, counted once', async () => {
  const oracle = oracleOf(['x', 'y']);
  const found = await check(oracle, both('x'));
  expect(shapeOf(found)).toEqual({ lost: ['rating', 'chat'], numWrong: 0 });
  expect(found.lost[0]!.message).toBe('r is x again, was y');
  expect(shapeOf(await check(oracle, both('x')))).toEqual({ lost: [], numWrong: 0 });
});

test('a value that was never written is wrong data', async () => {
  expect(shapeOf(await check(oracleOf(['x', 'y']), both('z')))).toEqual({ lost: [], numWrong: 2 });
  // The only acknowledged rating was "x": "y" has no earlier write.
  expect(shapeOf(await check(oracleOf(['x']), both('y')))).toEqual({ lost: [], numWrong: 2 });
  expect(shapeOf(await check(oracleOf(['x'], 'y'), both('z')))).toEqual({ lost: [], numWrong: 2 });
  expect(shapeOf(await check(oracleOf(['x']), { '/v1/feedback/r': {}, '/v1/chats/c': {} }))).toEqual({ lost: [], numWrong: 2 }); // prettier-ignore
});

test('missing values are lost', async () => {
  expect(shapeOf(await check(oracleOf(['x']), {}))).toEqual({ lost: ['rating', 'chat'], numWrong: 0 });
});

test('a loss is silent unless /health or the log reports it, and wrong data is never excused', async () => {
  const lost = await check(oracleOf(['x', 'y']), both('x'));
  const wrong = await check(oracleOf(['x']), both('z'));
  const intact = { error: null, health: { status: 200, degraded: [] }, output: 'ready', fileName: 'memory.db-wal', isAuditBroken: false }; // prettier-ignore
  expect(compareReports({ ...intact, found: lost })).toMatchObject({
    silent: expect.stringContaining('2 lost (rating r is x again, was y)') as string,
    wrong: null,
  });
  expect(compareReports({ ...intact, found: createFindings(), error: 'memory/list: 500' }).silent).toContain('500');
  const degraded = { status: 200, degraded: ['memory'] };
  expect(compareReports({ ...intact, found: lost, health: degraded })).toEqual({ silent: null, wrong: null, isReported: true, isLost: true }); // prettier-ignore
  expect(compareReports({ ...intact, found: lost, output: 'memory.db-wal is cut' }).silent).toBeNull();
  expect(compareReports({ ...intact, found: wrong, health: degraded }).wrong).toBe('rating r is z, was x');
});
