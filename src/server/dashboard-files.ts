/** One file of the dashboard as it was built, in every encoding it was packed in. */
export interface DashboardFile {
  readonly contentType: string;
  /** Default 200. */
  readonly status?: number;
  /** With its quotes. */
  readonly etag: string;
  /** Plain, and packed where that is smaller. */
  readonly bodies: { readonly identity: Uint8Array } & Readonly<Partial<Record<'br' | 'gzip', Uint8Array>>>;
}

/** The files of the dashboard by the path they are asked for: `/`, `/assets/…`. Whatever is not listed does not exist. */
export type DashboardFiles = ReadonlyMap<string, DashboardFile>;

/** Answers `/` where the dashboard was not built: a browser would otherwise show "unknown URL" and not what to do. */
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
            '<p>Run <code>npm run build</code>, which shows why, and restart the server. The API at <code>/v1</code> works without it.',
        ),
      },
    },
  ],
]);

/** Best first. */
const ENCODINGS = ['br', 'gzip'] as const;

/** Nothing but our own files runs, is loaded or is called; no other page may frame, submit to or keep a handle on this one. */
const SECURITY_HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const;

/** A year: names of assets carry the hash of what is in them. */
const IMMUTABLE = 'public, max-age=31536000, immutable';

/** The response for a file: packed as the client likes it, or 304 where it has it already. */
export function serveDashboardFile(
  file: DashboardFile,
  { path, headers }: { path: string; headers: Headers },
): Response {
  const encoding = ENCODINGS.find((name) => file.bodies[name] !== undefined && accepts(headers, name)) ?? null;
  const common = {
    ...SECURITY_HEADERS,
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

/** Whether the client takes an encoding: named, and not with a weight of nothing. */
function accepts(headers: Headers, encoding: string): boolean {
  return (headers.get('accept-encoding') ?? '').split(',').some((part) => {
    const [name, ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    return name === encoding && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
  });
}

/** Tags are compared weakly: a proxy that packed the file marks its tag so. */
function hasTag(header: string | null, etag: string): boolean {
  return (header ?? '').split(',').some((tag) => [etag, '*'].includes(tag.trim().replace(/^W\//, '')));
}
