import { RuvLLMError } from '../../../core/errors.ts';
import { checkChoice } from '../../../core/options.ts';
import { VECTOR_MODES, type VectorMode } from '../../../memory/store/postgres/schema.ts';

/** A PostgreSQL address, with a redaction of its secrets. */
export interface ConnectionTarget {
  readonly connectionString: string;
  /** Of `?vectors=sealed`; null: not named. */
  readonly vectors: VectorMode | null;
  /** For messages: without user, password and options. */
  readonly shown: string;
  redact(text: string): string;
}

const MAX_LENGTH = 4096;

/** Checks a `postgres://` URL; errors show nothing of it. */
export function parseConnectionString(
  text: unknown,
  environment: Readonly<Record<string, string | undefined>> = {},
): ConnectionTarget {
  if (typeof text !== 'string' || text.length > MAX_LENGTH || !/^postgres(ql)?:\/\//.test(text)) refuse();
  const url = URL.canParse(text) ? new URL(text) : refuse();
  const password = url.searchParams.get('password');
  const secrets = [text, url.password, decode(url.password), password, environment['PGPASSWORD']];
  // The longest first: one secret may contain another.
  const unique = [...new Set(secrets)].filter((secret) => secret !== null && secret !== undefined && secret !== '');
  unique.sort((a, b) => b!.length - a!.length);
  const vectors = url.searchParams.get('vectors');
  if (vectors !== null) checkChoice(vectors, 'vectors', VECTOR_MODES);
  // The driver would pass an unknown parameter on.
  url.searchParams.delete('vectors');
  return {
    connectionString: vectors === null ? text : url.href,
    vectors: vectors as VectorMode | null,
    shown: `${url.host}${url.pathname}`,
    redact: (message) => unique.reduce<string>((shown, secret) => shown.replaceAll(secret!, '***'), message),
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
