import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { parseConnectionString } from './connection-string.ts';
import { openPostgresMemory } from './postgres.ts';

test('[PG10] the password is taken out of messages, as it is written and as it is meant', () => {
  const target = parseConnectionString('postgresql://me:p%2Fw%C3%B6rd@host:5433/base?sslmode=require', { PGPASSWORD: 'other' }); // prettier-ignore
  expect(target.shown).toBe('host:5433/base');
  expect(target.redact('no p%2Fw%C3%B6rd, no p/wörd, no other; host stays')).toBe('no ***, no ***, no ***; host stays');
  expect(target.redact(`cannot open ${target.connectionString}`)).toBe('cannot open ***');
  const inQuery = parseConnectionString('postgres://host/base?user=me&password=s3cret');
  expect(inQuery.redact('s3cret')).toBe('***');
  expect(parseConnectionString('postgres://host/base').redact('as it is')).toBe('as it is');
});

test.each([
  'mysql://me:s3cret@host/base',
  'host=somewhere password=s3cret',
  'postgres://me:s3cret@host:notaport/base',
  'postgres://me:s3cret%@host/base',
  `postgres://me:s3cret@host/${'x'.repeat(5000)}`,
  { password: 's3cret' } as never,
])('[PG10] what is no address is refused, and not shown', async (connectionString) => {
  const masterKey = { key: new Uint8Array(32) };
  const error: unknown = await openPostgresMemory({ connectionString, masterKey }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'invalid_option', data: { option: 'connectionString' } });
  expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('s3cret');
});

test('[PG10] unknown options and limits out of range are refused', async () => {
  const options = { connectionString: 'postgres://127.0.0.1:1/base', masterKey: { key: new Uint8Array(32) } };
  for (const change of [
    { colour: 1 },
    { maxConnections: 0 },
    { statementTimeoutMs: 0.5 },
    { vectors: 'plain' },
    { schema: 'pg_x' },
    { schema: 'a"b' },
  ]) {
    // prettier-ignore
    const option = Object.keys(change)[0]!;
    await expect(openPostgresMemory({ ...options, ...change } as never)).rejects.toMatchObject({ code: 'invalid_option', data: { option } }); // prettier-ignore
  }
});
