import { RuvLLMError, type ErrorCode } from '../../../core/errors.ts';

interface Cause {
  readonly code: ErrorCode;
  readonly isRetryable: boolean;
}

const LOST: Cause = { code: 'io', isRetryable: true };
const REFUSED: Cause = { code: 'invalid_option', isRetryable: false };

/** By SQLSTATE and by the codes of Node's sockets; the first match counts. */
const CAUSES: readonly (readonly [RegExp, Cause])[] = [
  // 25006: the server became a standby, and another one is the primary now.
  [/^(08...|57P0[1-5]|53[02]00|25006)$/, LOST],
  [/^(ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOENT)$/, LOST],
  [/^53100$/, { code: 'disk_full', isRetryable: true }],
  [/^53[34]00$/, { code: 'overloaded', isRetryable: true }],
  [/^(57014|25P0[34])$/, { code: 'deadline_exceeded', isRetryable: true }],
  [/^(40001|40P01|55P03)$/, { code: 'conflict', isRetryable: true }],
  [/^28...$/, REFUSED],
  [/^3D000$/, { code: 'not_found', isRetryable: false }],
  [/^(42501|XX...|58...|0A000)$/, { code: 'io', isRetryable: false }],
  [/^(\w*CERT\w*|\w*SELF_SIGNED\w*|ERR_TLS\w+|ERR_SSL\w+|UNABLE_TO_\w+)$/, REFUSED],
];

/** Errors of the driver without a code. */
const MESSAGES: readonly (readonly [RegExp, Cause])[] = [
  [/query read timeout/i, { code: 'deadline_exceeded', isRetryable: true }],
  [/connection terminated|not queryable|timeout exceeded when trying to connect|connection ended|client was closed/i, LOST], // prettier-ignore
  [/does not support SSL|password must be a string/i, REFUSED],
];

/**
 * An error of the server or the connection. Without the original as cause, because drivers attach the statement's values and
 * the connection's options to it.
 */
export function toPostgresError(error: unknown, redact: (text: string) => string): RuvLLMError {
  if (error instanceof RuvLLMError) return error;
  // When all addresses of a host refuse, the error has no message of its own.
  const first = error instanceof AggregateError && error.message === '' ? (error.errors[0] as unknown) : error;
  const message = first instanceof Error ? first.message : String(first);
  const sqlState = String((first as { code?: unknown } | null)?.code ?? '');
  const cause =
    CAUSES.find(([pattern]) => pattern.test(sqlState))?.[1] ??
    MESSAGES.find(([pattern]) => pattern.test(message))?.[1] ??
    ({ code: 'internal', isRetryable: false } satisfies Cause);
  return new RuvLLMError(cause.code, `the memory's PostgreSQL: ${redact(message)}`, {
    data: { sqlState, isConnectionLost: cause === LOST },
    isRetryable: cause.isRetryable,
  });
}

export const sqlStateOf = (error: unknown): string =>
  error instanceof RuvLLMError ? String(error.data['sqlState'] ?? '') : '';

/** Serialization failure and deadlock: the server has rolled back this transaction. */
const UNDONE = ['40001', '40P01'];
const MAX_ATTEMPTS = 6;

/** Repeats a transaction that the server rolled back in favour of another. */
export async function withRetries<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (attempt >= MAX_ATTEMPTS || !UNDONE.includes(sqlStateOf(error))) throw error;
    }
  }
}
