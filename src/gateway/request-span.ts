import { serializeError } from '../core/errors.ts';
import type { Tracer } from '../runtime/requests/tracing.ts';
import type { Route } from '../server/route.ts';
import { readTraceContext } from '../server/trace-context.ts';
import type { GatewayRequest } from './types.ts';

/** The span of a request that is sent to nodes. */
interface RequestSpan {
  /** The trace as the node continues it. */
  readonly headers: Readonly<Record<string, string>>;
  answer(node: string, status: number): void;
  /** Null: no error. Only the first call counts. */
  end(error: unknown): void;
}

/** Continues the trace of the client, so that the spans of the node are parts of this one. */
export function openSpan(tracer: Tracer, route: Route, request: GatewayRequest, requestId: string): RequestSpan {
  const { method, path } = route;
  const attributes = { 'http.request.method': method, 'http.route': path, 'ruvllm.request_id': requestId };
  const span = tracer.start(`${method} ${path}`, attributes, readTraceContext(request.headers));
  let errorStatus: string | null = null;
  let isEnded = false;
  return {
    headers: span.context?.headers ?? {},
    answer(node, status) {
      span.set({ 'ruvllm.node': node, 'http.response.status_code': status });
      if (status >= 500) errorStatus = String(status);
    },
    end(error) {
      if (isEnded) return;
      isEnded = true;
      span.end(error === null ? errorStatus : serializeError(error).code);
    },
  };
}
