import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { campaign } from '../../../../test/support/campaign.ts';
import { START_MS, testMemoryStore, type OpenStore } from '../../../memory/store/memory-store.contract.ts';
import { testMatch } from '../../../memory/store/store-match.contract.ts';
import { testNearest } from '../../../memory/store/store-nearest.contract.ts';
import { directionOf, expectRefusal, idOf, recordOf, vectorOf } from '../../../memory/store/store-setup.contract.ts';
import { createTestServices } from '../../../memory/test-store.contract.ts';
import { createManualSchedule, createTestArchive, numbered, writeAll } from '../../../memory/audit/harness.contract.ts';
import { openAuditLog } from '../../../memory/audit/index.ts';
import { openBusyLog } from '../../../memory/audit/verify-under-writes.contract.ts';
import type { RecordKind } from '../../../memory/types.ts';
import type { PostgresMemoryOptions } from './postgres.ts';
import { findPostgres, type TestServer } from './postgres-server.contract.ts';
import { newSchema, openAt, query, startPglite } from './postgres-setup.contract.ts';

let server: TestServer;
beforeAll(async () => void (server = await startPglite()));
afterAll(() => server.stop());

const opener =
  (options: Partial<PostgresMemoryOptions>): OpenStore =>
  async () => {
    const clock = { ms: START_MS };
    const schema = newSchema();
    const open = () => openAt(server.connectionString, schema, { ...options, now: () => clock.ms });
    const store = await open();
    const reopen = async () => {
      await store.close();
      return open();
    };
    return { store, clock, reopen };
  };

/** A server of this machine is faster, and runs the whole contract in postgres-sessions.test.ts; only pgvector is here alone. */
const isWhole = findPostgres() === null || campaign({ short: false, long: true });
if (isWhole) {
  testMemoryStore('on PostgreSQL with pgvector', opener({}));
  describe('with sealed vectors', () => {
    testNearest(opener({ vectors: 'sealed' }));
    testMatch(opener({ vectors: 'sealed' }));
  });
} else describe('vectors in pgvector', () => testNearest(opener({})));
describe('through the index of pgvector, however few there are', () => testNearest(opener({ exactRows: 0 })));

test('[PG5] vectors of several lengths, also longer than an index can be', async () => {
  const schema = newSchema();
  const store = await openAt(server.connectionString, schema, { exactRows: 0 });
  for (const [i, dim] of [3, 768, 2000, 2001].entries()) {
    const records = [0, 1, 2].map((j) => recordOf(10 * i + j, { vector: directionOf(j, dim), space: `s${dim}` }));
    await store.put(records);
    const near = await store.nearest('alpha', { kinds: ['fact'], vector: directionOf(1, dim), space: `s${dim}`, k: 2 });
    expect(near[0]).toMatchObject({ record: { id: idOf(10 * i + 1) }, similarity: expect.closeTo(1, 6) });
    expect(near).toHaveLength(2);
  }
  // To another length and back: it is in one table at a time.
  await store.put([recordOf(0, { vector: directionOf(1, 768), space: 's768' })]);
  await store.checkIntegrity();
  await store.put([recordOf(0)]);
  await store.checkIntegrity();
  const indexes = await query(server, `SELECT tablename FROM pg_indexes WHERE schemaname = '${schema}' AND indexdef LIKE '%hnsw%'`); // prettier-ignore
  expect(indexes.map(({ tablename }) => tablename).sort()).toEqual(['vector_2000', 'vector_3', 'vector_768']);
});

test('[PG5] k come through the index although few of many pass the filter', async () => {
  const schema = newSchema();
  const store = await openAt(server.connectionString, schema, { exactRows: 0 });
  const numRows = campaign({ short: 1000, long: 3000 });
  for (let start = 0; start < numRows; start += 1000) {
    await store.put(
      Array.from({ length: 1000 }, (_, j) =>
        recordOf(start + j, { fields: { quality: (start + j) % 100 }, vector: directionOf(start + j), space: 's' }),
      ),
    );
  }
  await query(server, `ANALYZE "${schema}".vector_8`);
  const plan = await query(server, `EXPLAIN SELECT "row" FROM "${schema}".vector_8 ORDER BY embedding <=> '[1,0,0,0,0,0,0,0]' LIMIT 10`); // prettier-ignore
  expect(JSON.stringify(plan)).toContain('vector_8_hnsw');
  const near = (k: number) =>
    store.nearest('alpha', { kinds: ['fact'], vector: directionOf(5), space: 's', k, ef: 10, filter: { fields: [{ field: 'quality', is: '=', value: 7 }] } }); // prettier-ignore
  expect(await near(numRows / 125)).toHaveLength(numRows / 125);
  expect(await near(100)).toHaveLength(numRows / 100);
});

test('[PG4] nothing in the clear but numbers, hashes and directions', async () => {
  const schema = newSchema();
  const store = await openAt(server.connectionString, schema);
  const canary = 'canary-7319';
  await store.put([1, 2].map((i) => recordOf(i, { tenant: canary, fields: { source: canary }, body: { [canary]: canary, text: canary }, vector: vectorOf(3, 4), space: canary }))); // prettier-ignore
  await store.putEdges(canary, [{ from: idOf(1), to: idOf(2), relation: canary, weight: 1, confidence: 1 }]);
  const tables = await query(server, `SELECT tablename FROM pg_tables WHERE schemaname = '${schema}'`);
  expect(tables.length).toBeGreaterThanOrEqual(7);
  for (const { tablename } of tables) {
    const rows = await query(server, `SELECT t::text AS all FROM "${schema}"."${String(tablename)}" AS t`);
    const text = JSON.stringify(rows);
    expect(text).not.toContain('canary');
    expect(text).not.toContain(Buffer.from(canary).toString('hex'));
  }
  expect(await query(server, `SELECT embedding::text AS v FROM "${schema}".vector_2`)).toEqual([{ v: '[0.6,0.8]' }, { v: '[0.6,0.8]' }]); // prettier-ignore
});

test('[PG3] another master key is refused, and nothing changed', async () => {
  const schema = newSchema();
  const store = await openAt(server.connectionString, schema);
  await store.put([recordOf(1)]);
  const other = { key: new Uint8Array(32).fill(8) };
  await expectRefusal(openAt(server.connectionString, schema, { masterKey: other }), 'invalid_option', 'another master key'); // prettier-ignore
  await expectRefusal(openAt(server.connectionString, schema, { masterKey: { passphrase: 'x' } }), 'invalid_option', 'requires a master key'); // prettier-ignore
  await expectRefusal(openAt(server.connectionString, schema, { vectors: 'sealed' }), 'invalid_option', 'created with vectors "pgvector"'); // prettier-ignore
  expect(await store.count('alpha', { kinds: ['fact'] })).toBe(1);
  const secret = await openAt(server.connectionString, newSchema(), { masterKey: { passphrase: 'x' } });
  await secret.put([recordOf(1)]);
});

test('[PG2] refuses a newer version, and a schema of another application', async () => {
  const schema = newSchema();
  await (await openAt(server.connectionString, schema)).close();
  await query(server, `INSERT INTO "${schema}".migration VALUES (99, 0)`);
  await expectRefusal(
    openAt(server.connectionString, schema),
    'unsupported',
    'has version 99, this release reads up to 3',
  );
  const foreign = newSchema();
  await query(server, `CREATE SCHEMA "${foreign}"; CREATE TABLE "${foreign}".theirs (a int)`);
  await expectRefusal(openAt(server.connectionString, foreign), 'io', '1 tables of another application');
  expect(await query(server, `SELECT tablename FROM pg_tables WHERE schemaname = '${foreign}'`)).toHaveLength(1);
});

test('[PG13] segments of the audit log are rows, sealed, and gone with their tenant', async () => {
  const schema = newSchema();
  const store = await openAt(server.connectionString, schema);
  const services = createTestServices();
  const { archive: files, ...rest } = { archive: store.archive, store };
  const archive = { ...createTestArchive(), ...files };
  const log = await openAuditLog({ ...rest, services, schedule: createManualSchedule().schedule, archive });
  await writeAll(log, numbered(150), 'alpha');
  await writeAll(log, numbered(3), 'beta');
  services.timeMs += 8 * 86_400_000;
  expect(await log.retain('alpha')).toMatchObject({ numMoved: 150, numSegments: 1 });
  expect(await log.retain('beta')).toMatchObject({ numMoved: 3 });
  expect(await log.verify('alpha')).toMatchObject({ isIntact: true, numChecked: 150, numArchived: 150 });
  const exported = [];
  for await (const { entry } of log.export('alpha')) exported.push(entry.query);
  expect(exported).toEqual(numbered(150).map(({ query: text }) => text));
  const [row] = await query(server, `SELECT name, encode(sealed, 'escape') AS bytes FROM "${schema}".segment`);
  expect(String(row!['bytes'])).not.toContain('query');
  await expectRefusal(files.unseal('beta', (await files.read(String(row!['name'])))!, `witness-segment:${String(row!['name'])}`), 'io', 'cannot be decrypted'); // prettier-ignore
  await store.eraseTenant('alpha');
  expect(await query(server, `SELECT count(*)::int AS n FROM "${schema}".segment`)).toEqual([{ n: 1 }]);
  expect(await log.verify('beta')).toMatchObject({ isIntact: true, numArchived: 3 });
});

test('[WL21] verify finds nothing while entries are written, archived, trimmed and erased', async () => {
  const store = await openAt(server.connectionString, newSchema());
  const archive = { ...createTestArchive(), ...store.archive };
  const { verify } = await openBusyLog({ store, services: createTestServices(), archive, seed: 2 });
  for (let i = 0; i < campaign({ short: 3, long: 300 }); i++) expect((await verify()).brokenAt).toBeNull();
});

test('[PG2] migrates a memory of the first version without loss', async () => {
  const schema = newSchema();
  const first = await openAt(server.connectionString, schema);
  await first.put([
    recordOf(1, { body: { text: 'rhubarb pie' } }),
    recordOf(2, { kind: 'concept', body: { text: 'rhubarb' } }),
  ]);
  await first.close();
  await query(server, `DROP TABLE "${schema}".segment; ALTER TABLE "${schema}".record DROP COLUMN terms, DROP COLUMN num_terms; DELETE FROM "${schema}".migration WHERE version >= 2`); // prettier-ignore
  const store = await openAt(server.connectionString, schema);
  expect(await store.count('alpha', { kinds: ['fact'] })).toBe(1);
  expect(await store.archive.read('none')).toBeNull();
  const match = async (...kinds: RecordKind[]) =>
    (await store.match('alpha', { kinds, text: 'rhubarb', k: 5 })).map(({ record }) => record.id);
  expect(await match('fact')).toEqual([idOf(1)]);
  expect(await match('fact', 'concept')).toEqual([idOf(2), idOf(1)]);
});

test('[PG12] changes the master key of an open memory: both processes keep working, only the new key opens it', async () => {
  const schema = newSchema();
  const [store, other] = [await openAt(server.connectionString, schema), await openAt(server.connectionString, schema)];
  await store.put([recordOf(1)]);
  const to = { key: new Uint8Array(32).fill(9) };
  const writing = Promise.all([2, 3, 4].map((i) => store.put([recordOf(i, { tenant: `t${i}` })])));
  await store.rotateMasterKey(to);
  await writing;
  await expectRefusal(openAt(server.connectionString, schema), 'invalid_option', 'another master key');
  for (const [i, one] of [store, other].entries()) {
    await one.put([recordOf(10 + i), recordOf(1, { tenant: `new ${i}` })]);
    expect((await one.get('alpha', [idOf(1)]))[0]).not.toBeNull();
  }
  await expectRefusal(other.rotateMasterKey(to), 'invalid_option', 'another master key'); // it does not know the one there is
  await expectRefusal(store.rotateMasterKey({ key: new Uint8Array(5) }), 'invalid_option', '32 bytes');
  const again = await openAt(server.connectionString, schema, { masterKey: to });
  expect(await again.count('alpha', { kinds: ['fact'] })).toBe(3);
  for (const tenant of ['t2', 't3', 't4', 'new 0', 'new 1']) expect(await again.count(tenant, { kinds: ['fact'] })).toBe(1); // prettier-ignore
  await store.rotateMasterKey({ passphrase: 'one' });
  await again.checkIntegrity();
});

test('[PG7] an erased tenant has no key and no rows, also when it was interrupted', async () => {
  const schema = newSchema();
  const store = await openAt(server.connectionString, schema);
  await store.put([recordOf(1, { vector: vectorOf(1), space: 's' }), recordOf(1, { tenant: 'beta' })]);
  const [row] = await query(server, `SELECT tenant FROM "${schema}".record WHERE vector_set IS NOT NULL`);
  await query(server, `UPDATE "${schema}".tenant SET key = NULL WHERE no = ${String(row!['tenant'])}`);
  expect(await store.get('alpha', [idOf(1)])).toEqual([null]);
  await expectRefusal(store.put([recordOf(2)]), 'conflict', 'being erased');
  const again = await openAt(server.connectionString, schema);
  await again.put([recordOf(2)]);
  await store.eraseTenant('beta');
  for (const [table, n] of [
    ['tenant', 1],
    ['record', 1],
    ['vector_set', 0],
    ['vector_1', 0],
  ] as const) {
    expect(await query(server, `SELECT count(*)::int AS n FROM "${schema}".${table}`)).toEqual([{ n }]);
  }
});

test('[PG4] a row that was changed behind our back cannot be decrypted', async () => {
  const changes = ['UPDATE "S".record SET version = 7', `UPDATE "S".record SET fields = '{"quality": 2}'`, 'UPDATE "S".edge SET weight = 9', 'DELETE FROM "S".vector_1']; // prettier-ignore
  for (const sql of changes) {
    const schema = newSchema();
    const store = await openAt(server.connectionString, schema);
    await store.put([recordOf(1, { fields: { quality: 1 }, vector: vectorOf(1), space: 's' })]);
    await store.putEdges('alpha', [{ from: idOf(1), to: idOf(1), relation: 'r', weight: 1, confidence: 1 }]);
    await store.checkIntegrity();
    await query(server, sql.replace('"S"', `"${schema}"`));
    await expectRefusal(store.checkIntegrity(), 'io', 'damaged');
  }
});
