import type { Caller } from './caller.ts';
import { describeFailure, type Failure, isRefusal, refusal, refusedCaller } from './errors.ts';
import { readJsonBody } from './json-body.ts';
import type { LogFields } from './logger.ts';
import type { ErrorFormat, Exchange, Route } from './route.ts';
import type { Services } from './services.ts';
import { textResponse } from './text-response.ts';
import { readTraceContext } from './trace-context.ts';
import { anthropicErrors } from './wire/anthropic/error-body.ts';
import { isAnthropicClient } from './wire/anthropic/client.ts';
import { openaiErrors } from './wire/openai/error-body.ts';

interface Incoming {
  readonly request: Request;
  readonly params: Exchange['params'];
  readonly services: Services;
  /** Methods of the path when only the method is wrong. */
  readonly allow?: readonly string[];
}

/**
 * Answers one request: who is it, may they, what is it, what went wrong. Every request passes here, unknown paths included:
 * without a key nobody learns which paths there are.
 */
export async function dispatch(route: Route | null, incoming: Incoming): Promise<Response> {
  const { request, params, services, allow = [] } = incoming;
  const { clock, metrics, logger, browsers } = services;
  const startMs = clock.now();
  const requestId = crypto.randomUUID();
  const clientRequestId = readClientRequestId(request.headers);
  const trace = readTraceContext(request.headers);
  let caller: Caller = { requestId, tenant: '', keyId: null, scopes: [], signal: request.signal, trace };
  let response: Response;
  let failed: LogFields = {};
  try {
    browsers.check(request);
    if (request.method === 'OPTIONS' && request.headers.has('access-control-request-method')) {
      response = new Response(null, { status: 204 });
    } else {
      caller = { ...caller, ...(await services.guard.admit(request.headers, route?.scope ?? 'read')) };
      const readBody = (): Promise<unknown> => readJsonBody(request, services.limits);
      if (route !== null) response = await route.handle({ request, params, caller, services, readBody });
      else response = answerUnmatched(request, allow);
    }
  } catch (error) {
    const failure = describeFailure(error);
    failed = describeForLog(error, failure);
    caller = { ...caller, ...refusedCaller(error) };
    const errors = errorFormatOf(route, request);
    response = textResponse(JSON.stringify(errors.body(failure, requestId)), {
      status: errors.status?.(failure) ?? failure.status,
      headers: {
        'content-type': 'application/json',
        ...(failure.retryAfterSeconds === null ? {} : { 'retry-after': String(failure.retryAfterSeconds) }),
        ...(failure.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
        ...(failure.status === 405 ? { allow: allow.join(', ') } : {}),
        // OpenAI's clients try 409, 429 and 5xx again by themselves; what cannot succeed they need not.
        ...(failure.status >= 500 && failure.retryAfterSeconds === null ? { 'x-should-retry': 'false' } : {}),
      },
    });
  }
  // OpenAI's name for it, and Anthropic's.
  response.headers.set('x-request-id', requestId);
  response.headers.set('request-id', requestId);
  if (clientRequestId !== null) response.headers.set('x-client-request-id', clientRequestId);
  for (const [name, value] of Object.entries(browsers.headersFor(request))) response.headers.set(name, value);
  const elapsedMs = clock.now() - startMs;
  metrics.countRequest(route?.path ?? 'unknown', response.status, elapsedMs / 1000);
  const level = 'reason' in failed ? 'error' : response.status >= 500 ? 'warn' : 'info';
  logger.log(level, 'request', {
    requestId,
    ...(clientRequestId === null ? {} : { clientRequestId }),
    ...(trace === null ? {} : { traceId: trace.traceId }),
    method: request.method,
    route: route?.path ?? null,
    status: response.status,
    ms: Math.round(elapsedMs * 100) / 100,
    tenant: caller.tenant,
    key: caller.keyId,
    ...failed,
  });
  return response;
}

/** No route: a path that is known says its methods, to whoever asks for them as a success. */
function answerUnmatched(request: Request, allow: readonly string[]): Response {
  const { method } = request;
  if (allow.length === 0) throw refusal(404, 'unknown_url', `there is no ${method} ${pathOf(request)} here`);
  if (method === 'OPTIONS') return new Response(null, { status: 204, headers: { allow: allow.join(', ') } });
  const message = `${pathOf(request)} cannot be asked with ${method}, only with ${allow.join(', ')}`;
  throw refusal(405, 'method_not_allowed', message);
}

/** Where a path belongs to no format, or to both, the client tells by its headers which one it reads. */
function errorFormatOf(route: Route | null, request: Request): ErrorFormat {
  if (route !== null && route.errors !== openaiErrors) return route.errors;
  return isAnthropicClient(request) ? anthropicErrors : openaiErrors;
}

/**
 * The client's own name for its request, for its log and ours. Ours stays the name of the answer: one that was chosen by
 * a client could be another answer's already.
 */
function readClientRequestId(headers: Headers): string | null {
  const id = headers.get('x-client-request-id') ?? headers.get('x-request-id');
  return id !== null && /^[\x21-\x7e]{1,512}$/.test(id) ? id : null;
}

/** What went wrong, without the words of the client: those of a refusal may quote the prompt. Only our own failures are told whole. */
function describeForLog(error: unknown, { status, code, param }: Failure): LogFields {
  // A full queue is no bug: a stack per request would flood the log under load.
  if (status < 500 || code === 'overloaded' || isRefusal(error)) return { code, param };
  return { code, param, reason: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}

function pathOf(request: Request): string {
  return JSON.stringify(new URL(request.url).pathname.slice(0, 200));
}
