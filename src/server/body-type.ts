import { type MediaType, parseMediaType } from '../core/media-type.ts';

/** JSON by name. Pages of other sites can send none of them without asking first (a CORS preflight). */
const JSON_TYPES: ReadonlySet<string> = new Set([
  'application/json',
  'application/ld+json',
  'application/merge-patch+json',
  'application/problem+json',
  'application/vnd.api+json',
]);

/** Sent by browsers themselves wherever a page tells them to, some without an `Origin`. No client of a model sends them. */
const REPORT_TYPES: ReadonlySet<string> = new Set([
  'application/csp-report',
  'application/expect-ct-report+json',
  'application/reports+json',
  'text/ping',
]);

/** The type of a request's body, as all routes and the check of its origin read it. Null: none, or not a media type. */
export const readBodyType = (headers: Headers): MediaType | null => parseMediaType(headers.get('content-type'));

export const isJson = (bodyType: MediaType | null): boolean => bodyType !== null && JSON_TYPES.has(bodyType.type);

/** Whether a browser sends it without a script. */
export const isReport = (bodyType: MediaType | null): boolean => bodyType !== null && REPORT_TYPES.has(bodyType.type);
