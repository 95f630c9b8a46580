import { trimEndOf } from '../../core/trim.ts';
import { refuse } from '../../core/options.ts';
import type { SpanAttributes } from '../../runtime/requests/tracing.ts';

/** Where telemetry goes. */
export interface OtlpOptions {
  /** Null: no traces. */
  readonly tracesUrl: string | null;
  /** Null: no metrics. */
  readonly metricsUrl: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Milliseconds that a span waits for others. */
  readonly delayMs: number;
  readonly metricsEveryMs: number;
  readonly resource: SpanAttributes;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The options of `--otlp URL` and of OpenTelemetry's environment variables; null: none names a collector, or they disable it. Variables
 * of a signal replace the general ones, and the flag replaces the general address.
 */
export function readOtlpOptions(url: string | undefined, environment: Environment): OtlpOptions | null {
  const read = (name: string): string | undefined => environment[name]?.trim() || undefined;
  const base = url ?? read('OTEL_EXPORTER_OTLP_ENDPOINT');
  if (read('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return null;
  const urlOf = (signal: 'traces' | 'metrics'): string | null => {
    const upper = signal.toUpperCase();
    if (read(`OTEL_${upper}_EXPORTER`) === 'none') return null;
    const name = `OTEL_EXPORTER_OTLP_${upper}_ENDPOINT`;
    const own = read(name);
    if (own !== undefined) return checkUrl(own, name);
    if (base === undefined) return null;
    return `${trimEndOf(checkUrl(base, url === undefined ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : '--otlp'), '/')}/v1/${signal}`;
  };
  const [tracesUrl, metricsUrl] = [urlOf('traces'), urlOf('metrics')];
  if (tracesUrl === null && metricsUrl === null) return null;
  const protocol = read('OTEL_EXPORTER_OTLP_PROTOCOL') ?? 'http/json';
  if (protocol !== 'http/json') {
    refuse(`OTEL_EXPORTER_OTLP_PROTOCOL is ${JSON.stringify(protocol)}; only http/json is supported, which collectors accept on the port of http/protobuf (4318)`, '--otlp'); // prettier-ignore
  }
  return {
    tracesUrl,
    metricsUrl,
    headers: readPairs(read('OTEL_EXPORTER_OTLP_HEADERS'), 'OTEL_EXPORTER_OTLP_HEADERS'),
    timeoutMs: readMs(read('OTEL_EXPORTER_OTLP_TIMEOUT'), 'OTEL_EXPORTER_OTLP_TIMEOUT', 10_000),
    delayMs: readMs(read('OTEL_BSP_SCHEDULE_DELAY'), 'OTEL_BSP_SCHEDULE_DELAY', 5000),
    metricsEveryMs: readMs(read('OTEL_METRIC_EXPORT_INTERVAL'), 'OTEL_METRIC_EXPORT_INTERVAL', 60_000),
    resource: {
      ...readPairs(read('OTEL_RESOURCE_ATTRIBUTES'), 'OTEL_RESOURCE_ATTRIBUTES'),
      ...(read('OTEL_SERVICE_NAME') === undefined ? {} : { 'service.name': read('OTEL_SERVICE_NAME')! }),
    },
  };
}

function checkUrl(text: string, name: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  // Not the address, which may have a password.
  return refuse(`${name} must be a URL such as http://127.0.0.1:4318`, name);
}

/** `a=1,b=2`, with percent-encoded values. */
function readPairs(text: string | undefined, name: string): Readonly<Record<string, string>> {
  const pairs = (text ?? '').split(',').filter((pair) => pair.trim() !== '');
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      if (at <= 0) refuse(`${name} must be a list such as a=1,b=2`, name);
      return [pair.slice(0, at).trim(), decode(pair.slice(at + 1).trim())];
    }),
  );
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function readMs(text: string | undefined, name: string, fallback: number): number {
  if (text === undefined) return fallback;
  const ms = Number(text);
  if (Number.isInteger(ms) && ms > 0 && ms < 2 ** 31) return ms;
  return refuse(`${name} must be a positive number of milliseconds, got ${JSON.stringify(text)}`, name);
}
