// The JSON mapping of OTLP's messages, from opentelemetry/proto/{common,resource,trace,metrics}/v1: names in lowerCamelCase, 64-bit
// integers as decimal texts, enumerations as numbers, ids of traces and spans as hex.

type Check = (value: unknown, path: string) => string[];

const uint64: Check = (value, path) =>
  typeof value === 'string' && /^\d{1,20}$/.test(value) ? [] : [`${path}: no 64-bit integer as text`];
const int64: Check = (value, path) =>
  typeof value === 'string' && /^-?\d{1,19}$/.test(value) ? [] : [`${path}: no 64-bit integer as text`];
const text: Check = (value, path) => (typeof value === 'string' ? [] : [`${path}: no text`]);
const double: Check = (value, path) =>
  typeof value === 'number' && Number.isFinite(value) ? [] : [`${path}: no number`];
const bool: Check = (value, path) => (typeof value === 'boolean' ? [] : [`${path}: no boolean`]);
const hex =
  (length: number): Check =>
  (value, path) =>
    typeof value === 'string' && new RegExp(`^[0-9a-f]{${length}}$`).test(value) && !/^0+$/.test(value)
      ? []
      : [`${path}: no id`];
const between =
  (min: number, max: number): Check =>
  (value, path) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max ? [] : [`${path}: no enumeration`];
const list =
  (item: Check): Check =>
  (value, path) =>
    Array.isArray(value) ? value.flatMap((one, index) => item(one, `${path}[${index}]`)) : [`${path}: no list`];
/** Fields with `!` are required here; others may be absent. */
const message =
  (fields: () => Readonly<Record<string, Check>>, oneOf: readonly string[] = []): Check =>
  (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path}: no object`];
    const all = fields();
    const given = Object.keys(value);
    const violations = given.flatMap((key) => {
      const check = all[key] ?? all[`${key}!`];
      return check === undefined
        ? [`${path}: unknown field ${key}`]
        : check((value as Record<string, unknown>)[key], `${path}.${key}`);
    });
    const missing = Object.keys(all).filter((key) => key.endsWith('!') && !given.includes(key.slice(0, -1)));
    violations.push(...missing.map((key) => `${path}: ${key.slice(0, -1)} is missing`));
    const chosen = oneOf.filter((key) => given.includes(key)).length;
    if (oneOf.length > 0 && chosen !== 1) violations.push(`${path}: ${chosen} of ${oneOf.join(', ')}`);
    return violations;
  };

const anyValue: Check = message(
  () => ({ stringValue: text, boolValue: bool, intValue: int64, doubleValue: double, arrayValue: message(() => ({ 'values!': list(anyValue) })) }), // prettier-ignore
  ['stringValue', 'boolValue', 'intValue', 'doubleValue', 'arrayValue'],
);
const attributes = list(message(() => ({ 'key!': text, 'value!': anyValue })));
const resource = message(() => ({ attributes, droppedAttributesCount: double }));
const scope = message(() => ({ name: text, version: text, attributes }));

const span = message(() => ({
  'traceId!': hex(32),
  'spanId!': hex(16),
  parentSpanId: hex(16),
  traceState: text,
  flags: double,
  'name!': text,
  kind: between(0, 5),
  'startTimeUnixNano!': uint64,
  'endTimeUnixNano!': uint64,
  attributes,
  status: message(() => ({ message: text, code: between(0, 2) })),
}));

const times = { startTimeUnixNano: uint64, 'timeUnixNano!': uint64, attributes };
const numberPoints = list(message(() => ({ ...times, asDouble: double, asInt: int64 }), ['asDouble', 'asInt']));
const histogramPoint: Check = (value, path) => {
  const fields = { ...times, 'count!': uint64, sum: double, bucketCounts: list(uint64), explicitBounds: list(double) };
  const violations = message(() => fields)(value, path);
  if (violations.length > 0) return violations;
  const { count, bucketCounts, explicitBounds } = value as { count: string; bucketCounts: string[]; explicitBounds: number[] }; // prettier-ignore
  const sum = bucketCounts.reduce((total, one) => total + BigInt(one), 0n);
  return [
    ...(bucketCounts.length === explicitBounds.length + 1 ? [] : [`${path}: ${bucketCounts.length} buckets`]),
    ...(sum === BigInt(count) ? [] : [`${path}: the buckets have ${sum} of ${count}`]),
  ];
};
const temporality = between(1, 2);
const metric = message(
  () => ({
    'name!': text,
    description: text,
    unit: text,
    gauge: message(() => ({ 'dataPoints!': numberPoints })),
    sum: message(() => ({ 'dataPoints!': numberPoints, 'aggregationTemporality!': temporality, isMonotonic: bool })),
    histogram: message(() => ({ 'dataPoints!': list(histogramPoint), 'aggregationTemporality!': temporality })),
  }),
  ['gauge', 'sum', 'histogram'],
);

const exported = (outer: string, inner: string, items: string, item: Check): Check =>
  message(() => ({
    [`${outer}!`]: list(
      message(() => ({
        resource,
        schemaUrl: text,
        [`${inner}!`]: list(message(() => ({ scope, schemaUrl: text, [`${items}!`]: list(item) }))),
      })),
    ),
  }));

/** Violations of an ExportTraceServiceRequest. */
export const checkTraces = (body: unknown): string[] =>
  exported('resourceSpans', 'scopeSpans', 'spans', span)(body, 'body');
/** Violations of an ExportMetricsServiceRequest. */
export const checkMetrics = (body: unknown): string[] =>
  exported('resourceMetrics', 'scopeMetrics', 'metrics', metric)(body, 'body');
