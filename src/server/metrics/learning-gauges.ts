import type { SonaStats } from '../../runtime/lower-layers.ts';
import type { LearningControl } from '../../runtime/learning/operations/index.ts';
import { createMetricRegistry, type MetricFamily } from './registry.ts';

/** Gauges of learning for all tenants together: name, help, values by label. */
const GAUGES: readonly (readonly [string, string, (stats: SonaStats) => readonly (readonly [string, number])[]])[] = [
  [
    'ruvllm_learning_steps',
    'Steps of the instant loop since the start, by result.',
    ({ numInstant, numInstantRefused }) => [['applied', numInstant], ['refused', numInstantRefused]], // prettier-ignore
  ],
  [
    'ruvllm_learning_versions',
    'Versions trained since the start, by decision of the acceptance gate.',
    ({ numAccepted, numRefused }) => [['accepted', numAccepted], ['refused', numRefused]], // prettier-ignore
  ],
  [
    'ruvllm_learning_runs',
    'Runs of the background and deep loops since the start.',
    ({ numBackground, numDeep }) => [['background', numBackground], ['deep', numDeep]], // prettier-ignore
  ],
];

/** Current learning metrics; empty if learning is off. */
export function readLearningGauges(learning: LearningControl | null): readonly MetricFamily[] {
  if (learning === null) return [];
  const registry = createMetricRegistry();
  const stats = learning.learning.sona.stats();
  for (const [name, help, read] of GAUGES) {
    registry.gauge(name, help, () => read(stats).map(([kind, value]) => ({ labels: { kind }, value })));
  }
  return registry.collect();
}
