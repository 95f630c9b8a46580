import type { MediaType } from '../core/media-type.ts';
import type { Caller } from './caller.ts';
import type { Failure } from './errors.ts';
import type { Services } from './services.ts';
import { textResponse } from './text-response.ts';
import type { JsonSchema } from './wire/fields.ts';
import type { RouteScope } from './guard.ts';

/** A request and everything its handler needs. */
export interface Exchange {
  readonly request: Request;
  /** Decoded path parameters: `:id` is `params.id`. */
  readonly params: Readonly<Record<string, string>>;
  readonly caller: Caller;
  readonly services: Services;
  readonly bodyType: MediaType | null;
  /** Parses the JSON body within the limits. */
  readBody(): Promise<unknown>;
  /**
   * Parses the JSON body and reads it with a synchronous reader. Unknown fields are ignored and named in the response and
   * the log, unless the server is strict.
   */
  readRequest<T>(read: (body: unknown) => T): Promise<T>;
  /** Names a field that has no effect in the response and the log; a strict server rejects it. */
  ignoreField(name: string): void;
}

export interface ErrorFormat {
  /** The status, where the format defines its own; default: the failure's. */
  status?(failure: Failure): number;
  body(failure: Failure, requestId: string): object;
}

/** The code of a route: what answers its requests, and what describes them. */
export interface RouteCode {
  readonly summary: string;
  /** Schema of the body; default: no body. */
  readonly body?: JsonSchema;
  /** Media type of the body. Default `application/json`. */
  readonly bodyType?: string;
  /** Documented query parameters; default: none. */
  readonly query?: Readonly<Record<string, { readonly schema: JsonSchema }>>;
  /** Whether unknown fields of the body are ignored and named, unless the server is strict. Default false: they are rejected. */
  readonly ignoresUnknownFields?: boolean;
  handle(exchange: Exchange): Promise<Response> | Response;
}

export type Method = 'GET' | 'POST' | 'DELETE';
export type RouteName = `${Method} /${string}`;

/** The code of the routes of one module, by method and path in Hono's notation: `GET /v1/models/:id{.+}`. */
export type RouteCodes = Readonly<Record<RouteName, RouteCode>>;

/**
 * An HTTP route. Dispatch, authorization, the gateway, documentation and tests use the same table of routes; its code is
 * loaded with the first request.
 */
export interface Route {
  readonly method: Method;
  /** In Hono's notation: `/v1/models/:id{.+}`. */
  readonly path: string;
  readonly scope: RouteScope;
  /** Whether a response is an answer of a model, which the live view counts. Default false. */
  readonly isAnswer?: boolean;
  readonly errors: ErrorFormat;
  load(): Promise<RouteCode>;
}

export function json(value: unknown, status = 200): Response {
  return textResponse(JSON.stringify(value), { status, headers: { 'content-type': 'application/json' } });
}
