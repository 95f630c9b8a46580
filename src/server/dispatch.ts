import type { BatchCaller, Caller } from './caller.ts';
import { describeFailure, type Failure, isRefusal, refusal, refusedCaller } from './errors.ts';
import { readBodyType } from './body-type.ts';
import { readJsonBody } from './json-body.ts';
import type { LogFields } from './logger.ts';
import type { ErrorFormat, Exchange, Route } from './route.ts';
import type { Services } from './services.ts';
import { textResponse } from './text-response.ts';
import { readTraceContext } from './trace-context.ts';
import { anthropicErrors } from './wire/anthropic/error-body.ts';
import { isAnthropicClient } from './wire/anthropic/client.ts';
import { collectIgnored, rejectField } from './wire/fields.ts';
import { openaiErrors } from './wire/openai/error-body.ts';
import { traceOf } from '../core/errors.ts';

interface Incoming {
  readonly request: Request;
  readonly params: Exchange['params'];
  readonly services: Services;
  /** Methods of the path when only the method is wrong. */
  readonly allow?: readonly string[];
  /** Instead of the key in the headers, for a request that no client sent. */
  readonly batchCaller?: BatchCaller;
  /** Called with the failure that becomes the response. */
  readonly onFailure?: (failure: Failure) => void;
}

/**
 * Handles one request: authorization, route, error response, log. Unknown paths included: without a key, clients cannot
 * find out which paths exist.
 */
export async function dispatch(route: Route | null, incoming: Incoming): Promise<Response> {
  const { request, params, services, allow = [], batchCaller = null, onFailure } = incoming;
  const { clock, metrics, logger, browsers } = services;
  const startMs = clock.now();
  const requestId = crypto.randomUUID();
  const clientRequestId = readClientRequestId(request.headers);
  const trace = readTraceContext(request.headers);
  const bodyType = readBodyType(request.headers);
  let caller: Caller = { requestId, tenant: '', keyId: null, scopes: [], signal: request.signal, trace };
  let response: Response;
  let failureFields: LogFields = {};
  const ignoredNames: string[] = [];
  try {
    if (batchCaller === null) browsers.check(request, bodyType);
    if (request.method === 'OPTIONS' && request.headers.has('access-control-request-method')) {
      response = new Response(null, { status: 204 });
    } else {
      caller = {
        ...caller,
        ...(batchCaller === null
          ? await services.guard.admit(request.headers, route?.scope ?? 'read')
          : admitBatch(services, batchCaller)),
      };
      const readBody = (): Promise<unknown> => readJsonBody(request, services.limits, services.clock, bodyType);
      const readRequest = async <T>(read: (body: unknown) => T): Promise<T> => {
        const body = await readBody();
        if (services.isStrict) return read(body);
        const { value, names } = collectIgnored(() => read(body));
        ignoredNames.push(...names);
        return value;
      };
      const ignoreField = (name: string): void => {
        if (services.isStrict) rejectField(name);
        ignoredNames.push(name);
      };
      const exchange = { request, params, caller, services, bodyType, readBody, readRequest, ignoreField };
      if (route !== null) response = await (await route.load()).handle(exchange);
      else response = answerUnmatched(request, allow);
    }
  } catch (error) {
    const failure = describeFailure(error);
    onFailure?.(failure);
    failureFields = describeForLog(error, failure);
    caller = { ...caller, ...refusedCaller(error) };
    const errors = errorFormatOf(route, request);
    response = textResponse(JSON.stringify(errors.body(failure, requestId)), {
      status: errors.status?.(failure) ?? failure.status,
      headers: {
        'content-type': 'application/json',
        ...(failure.retryAfterSeconds === null ? {} : { 'retry-after': String(failure.retryAfterSeconds) }),
        ...(failure.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
        ...(failure.status === 405 ? { allow: allow.join(', ') } : {}),
        // OpenAI's clients retry 5xx by default; these cannot succeed.
        ...(failure.status >= 500 && failure.retryAfterSeconds === null ? { 'x-should-retry': 'false' } : {}),
      },
    });
  }
  // OpenAI's header and Anthropic's.
  response.headers.set('x-request-id', requestId);
  response.headers.set('request-id', requestId);
  const ignoredFields = ignoredNames.length === 0 ? null : joinNames(ignoredNames);
  if (ignoredFields !== null) response.headers.set('x-ignored-fields', ignoredFields);
  if (clientRequestId !== null) response.headers.set('x-client-request-id', clientRequestId);
  for (const [name, value] of Object.entries(browsers.headersFor(request))) response.headers.set(name, value);
  const elapsedMs = clock.now() - startMs;
  metrics.countRequest(route?.path ?? 'unknown', response.status, elapsedMs / 1000);
  if (route?.isAnswer === true) services.history.count(response.status);
  // A health check reports that the model is loading; that is its answer, not a failure.
  const isTrouble = response.status >= 500 && route?.path !== '/health';
  const level = 'reason' in failureFields ? 'error' : isTrouble ? 'warn' : 'info';
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
    ...(batchCaller === null ? {} : { batch: batchCaller.batchId }),
    ...(ignoredFields === null ? {} : { ignoredFields }),
    ...failureFields,
  });
  return response;
}

/** The caller of a line, unless its key was revoked since the batch was created. */
function admitBatch({ guard }: Services, { batchId: _, ...caller }: BatchCaller): Omit<BatchCaller, 'batchId'> {
  guard.checkCaller(caller);
  return caller;
}

/** Characters of the header; Node's clients accept 16 KiB of headers. */
const MAX_IGNORED_CHARS = 1024;

/** Names of fields for a header: clients choose them, so other characters are replaced. */
function joinNames(names: readonly string[]): string {
  let text = '';
  for (const [index, name] of names.entries()) {
    const next = `${index === 0 ? '' : ', '}${name.replaceAll(/[^\w.[\]-]/g, '?')}`;
    if (text.length + next.length > MAX_IGNORED_CHARS) return `${text}, and ${names.length - index} more`;
    text += next;
  }
  return text;
}

/** 404, or for a path with other methods 405 (`OPTIONS`: 204) with `allow`. */
function answerUnmatched(request: Request, allow: readonly string[]): Response {
  const { method } = request;
  if (allow.length === 0) throw refusal(404, 'unknown_url', `${method} ${pathOf(request)} not found`);
  if (method === 'OPTIONS') return new Response(null, { status: 204, headers: { allow: allow.join(', ') } });
  const message = `${pathOf(request)} does not support ${method}; use ${allow.join(', ')}`;
  throw refusal(405, 'method_not_allowed', message);
}

/** On paths of no format or of both, the client's headers decide. */
function errorFormatOf(route: Route | null, request: Request): ErrorFormat {
  if (route !== null && route.errors !== openaiErrors) return route.errors;
  return isAnthropicClient(request) ? anthropicErrors : openaiErrors;
}

/**
 * The client's id of its request, for both logs. It never identifies the answer, because a client can send the same id
 * twice.
 */
function readClientRequestId(headers: Headers): string | null {
  const id = headers.get('x-client-request-id') ?? headers.get('x-request-id');
  return id !== null && /^[\x21-\x7e]{1,512}$/.test(id) ? id : null;
}

/** Only internal failures are logged in full: messages of rejected requests can quote the prompt. */
function describeForLog(error: unknown, { status, code, param }: Failure): LogFields {
  // A full queue is no bug: a stack per request would flood the log under load.
  if (status < 500 || code === 'overloaded' || isRefusal(error)) return { code, param };
  return { code, param, reason: traceOf(error) };
}

function pathOf(request: Request): string {
  return JSON.stringify(new URL(request.url).pathname.slice(0, 200));
}
