import { refusal } from './errors.ts';

/** Which pages in browsers may call the server. */
export interface BrowserGuardOptions {
  /** Names the server answers to, without ports; null: any. */
  readonly hosts: readonly string[] | null;
  /** Sites whose pages may call it: origins, or `*` for all. */
  readonly corsOrigins: readonly string[];
}

/** Keeps web pages away: from a name that was bent to this address, and from other sites. */
export interface BrowserGuard {
  /** Throws 403 for a host or an origin that is not allowed. */
  check(request: Request): void;
  /** What a browser wants to see on the answer; none for others. */
  headersFor(request: Request): Readonly<Record<string, string>>;
}

export function createBrowserGuard({ hosts, corsOrigins }: BrowserGuardOptions): BrowserGuard {
  const isAllowed = (origin: string): boolean => corsOrigins.includes('*') || corsOrigins.includes(origin);
  return {
    check(request) {
      const host = request.headers.get('host') ?? new URL(request.url).host;
      if (hosts !== null && !hosts.includes(nameOf(host))) {
        throw refusal(
          403,
          'host_not_allowed',
          `this server does not answer to the host ${JSON.stringify(host.slice(0, 200))}`,
        );
      }
      const origin = request.headers.get('origin');
      if (origin === null || isAllowed(origin)) return;
      // A page of our own: the browser sends its origin with every POST.
      if (URL.canParse(origin) && new URL(origin).host === host) return;
      throw refusal(
        403,
        'origin_not_allowed',
        `pages of ${JSON.stringify(origin.slice(0, 200))} may not call this server`,
      );
    },
    headersFor(request): Readonly<Record<string, string>> {
      const origin = request.headers.get('origin');
      if (origin === null || !isAllowed(origin)) return {};
      return {
        'access-control-allow-origin': origin,
        'access-control-allow-headers': request.headers.get('access-control-request-headers') ?? '*',
        'access-control-allow-methods': 'GET, POST, DELETE',
        'access-control-expose-headers': 'x-request-id, retry-after',
        'access-control-max-age': '600',
        vary: 'origin',
      };
    },
  };
}

/** Without the port; `[::1]:80` keeps its brackets. */
function nameOf(host: string): string {
  return host.replace(/:\d{1,5}$/, '').toLowerCase();
}
