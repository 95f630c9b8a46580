import type { TraceContext } from '../runtime/requests/caller.ts';
import { silentTracer, type Tracer } from '../runtime/requests/tracing.ts';

interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

/** The used part of `@opentelemetry/api`, an optional package. */
interface OpenTelemetry {
  readonly trace: {
    getTracer(name: string): {
      startSpan(
        name: string,
        options: object,
        context: unknown,
      ): {
        setAttributes(attributes: object): unknown;
        setStatus(status: { code: number }): unknown;
        setAttribute(name: string, value: string): unknown;
        end(): void;
        spanContext?(): SpanContext;
      };
    };
    getSpan(context: unknown): unknown;
  };
  readonly context: { active(): unknown };
  readonly propagation: { extract(context: unknown, carrier: unknown): unknown };
}

/** Their numbers in the API. */
const SPAN_KINDS = { internal: 0, server: 1 } as const;
const STATUS_ERROR = 2;
/** In a variable, so that compiler and bundlers do not resolve the optional package. */
const PACKAGE: string = '@opentelemetry/api';

/** Without an SDK the API has spans with zeros for ids, which no trace may have; the trace of the client then goes on as it is. */
const isId = (id: string): boolean => /[^0]/.test(id);

function contextOf(own: SpanContext | undefined, trace: TraceContext | null): TraceContext | null {
  if (own === undefined || !isId(own.traceId) || !isId(own.spanId)) return trace;
  const { traceId, spanId, traceFlags } = own;
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
  const tracestate = trace?.traceId === traceId ? trace.headers['tracestate'] : undefined;
  return { traceId, headers: { traceparent, ...(tracestate === undefined ? {} : { tracestate }) } };
}

/** OpenTelemetry spans if its API is installed, otherwise none. */
export async function openTracer(
  load: () => Promise<unknown> = () => import(PACKAGE) as Promise<unknown>,
): Promise<Tracer> {
  let api: OpenTelemetry;
  try {
    api = (await load()) as OpenTelemetry;
  } catch {
    return silentTracer;
  }
  const tracer = api.trace.getTracer('ruvllm');
  return {
    start(name, attributes, trace, kind = 'server') {
      const active = api.context.active();
      // If HTTP is traced too, its span is the parent and already has the client's context.
      const isNested = trace === null || (kind === 'server' && api.trace.getSpan(active) !== undefined);
      const parent = isNested ? active : api.propagation.extract(active, trace.headers);
      const span = tracer.startSpan(name, { kind: SPAN_KINDS[kind], attributes }, parent);
      return {
        context: contextOf(span.spanContext?.(), trace),
        set: (more) => void span.setAttributes(more),
        end(errorType) {
          if (errorType !== null) {
            span.setAttribute('error.type', errorType);
            span.setStatus({ code: STATUS_ERROR });
          }
          span.end();
        },
      };
    },
  };
}
