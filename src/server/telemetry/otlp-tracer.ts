import type { Clock } from '../../core/clock.ts';
import type { SpanAttributes, Tracer } from '../../runtime/requests/tracing.ts';
import type { OtlpExporter } from './otlp-exporter.ts';

const SAMPLED = 1;
const hex = (numBytes: number): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(numBytes)), (byte) => byte.toString(16).padStart(2, '0')).join('');

/**
 * A span per request, a child of the client's span if it has one, with parts as its children. A trace that its client does not sample is
 * left out.
 */
export function createOtlpTracer(exporter: Pick<OtlpExporter, 'add'>, clock: Clock): Tracer {
  return {
    start(name, first, trace, kind = 'server') {
      const [, , parentId, flags] = trace?.headers['traceparent']?.split('-') ?? [];
      const isSampled = flags === undefined || (parseInt(flags, 16) & SAMPLED) === SAMPLED;
      const startNs = BigInt(Math.round(clock.wallClock() * 1000)) * 1000n;
      const startMs = clock.now();
      const traceId = trace?.traceId ?? hex(16);
      const spanId = hex(8);
      const traceState = trace?.headers['tracestate'] ?? null;
      const headers = {
        traceparent: `00-${traceId}-${spanId}-01`,
        ...(traceState === null ? {} : { tracestate: traceState }),
      };
      let attributes: SpanAttributes = first;
      let isEnded = false;
      return {
        context: isSampled ? { traceId, headers } : trace,
        set: (more) => void (attributes = { ...attributes, ...more }),
        end(errorType) {
          if (isEnded || !isSampled) return;
          isEnded = true;
          exporter.add({
            traceId,
            spanId,
            parentId: parentId ?? null,
            traceState,
            name,
            kind,
            startNs,
            // By the monotonic clock: the other one may jump backwards.
            endNs: startNs + BigInt(Math.max(0, Math.round((clock.now() - startMs) * 1e6))),
            attributes,
            errorType,
          });
        },
      };
    },
  };
}
