import type { Caller } from './caller.ts';
import type { Failure } from './errors.ts';
import type { Services } from './services.ts';
import { textResponse } from './text-response.ts';
import type { JsonSchema } from './wire/fields.ts';
import type { RouteScope } from './guard.ts';

/** One request and everything its handler needs. */
export interface Exchange {
  readonly request: Request;
  /** Of the path, decoded: `:id` is `params.id`. */
  readonly params: Readonly<Record<string, string>>;
  readonly caller: Caller;
  readonly services: Services;
  /** The body as JSON, inside the limits. */
  readBody(): Promise<unknown>;
}

/** How a family of routes spells its failures. */
export interface ErrorFormat {
  /** The status where the format has one of its own; default: the failure's. */
  status?(failure: Failure): number;
  body(failure: Failure, requestId: string): object;
}

/** One route: the table of these is all there is, for routing, keys, documentation and tests alike. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** `/v1/models/:id{.+}`, as Hono writes it. */
  readonly path: string;
  readonly scope: RouteScope;
  readonly summary: string;
  /** The body it reads; null: none. */
  readonly body: JsonSchema | null;
  /** The options it reads from the query of its URL; default: none are documented. */
  readonly query?: Readonly<Record<string, { readonly schema: JsonSchema }>>;
  readonly errors: ErrorFormat;
  handle(exchange: Exchange): Promise<Response> | Response;
}

/** A JSON response. */
export function json(value: unknown, status = 200): Response {
  return textResponse(JSON.stringify(value), { status, headers: { 'content-type': 'application/json' } });
}
