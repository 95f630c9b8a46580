import type { MeterSinks } from '../../runtime/requests/request-meter.ts';
import type { MetricRegistry } from './registry.ts';

/** Bucket bounds that the conventions recommend. */
const FIRST_TOKEN = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const OUTPUT_TOKEN = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];
const DURATION = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power);

/** Metrics of the OpenTelemetry conventions for generative AI. The function passes a request's numbers on and observes them. */
export function createGenaiSinks(registry: MetricRegistry): (sinks: MeterSinks, operation: string) => MeterSinks {
  const firstToken = registry.histogram('gen_ai.server.time_to_first_token', 'Time to first token.', FIRST_TOKEN);
  const outputToken = registry.histogram('gen_ai.server.time_per_output_token', 'Time per output token after the first.', OUTPUT_TOKEN); // prettier-ignore
  const duration = registry.histogram('gen_ai.server.request.duration', 'Time to the last token.', DURATION);
  const usage = registry.histogram('gen_ai.client.token.usage', 'Input and output tokens of an answer.', TOKENS);
  const labelsOf = (model: string, operation: string) => ({
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': 'ruvllm',
    'gen_ai.response.model': model,
  });
  return (sinks, operation) => ({
    ...sinks,
    finished(model, event) {
      sinks.finished(model, event);
      const labels = labelsOf(model, operation);
      const { timings, usage: tokens } = event;
      const numLater = tokens.completionTokens - 1;
      firstToken.observe(timings.firstTokenMs / 1000, labels);
      // The mean of an answer, as the conventions define it.
      if (numLater > 0) outputToken.observe(timings.generateMs / numLater / 1000, labels);
      duration.observe((timings.firstTokenMs + timings.generateMs) / 1000, labels);
      usage.observe(tokens.promptTokens, { ...labels, 'gen_ai.token.type': 'input' });
      usage.observe(tokens.completionTokens, { ...labels, 'gen_ai.token.type': 'output' });
    },
  });
}
