import { addTotals, createMetricRegistry, type MetricFamily, writePrometheus } from '../server/metrics/registry.ts';
import type { GatewayNode } from './node-table.ts';

/** Counts of a gateway, in the text format of Prometheus. */
export interface GatewayMetrics {
  countRequest(route: string, status: number, seconds: number): void;
  countRetry(node: string): void;
  countWarmTokens(numWarm: number, numTokens: number): void;
  countRefusedEvents(node: string, reason: string): void;
  /** A note on the bus of the fleet. */
  countRefusedNote(reason: string): void;
  /** Adds a source of totals that is read for each scrape. */
  addCounter(name: string, help: string, read: () => Readonly<Record<string, number>>): void;
  collect(): readonly MetricFamily[];
  write(): string;
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export function createGatewayMetrics(nodes: readonly GatewayNode[]): GatewayMetrics {
  const registry = createMetricRegistry();
  const requests = registry.counter('ruvllm_gateway_requests_total', 'Requests by route and status.');
  const seconds = registry.histogram('ruvllm_gateway_request_seconds', 'Time until the first byte.', SECONDS);
  const retries = registry.counter('ruvllm_gateway_retries_total', 'Requests that left a node for another one.');
  const tokens = registry.counter('ruvllm_gateway_prompt_tokens_total', 'Estimated prompt tokens, by kind: all, warm.');
  const refused = registry.counter('ruvllm_gateway_refused_events_total', 'Block events refused, by node and reason.');
  const notes = registry.counter(
    'ruvllm_gateway_refused_notes_total',
    'Notes of nodes and gateways refused, by reason.',
  );
  registry.gauge('ruvllm_gateway_node_up', 'Whether a node gets requests.', () =>
    nodes.map(({ name, health }) => ({ labels: { node: name }, value: health === 'up' ? 1 : 0 })),
  );
  registry.gauge('ruvllm_gateway_node_requests', 'Requests in progress by node.', () =>
    nodes.map(({ name, numRequests }) => ({ labels: { node: name }, value: numRequests })),
  );
  return {
    countRequest(route, status, elapsedSeconds) {
      requests.add(1, { route, status: String(status) });
      seconds.observe(elapsedSeconds, { route });
    },
    countRetry: (node) => retries.add(1, { node }),
    countWarmTokens(numWarm, numTokens) {
      tokens.add(numTokens, { kind: 'all' });
      tokens.add(numWarm, { kind: 'warm' });
    },
    countRefusedEvents: (node, reason) => refused.add(1, { node, reason }),
    countRefusedNote: (reason) => notes.add(1, { reason }),
    addCounter: (name, help, read) => addTotals(registry, name, help, read),
    collect: registry.collect,
    write: () => writePrometheus(registry.collect()),
  };
}
