import type { FinishedEvent, JobEvent } from '../generate-job.ts';
import type { Services } from '../services.ts';
import { writeEngineGauges } from './engine-gauges.ts';
import { writeLearningGauges } from './learning-gauges.ts';
import { createMetricRegistry } from './registry.ts';

/** What the server counts. */
export interface ServerMetrics {
  /** One request has been answered. */
  countRequest(route: string, status: number, seconds: number): void;
  /** Passes a job's events through and counts them. */
  observe(model: string, events: AsyncGenerator<JobEvent, void, undefined>): AsyncGenerator<JobEvent, void, undefined>;
  /** Somebody said what they think of an answer. */
  countFeedback(source: string): void;
  /** The whole text, with what the engines say of themselves right now. */
  write(state: Pick<Services, 'models' | 'gate' | 'memory' | 'learning'>): Promise<string>;
}

/** From one token of a small model to a long prompt on a slow machine. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export function createServerMetrics(): ServerMetrics {
  const registry = createMetricRegistry();
  const requests = registry.counter('ruvllm_requests_total', 'Requests by route and status.');
  const requestSeconds = registry.histogram('ruvllm_request_seconds', 'Time until the headers were sent.', SECONDS);
  const tokens = registry.counter('ruvllm_tokens_total', 'Tokens by model and kind: prompt, cached, completion.');
  const finishes = registry.counter('ruvllm_answers_total', 'Answers by model and how they ended.');
  const firstToken = registry.histogram(
    'ruvllm_time_to_first_token_seconds',
    'From the call to the first token.',
    SECONDS,
  );
  const interToken = registry.histogram(
    'ruvllm_inter_token_seconds',
    'Between two tokens, mean of an answer.',
    SECONDS,
  );

  const feedback = registry.counter('ruvllm_feedback_total', 'Feedback by where it came from.');

  function count(model: string, { finishReason, usage, timings }: FinishedEvent): void {
    finishes.add(1, { model, reason: finishReason });
    tokens.add(usage.promptTokens, { model, kind: 'prompt' });
    tokens.add(usage.cachedTokens, { model, kind: 'cached' });
    tokens.add(usage.completionTokens, { model, kind: 'completion' });
    // The engine's own times: between our events lies also how fast the client reads.
    firstToken.observe(timings.firstTokenMs / 1000, { model });
    if (usage.completionTokens > 1) {
      interToken.observe(timings.generateMs / (usage.completionTokens - 1) / 1000, { model });
    }
  }

  return {
    write: async (state) => registry.write() + (await writeEngineGauges(state)) + writeLearningGauges(state),
    countFeedback: (source) => feedback.add(1, { source }),
    countRequest(route, status, seconds) {
      requests.add(1, { route, status: String(status) });
      requestSeconds.observe(seconds, { route });
    },
    async *observe(model, events) {
      let numFinished = 0;
      try {
        for await (const event of events) {
          if (event.type === 'finished') {
            numFinished++;
            count(model, event);
          }
          yield event;
        }
      } finally {
        if (numFinished === 0) finishes.add(1, { model, reason: 'unfinished' });
      }
    },
  };
}
