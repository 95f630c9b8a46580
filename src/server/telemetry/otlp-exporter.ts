import { type Clock, delay } from '../../core/clock.ts';
import { type EndedSpan, type Scope, writeMetrics, writeTraces } from './otlp-json.ts';
import type { OtlpOptions } from './otlp-options.ts';
import type { MetricFamily } from '../metrics/registry.ts';
import { messageOf } from '../../core/errors.ts';

/** Sends spans and metrics to a collector in the background. It never delays a request: spans that do not fit are dropped and counted. */
export interface OtlpExporter {
  /** Adds a span to the queue, or drops it. */
  add(span: EndedSpan): void;
  /** Spans that the queue had no place for, or that the collector did not take. */
  readonly numDropped: number;
  readonly numExported: number;
  /** Starts to send metrics every `metricsEveryMs`. */
  watchMetrics(read: () => Promise<readonly MetricFamily[]>): void;
  /** Sends the rest, within `deadlineMs`. */
  close(deadlineMs: number): Promise<void>;
}

interface ExporterContext {
  readonly options: OtlpOptions;
  readonly scope: Scope;
  readonly clock: Clock;
  /** Default: the process's. */
  readonly fetch?: typeof fetch;
  /** Called with the first failure, and again after a success. */
  report(message: string): void;
}

/** Spans in the queue: a collector that is away for a while costs no more than a few megabytes. */
export const MAX_QUEUE = 2048;
const MAX_BATCH = 512;
const MAX_ATTEMPTS = 4;
const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;
const MAX_ANSWER_BYTES = 65_536;
/** Answers after which OTLP says that the same request may succeed. */
const RETRYABLE = new Set([429, 502, 503, 504]);

/** Reads an answer to its end, because its connection stays in use until then; an endless one is cancelled. */
async function discard(body: ReadableStream<Uint8Array> | null): Promise<void> {
  let sizeBytes = 0;
  for await (const chunk of body ?? []) if ((sizeBytes += chunk.length) > MAX_ANSWER_BYTES) return;
}

/** Of the header `retry-after`, in seconds; dates count as none. A timer of weeks would ring at once. */
function readWaitMs(text: string | null): number {
  const seconds = Number(text ?? 0);
  return Number.isNaN(seconds) ? 0 : Math.min(MAX_RETRY_MS, Math.max(0, seconds * 1000));
}

export function createOtlpExporter(context: ExporterContext): OtlpExporter {
  const { options, scope, clock, report } = context;
  const send = context.fetch ?? fetch;
  const startNs = BigInt(Math.round(clock.wallClock())) * 1_000_000n;
  const queue: EndedSpan[] = [];
  const ended = new AbortController();
  let numDropped = 0;
  let numExported = 0;
  let sending: Promise<void> | null = null;
  let isFailing = false;
  let isClosed = false;
  let cancelFlush: (() => void) | null = null;
  let cancelMetrics = (): void => {};
  let pushMetrics: (() => Promise<void>) | null = null;

  /** One request; null: taken, else the reason, and whether to try again. */
  async function attempt(url: string, body: string): Promise<{ reason: string; waitMs: number | null } | null> {
    const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(options.timeoutMs)]);
    try {
      const headers = { 'content-type': 'application/json', ...options.headers };
      const response = await send(url, { method: 'POST', headers, body, signal, redirect: 'error' });
      await discard(response.body);
      if (response.ok) return null;
      const waitMs = RETRYABLE.has(response.status) ? readWaitMs(response.headers.get('retry-after')) : null;
      return { reason: `status ${response.status}`, waitMs };
    } catch (error) {
      const cause = (error as { cause?: { code?: string } }).cause?.code;
      return { reason: cause ?? messageOf(error), waitMs: 0 };
    }
  }

  /** Whether the collector took it, after a few attempts. */
  async function deliver(url: string, value: object): Promise<boolean> {
    const body = JSON.stringify(value);
    for (let numAttempts = 1; ; numAttempts++) {
      const failure = await attempt(url, body);
      if (failure === null) {
        isFailing = false;
        return true;
      }
      if (!isFailing) report(`the collector at ${new URL(url).host} does not take telemetry: ${failure.reason}`);
      isFailing = true;
      if (failure.waitMs === null || numAttempts === MAX_ATTEMPTS || isClosed) return false;
      await delay(clock, Math.max(failure.waitMs, FIRST_RETRY_MS * 2 ** (numAttempts - 1)), ended.signal);
      if (ended.signal.aborted) return false;
    }
  }

  async function sendQueue(url: string): Promise<void> {
    while (queue.length > 0) {
      const spans = queue.splice(0, MAX_BATCH);
      if (await deliver(url, writeTraces(scope, spans))) numExported += spans.length;
      else numDropped += spans.length;
    }
  }

  function flush(): void {
    cancelFlush?.();
    cancelFlush = null;
    if (sending !== null || options.tracesUrl === null) return;
    sending = sendQueue(options.tracesUrl).finally(() => {
      sending = null;
      if (queue.length > 0) flush();
    });
  }

  return {
    add(span) {
      if (options.tracesUrl === null || isClosed) return;
      if (queue.length >= MAX_QUEUE) {
        numDropped++;
        return;
      }
      queue.push(span);
      if (queue.length >= MAX_BATCH) flush();
      else cancelFlush ??= clock.setTimer(options.delayMs, flush);
    },
    get numDropped() {
      return numDropped;
    },
    get numExported() {
      return numExported;
    },
    watchMetrics(read) {
      const { metricsUrl } = options;
      if (metricsUrl === null) return;
      pushMetrics = async () => {
        const nowNs = BigInt(Math.round(clock.wallClock())) * 1_000_000n;
        await deliver(metricsUrl, writeMetrics(scope, await read(), { startNs, nowNs }));
      };
      const plan = (): void => {
        cancelMetrics = clock.setTimer(options.metricsEveryMs, () => {
          void pushMetrics!()
            .catch((error: unknown) => report(`reading metrics failed: ${messageOf(error)}`))
            .finally(() => {
              if (!isClosed) plan();
            });
        });
      };
      plan();
    },
    async close(deadlineMs) {
      isClosed = true;
      cancelFlush?.();
      cancelMetrics();
      const cancel = clock.setTimer(deadlineMs, () => ended.abort());
      flush();
      await Promise.allSettled([sending, pushMetrics?.()]);
      cancel();
      ended.abort();
    },
  };
}
