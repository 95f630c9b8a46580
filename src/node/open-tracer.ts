import { silentTracer, type Tracer } from '../runtime/requests/tracing.ts';

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
        spanContext?(): { readonly traceId: string; readonly spanId: string; readonly traceFlags: number };
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
      const own = span.spanContext?.();
      const flags = (own?.traceFlags ?? 0).toString(16).padStart(2, '0');
      return {
        context:
          own === undefined
            ? trace
            : { traceId: own.traceId, headers: { traceparent: `00-${own.traceId}-${own.spanId}-${flags}` } },
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
