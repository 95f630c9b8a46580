/** A built file of the dashboard in all its encodings. */
export interface DashboardFile {
  readonly contentType: string;
  /** Default 200. */
  readonly status?: number;
  /** Includes the quotes. */
  readonly etag: string;
  /** Uncompressed, and compressed where that is smaller. */
  readonly bodies: { readonly identity: Uint8Array } & Readonly<Partial<Record<'br' | 'gzip', Uint8Array>>>;
}

/** Files of the dashboard by URL path: `/`, `/assets/…`, `/engine/…`. */
export type DashboardFiles = Pick<ReadonlyMap<string, DashboardFile>, 'get' | 'keys'>;

/** Served at `/` if the dashboard was not built: says how to build it. */
export const MISSING_DASHBOARD: DashboardFiles = new Map([
  [
    '/',
    {
      contentType: 'text/html; charset=utf-8',
      status: 404,
      etag: '"not-built"',
      bodies: {
        identity: new TextEncoder().encode(
          '<!doctype html><html lang="en"><title>RuvLLM</title><h1>The dashboard was not built</h1>' +
            '<p>If <code>npm start</code> is still building it, reload this page in a few seconds. Otherwise <code>npm run build</code> shows why. The API at <code>/v1</code> works without it.',
        ),
      },
    },
  ],
]);

/** Best first. */
const ENCODINGS = ['br', 'gzip'] as const;

const policyOf = (scripts: string): string =>
  [
    "default-src 'none'",
    `script-src ${scripts}`,
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** Allows only files and calls of this server; other pages cannot frame it or keep a handle on it. */
const SECURITY_HEADERS = {
  'content-security-policy': policyOf("'self'"),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  // These two isolate the page, so that threads of a model in the tab share memory.
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
  'cross-origin-resource-policy': 'same-origin',
} as const;

/** Workers of the engine have a policy of their own: only they compile kernels. */
const ENGINE_HEADERS = {
  ...SECURITY_HEADERS,
  'content-security-policy': policyOf("'self' 'wasm-unsafe-eval'"),
} as const;

/** A year: asset names contain a content hash. */
const IMMUTABLE = 'public, max-age=31536000, immutable';

/** The response for a file in the best encoding the client accepts, or 304. */
export function serveDashboardFile(
  file: DashboardFile,
  { path, headers }: { path: string; headers: Headers },
): Response {
  const encoding = ENCODINGS.find((name) => file.bodies[name] !== undefined && accepts(headers, name)) ?? null;
  const common = {
    ...(path.startsWith('/engine/') ? ENGINE_HEADERS : SECURITY_HEADERS),
    etag: file.etag,
    vary: 'accept-encoding',
    'cache-control': path.startsWith('/assets/') ? IMMUTABLE : 'no-cache',
  };
  if (hasTag(headers.get('if-none-match'), file.etag)) return new Response(null, { status: 304, headers: common });
  const body = file.bodies[encoding ?? 'identity']!;
  return new Response(body as Uint8Array<ArrayBuffer>, {
    status: file.status ?? 200,
    headers: {
      ...common,
      'content-type': file.contentType,
      'content-length': String(body.byteLength),
      ...(encoding === null ? {} : { 'content-encoding': encoding }),
    },
  });
}

/** Whether the encoding is listed without q=0. */
function accepts(headers: Headers, encoding: string): boolean {
  return (headers.get('accept-encoding') ?? '').split(',').some((part) => {
    const [name, ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    return name === encoding && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
  });
}

/** Weak comparison: a proxy that compresses the file marks its tag as weak. */
function hasTag(header: string | null, etag: string): boolean {
  return (header ?? '').split(',').some((tag) => [etag, '*'].includes(tag.trim().replace(/^W\//, '')));
}
