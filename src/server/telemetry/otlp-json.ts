import type { SpanAttributes, SpanKind } from '../../runtime/requests/tracing.ts';
import type { MetricFamily } from '../metrics/registry.ts';

/** A span that has ended; times are nanoseconds since 1970. */
export interface EndedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Null: the first span of its trace. */
  readonly parentId: string | null;
  readonly traceState: string | null;
  readonly name: string;
  readonly kind: SpanKind;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: SpanAttributes;
  /** Null: no error. */
  readonly errorType: string | null;
}

/** Their numbers in OTLP. */
const SPAN_KINDS: Readonly<Record<SpanKind, number>> = { internal: 1, server: 2 };
const STATUS_ERROR = 2;
const CUMULATIVE = 2;

/** The scope of spans and metrics. */
export interface Scope {
  readonly version: string;
  readonly resource: SpanAttributes;
}

/** Values in the JSON mapping of OTLP: 64-bit integers are texts. */
function toValue(value: SpanAttributes[string]): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value !== 'number') return { arrayValue: { values: value.map((one) => ({ stringValue: one })) } };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

const toAttributes = (attributes: SpanAttributes): object[] =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: toValue(value) }));

const resourceOf = ({ resource }: Scope): object => ({ attributes: toAttributes(resource) });
const scopeOf = ({ version }: Scope): object => ({ name: 'ruvllm', version });

/** The body of a request to `/v1/traces`. */
export function writeTraces(scope: Scope, spans: readonly EndedSpan[]): object {
  return { resourceSpans: [{ resource: resourceOf(scope), scopeSpans: [{ scope: scopeOf(scope), spans: spans.map(writeSpan) }] }] }; // prettier-ignore
}

function writeSpan(span: EndedSpan): object {
  const { traceId, spanId, parentId, traceState, name, kind, startNs, endNs, attributes, errorType } = span;
  const all = errorType === null ? attributes : { ...attributes, 'error.type': errorType };
  return {
    traceId,
    spanId,
    ...(parentId === null ? {} : { parentSpanId: parentId }),
    ...(traceState === null ? {} : { traceState }),
    name,
    kind: SPAN_KINDS[kind],
    startTimeUnixNano: String(startNs),
    endTimeUnixNano: String(endNs),
    attributes: toAttributes(all),
    ...(errorType === null ? {} : { status: { code: STATUS_ERROR } }),
  };
}

/** The body of a request to `/v1/metrics`. */
export function writeMetrics(
  scope: Scope,
  families: readonly MetricFamily[],
  { startNs, nowNs }: { readonly startNs: bigint; readonly nowNs: bigint },
): object {
  const times = { startTimeUnixNano: String(startNs), timeUnixNano: String(nowNs) };
  const metrics = families.filter(({ points }) => points.length > 0).map((family) => writeFamily(family, times));
  return { resourceMetrics: [{ resource: resourceOf(scope), scopeMetrics: [{ scope: scopeOf(scope), metrics }] }] };
}

function writeFamily(family: MetricFamily, times: { startTimeUnixNano: string; timeUnixNano: string }): object {
  const head = { name: family.name, description: family.help, unit: unitOf(family.name) };
  if (family.type === 'histogram') {
    const dataPoints = family.points.map(({ labels, bounds, counts, count, sum }) => ({
      ...times,
      attributes: toAttributes(labels),
      count: String(count),
      sum,
      // Ours count up to each bound, OTLP's between two bounds.
      bucketCounts: [...counts, count].map((upTo, index) => String(upTo - (counts[index - 1] ?? 0))),
      explicitBounds: bounds,
    }));
    return { ...head, histogram: { aggregationTemporality: CUMULATIVE, dataPoints } };
  }
  const dataPoints = family.points.map(({ labels, value }) => ({ ...times, attributes: toAttributes(labels), asDouble: value })); // prettier-ignore
  if (family.type === 'gauge') return { ...head, gauge: { dataPoints } };
  return { ...head, sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints } };
}

function unitOf(name: string): string {
  if (name === 'gen_ai.client.token.usage') return '{token}';
  if (/_seconds$|^gen_ai\.server\./.test(name)) return 's';
  return name.endsWith('_bytes') ? 'By' : '1';
}
