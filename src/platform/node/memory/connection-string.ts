import { RuvLLMError } from '../../../core/errors.ts';

/** Where a PostgreSQL is, and how its secrets are kept out of messages. */
export interface ConnectionTarget {
  readonly connectionString: string;
  /** For messages: without user, password and options. */
  readonly shown: string;
  redact(text: string): string;
}

const MAX_LENGTH = 4096;

/** Checks a `postgres://` URL; no message shows anything of one that is refused. */
export function parseConnectionString(
  text: unknown,
  environment: Readonly<Record<string, string | undefined>> = {},
): ConnectionTarget {
  if (typeof text !== 'string' || text.length > MAX_LENGTH || !/^postgres(ql)?:\/\//.test(text)) refuse();
  const url = URL.canParse(text) ? new URL(text) : refuse();
  const password = url.searchParams.get('password');
  const secrets = [text, url.password, decode(url.password), password, environment['PGPASSWORD']];
  // The longest first: what contains another one must not be left in parts.
  const known = [...new Set(secrets)].filter((secret) => secret !== null && secret !== undefined && secret !== '');
  known.sort((a, b) => b!.length - a!.length);
  return {
    connectionString: text,
    shown: `${url.host}${url.pathname}`,
    redact: (message) => known.reduce<string>((shown, secret) => shown.replaceAll(secret!, '***'), message),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return refuse();
  }
}

function refuse(): never {
  throw new RuvLLMError('invalid_option', 'connectionString must be a URL like postgres://user@host:5432/database', {
    data: { option: 'connectionString' },
  });
}
