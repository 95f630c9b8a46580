import type { Clock } from '../../core/clock.ts';
import { createRecentWindow, type RecentReading, type RecentWindow } from '../live/recent-window.ts';
import type { LearningControl } from '../../runtime/learning/operations/index.ts';
import { type GaugeSources, readEngineGauges } from './engine-gauges.ts';
import { createRequestMeter, type RequestMeter, type MeterSinks } from '../../runtime/requests/request-meter.ts';
import { readLearningGauges } from './learning-gauges.ts';
import { createGenaiSinks } from './genai-metrics.ts';
import { addTotals, createMetricRegistry, type MetricFamily, writePrometheus } from './registry.ts';

export interface ServerMetrics {
  countRequest(route: string, status: number, seconds: number): void;
  /** Starts to measure a generation. */
  openRequest(operation: string): RequestMeter;
  countFeedback(source: string): void;
  /** Rates and latencies of a model in the last minute. */
  recent(model: string): RecentReading;
  /** All metrics as text, with the current values of the engines. */
  write(state: MetricSources): Promise<string>;
  /** The same and the metrics of the conventions for generative AI, for OTLP. */
  collect(state: MetricSources): Promise<readonly MetricFamily[]>;
  /** Adds a source of totals that is read for each scrape. */
  addCounter(name: string, help: string, read: () => Readonly<Record<string, number>>): void;
}

export type MetricSources = GaugeSources & { readonly learning: LearningControl | null };

/** Buckets from one token of a small model to a long prompt on a slow machine. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Further models have no recent values. */
const MAX_WINDOWS = 256;

/** With `hasGenai`, requests are also measured by the conventions for generative AI. */
export function createServerMetrics(
  { now }: Pick<Clock, 'now'>,
  { hasGenai = false }: { hasGenai?: boolean } = {},
): ServerMetrics {
  const registry = createMetricRegistry();
  const genaiRegistry = createMetricRegistry();
  const genai = hasGenai ? createGenaiSinks(genaiRegistry) : null;
  const requests = registry.counter('ruvllm_requests_total', 'Requests by route and status.');
  const requestSeconds = registry.histogram(
    'ruvllm_request_seconds',
    'Time until the response headers were sent.',
    SECONDS,
  );
  const tokens = registry.counter('ruvllm_tokens_total', 'Tokens by model and kind: prompt, cached, completion.');
  const finishes = registry.counter('ruvllm_answers_total', 'Answers by model and finish reason.');
  const firstToken = registry.histogram('ruvllm_time_to_first_token_seconds', 'Time to first token.', SECONDS);
  const interToken = registry.histogram(
    'ruvllm_inter_token_seconds',
    'Inter-token latency; for remote engines the mean of an answer.',
    SECONDS,
  );
  const feedback = registry.counter('ruvllm_feedback_total', 'Feedback by source.');
  const windows = new Map<string, RecentWindow>();

  function windowOf(model: string): RecentWindow {
    const window = windows.get(model) ?? createRecentWindow(now);
    if (windows.size < MAX_WINDOWS) windows.set(model, window);
    return window;
  }

  const readOwn = async (state: MetricSources): Promise<readonly MetricFamily[]> => [
    ...registry.collect(),
    ...(await readEngineGauges(state)),
    ...readLearningGauges(state.learning),
  ];

  const sinks: MeterSinks = {
    // Measured by the engine: the server's events also depend on how fast the client reads.
    firstToken(model, ms) {
      firstToken.observe(ms / 1000, { model });
      windowOf(model).time('firstToken', ms);
    },
    interToken(model, ms) {
      interToken.observe(ms / 1000, { model });
      windowOf(model).time('interToken', ms);
    },
    promptTokens: (model, count) => windowOf(model).count('prompt', count),
    generatedTokens: (model, count) => windowOf(model).count('generated', count),
    finished(model, { finishReason, usage }) {
      finishes.add(1, { model, reason: finishReason });
      tokens.add(usage.promptTokens, { model, kind: 'prompt' });
      tokens.add(usage.cachedTokens, { model, kind: 'cached' });
      tokens.add(usage.completionTokens, { model, kind: 'completion' });
    },
    unfinished: (model) => finishes.add(1, { model, reason: 'unfinished' }),
  };

  return {
    write: async (state) => writePrometheus(await readOwn(state)),
    collect: async (state) => [...(await readOwn(state)), ...genaiRegistry.collect()],
    addCounter: (name, help, read) => addTotals(registry, name, help, read),
    openRequest: (operation) => createRequestMeter(genai === null ? sinks : genai(sinks, operation)),
    recent: (model) => (windows.get(model) ?? createRecentWindow(now)).read(),
    countFeedback: (source) => feedback.add(1, { source }),
    countRequest(route, status, seconds) {
      requests.add(1, { route, status: String(status) });
      requestSeconds.observe(seconds, { route });
    },
  };
}
