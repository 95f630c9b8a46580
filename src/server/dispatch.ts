import type { Caller } from './caller.ts';
import { describeFailure, type Failure, refusal } from './errors.ts';
import { readJsonBody } from './json-body.ts';
import type { LogFields } from './logger.ts';
import type { Exchange, Route } from './route.ts';
import type { Services } from './services.ts';
import { textResponse } from './text-response.ts';
import { openaiErrors } from './wire/openai/error-body.ts';

interface Incoming {
  readonly request: Request;
  readonly params: Exchange['params'];
  readonly services: Services;
}

/**
 * Answers one request: who is it, may they, what is it, what went wrong. Every request passes here, unknown paths included:
 * without a key nobody learns which paths there are.
 */
export async function dispatch(route: Route | null, { request, params, services }: Incoming): Promise<Response> {
  const { clock, metrics, logger, browsers } = services;
  const startMs = clock.now();
  const requestId = crypto.randomUUID();
  let caller: Caller = { requestId, tenant: '', keyId: null, scopes: [], signal: request.signal };
  let response: Response;
  let failed: LogFields = {};
  try {
    browsers.check(request);
    if (request.method === 'OPTIONS' && request.headers.has('access-control-request-method')) {
      response = new Response(null, { status: 204 });
    } else {
      caller = { ...caller, ...(await services.guard.admit(request.headers, route?.scope ?? 'read')) };
      if (route === null) throw refusal(404, 'unknown_url', `there is no ${request.method} ${pathOf(request)} here`);
      const readBody = (): Promise<unknown> => readJsonBody(request, services.limits);
      response = await route.handle({ request, params, caller, services, readBody });
    }
  } catch (error) {
    const failure = describeFailure(error);
    failed = describeForLog(error, failure);
    const errors = route?.errors ?? openaiErrors;
    response = textResponse(JSON.stringify(errors.body(failure, requestId)), {
      status: errors.status?.(failure) ?? failure.status,
      headers: {
        'content-type': 'application/json',
        ...(failure.retryAfterSeconds === null ? {} : { 'retry-after': String(failure.retryAfterSeconds) }),
        ...(failure.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
        // OpenAI's clients try 409, 429 and 5xx again by themselves; what cannot succeed they need not.
        ...(failure.status >= 500 && failure.retryAfterSeconds === null ? { 'x-should-retry': 'false' } : {}),
      },
    });
  }
  // OpenAI's name for it, and Anthropic's.
  response.headers.set('x-request-id', requestId);
  response.headers.set('request-id', requestId);
  for (const [name, value] of Object.entries(browsers.headersFor(request))) response.headers.set(name, value);
  const elapsedMs = clock.now() - startMs;
  metrics.countRequest(route?.path ?? 'unknown', response.status, elapsedMs / 1000);
  logger.log(response.status >= 500 ? 'error' : 'info', 'request', {
    requestId,
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

/** What went wrong, without the words of the client: those of a refusal may quote the prompt. Only our own failures are told whole. */
function describeForLog(error: unknown, { status, code, param }: Failure): LogFields {
  if (status < 500) return { code, param };
  return { code, param, reason: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}

function pathOf(request: Request): string {
  return JSON.stringify(new URL(request.url).pathname.slice(0, 200));
}
