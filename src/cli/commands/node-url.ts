import { usageError } from '../usage-error.ts';

/** The address of a node, without a path. */
export function readNodeUrl(flag: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain =
    url !== null && /^https?:$/.test(url.protocol) && /^\/(v1\/?)?$/.test(url.pathname) && url.search === '';
  if (isPlain && url.username === '') return url.origin;
  throw usageError(
    `${flag} must be a URL such as http://10.0.0.2:8080, got ${JSON.stringify(text.slice(0, 200))}`,
    flag,
  );
}
