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
]);

/** Only the gateway checks pages of browsers: a node would compare their origin with its own address. */
const BROWSER = new Set(['origin', 'referer', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest']);

/** Headers between gateway and nodes; clients can neither send nor see them. */
export const FLEET_PREFIX = 'x-ruvllm-fleet-';

/** The headers of a request to a node. */
export function requestHeaders(headers: Headers): Record<string, string> {
  const kept: Record<string, string> = {};
  const named = new Set((headers.get('connection') ?? '').split(',').map((name) => name.trim().toLowerCase()));
  for (const [name, value] of headers) {
    if (HOP_BY_HOP.has(name) || BROWSER.has(name) || named.has(name) || name.startsWith(FLEET_PREFIX)) continue;
    kept[name] = value;
  }
  return kept;
}

/** The headers of a response to a client. */
export function responseHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!HOP_BY_HOP.has(name) && !name.startsWith(FLEET_PREFIX)) kept[name] = value;
  }
  return kept;
}
