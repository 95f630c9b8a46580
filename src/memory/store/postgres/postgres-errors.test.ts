import { expect, test } from 'vitest';
import { RuvLLMError } from '../../../core/errors.ts';
import { toPostgresError, withRetries } from './postgres-errors.ts';

const failure = (code: string, message = 'words') => Object.assign(new Error(message), { code });

test.each([
  ['08006', 'io', true],
  ['57P01', 'io', true],
  ['57P03', 'io', true],
  ['25006', 'io', true],
  ['ECONNREFUSED', 'io', true],
  ['ECONNRESET', 'io', true],
  ['53100', 'disk_full', true],
  ['53300', 'overloaded', true],
  ['57014', 'deadline_exceeded', true],
  ['40P01', 'conflict', true],
  ['55P03', 'conflict', true],
  ['28P01', 'invalid_option', false],
  ['3D000', 'not_found', false],
  ['42501', 'io', false],
  ['XX001', 'io', false],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'invalid_option', false],
  ['42601', 'internal', false],
] as const)('[PG8] %s is %s', (sqlState, code, isRetryable) => {
  expect(toPostgresError(failure(sqlState), String)).toMatchObject({ code, isRetryable, data: { sqlState } });
});

test('[PG8] the driver speaks without a code', () => {
  const codeOf = (message: string) => toPostgresError(new Error(message), String).code;
  expect(codeOf('Connection terminated unexpectedly')).toBe('io');
  expect(codeOf('timeout exceeded when trying to connect')).toBe('io');
  expect(codeOf('Query read timeout')).toBe('deadline_exceeded');
  expect(codeOf('The server does not support SSL connections')).toBe('invalid_option');
  expect(toPostgresError(new AggregateError([failure('ECONNREFUSED')], ''), String)).toMatchObject({ code: 'io', message: "the memory's PostgreSQL: words" }); // prettier-ignore
});

test('[PG10] messages are redacted, and the original is not kept', () => {
  const error = toPostgresError(failure('28P01', 'bad s3cret'), (text) => text.replace('s3cret', '***'));
  expect(error.message).toBe("the memory's PostgreSQL: bad ***");
  expect(error.cause).toBeUndefined();
  const ours = new RuvLLMError('conflict', 'ours');
  expect(toPostgresError(ours, String)).toBe(ours);
});

test('[PG6] repeats only transactions that the server rolled back, a few times', async () => {
  const attempts = async (sqlState: string, numFailures: number): Promise<number> => {
    let count = 0;
    await withRetries(async () => {
      if (++count <= numFailures) throw toPostgresError(failure(sqlState), String);
    }).catch(() => {});
    return count;
  };
  expect(await attempts('40P01', 3)).toBe(4);
  expect(await attempts('40001', 100)).toBe(6);
  expect(await attempts('57P01', 3)).toBe(1);
  expect(await attempts('55P03', 3)).toBe(1);
});
