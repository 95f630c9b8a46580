/** Headers of one connection (RFC 9110, 7.6.1), and those that Node writes itself. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'host',
  'content-length',
  'expect',
  'proxy-connection',
]);

/** Who the client is, and through whom it came: nodes must not believe a client, and the gateway adds its own `via`. */
const ORIGIN = new Set(['forwarded', 'x-real-ip', 'via']);
/** The span of the request adds its own; an invalid one of a client goes no further. */
const TRACE = new Set(['traceparent', 'tracestate']);
const ORIGIN_PREFIX = 'x-forwarded-';

/** Only the gateway checks pages of browsers: a node would compare their origin with its own address. */
const BROWSER = new Set(['origin', 'referer', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest']);

/** Headers between gateway and nodes; clients can neither send nor see them. */
export const FLEET_PREFIX = 'x-ruvllm-fleet-';

/** The headers of a request to a node. */
export function requestHeaders(headers: Headers): Record<string, string> {
  const kept: Record<string, string> = {};
  const named = namedBy(headers.get('connection'));
  for (const [name, value] of headers) {
    if (
      isPrivate(name, named) ||
      BROWSER.has(name) ||
      TRACE.has(name) ||
      ORIGIN.has(name) ||
      name.startsWith(ORIGIN_PREFIX)
    )
      continue;
    kept[name] = value;
  }
  return kept;
}

/** Names of further headers of the connection; null: none, as in nearly every request. */
function namedBy(connection: string | null | undefined): ReadonlySet<string> | null {
  if (connection === null || connection === undefined || PLAIN_CONNECTION.test(connection)) return null;
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
}

const PLAIN_CONNECTION = /^(?:keep-alive|close)$/i;

const isPrivate = (name: string, named: ReadonlySet<string> | null): boolean =>
  HOP_BY_HOP.has(name) || name.startsWith(FLEET_PREFIX) || named?.has(name) === true;

/** The headers of a response to a client. */
export function responseHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const kept: Record<string, string> = {};
  const named = namedBy(headers['connection']);
  for (const [name, value] of Object.entries(headers)) {
    if (!isPrivate(name, named)) kept[name] = value;
  }
  return kept;
}
