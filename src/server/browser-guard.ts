import type { MediaType } from '../core/media-type.ts';
import { isReport, readBodyType } from './body-type.ts';
import { refusal } from './errors.ts';

/** Which web pages may call the server. */
export interface BrowserGuardOptions {
  /** Accepted host names without ports; null: any. */
  readonly hosts: readonly string[] | null;
  /** Allowed origins of pages, or `*` for all. */
  readonly corsOrigins: readonly string[];
}

/** Protects against DNS rebinding and pages of other sites. */
export interface BrowserGuard {
  /** Throws a 403 if the host or the origin is not allowed. */
  check(request: Pick<Request, 'headers' | 'url' | 'method'>, bodyType?: MediaType | null): void;
  /** CORS headers of the response; none without an allowed origin. */
  headersFor(request: Pick<Request, 'headers'>): Readonly<Record<string, string>>;
}

export function createBrowserGuard({ hosts, corsOrigins }: BrowserGuardOptions): BrowserGuard {
  const isAllowed = (origin: string): boolean => corsOrigins.includes('*') || corsOrigins.includes(origin);
  return {
    check(request, bodyType = readBodyType(request.headers)) {
      const host = request.headers.get('host') ?? new URL(request.url).host;
      if (hosts !== null && !hosts.includes(nameOf(host))) {
        throw refusal(403, 'host_not_allowed', `the host ${JSON.stringify(host.slice(0, 200))} is not allowed`);
      }
      if (isReport(bodyType))
        throw refusal(403, 'origin_not_allowed', `reports of browsers (${bodyType!.type}) are not allowed`);
      const origin = request.headers.get('origin');
      if (origin === null) return refuseEmbedding(request, corsOrigins.includes('*'));
      if (isAllowed(origin)) return;
      // Same origin: browsers send it with every POST.
      if (URL.canParse(origin) && new URL(origin).host === host) return;
      throw refusal(403, 'origin_not_allowed', `the origin ${JSON.stringify(origin.slice(0, 200))} is not allowed`);
    },
    headersFor(request): Readonly<Record<string, string>> {
      const origin = request.headers.get('origin');
      if (origin === null || !isAllowed(origin)) return {};
      return {
        'access-control-allow-origin': origin,
        'access-control-allow-headers': request.headers.get('access-control-request-headers') ?? '*',
        'access-control-allow-methods': 'GET, POST, DELETE',
        'access-control-expose-headers': 'x-request-id, retry-after, x-ignored-fields',
        'access-control-max-age': '600',
        vary: 'origin',
      };
    },
  };
}

/** Scripts, images and fetches of another site's page without an `Origin`: it could not read the response, but could time it. */
function refuseEmbedding({ headers, method }: Pick<Request, 'headers' | 'method'>, isForAll: boolean): void {
  const site = headers.get('sec-fetch-site');
  const isOtherSite = site === 'cross-site' || site === 'same-site';
  // A link to the dashboard is a navigation; frames are refused by the dashboard's own policy.
  const isLink = headers.get('sec-fetch-mode') === 'navigate' && (method === 'GET' || method === 'HEAD');
  if (isForAll || !isOtherSite || isLink) return;
  throw refusal(403, 'origin_not_allowed', 'requests from pages of other sites are not allowed');
}

/** Without the port; `[::1]:80` keeps its brackets. */
function nameOf(host: string): string {
  return host.replace(/:\d{1,5}$/, '').toLowerCase();
}
