import type { SonaStats } from '../../runtime/lower-layers.ts';
import type { LearningControl } from '../../runtime/learning/operations/index.ts';
import { createMetricRegistry } from './registry.ts';

/** What is read off learning: name, meaning, and each label with its value. Of all tenants together. */
const GAUGES: readonly (readonly [string, string, (stats: SonaStats) => readonly (readonly [string, number])[]])[] = [
  [
    'ruvllm_learning_steps',
    'Steps from single answers since the start, by what became of them.',
    ({ numInstant, numInstantRefused }) => [['applied', numInstant], ['refused', numInstantRefused]], // prettier-ignore
  ],
  [
    'ruvllm_learning_versions',
    'Versions that loops made since the start, by what the gate said.',
    ({ numAccepted, numRefused }) => [['accepted', numAccepted], ['refused', numRefused]], // prettier-ignore
  ],
  [
    'ruvllm_learning_runs',
    'Runs of loops since the start.',
    ({ numBackground, numDeep }) => [['background', numBackground], ['deep', numDeep]], // prettier-ignore
  ],
];

/** Learning as it is now, in the text format of Prometheus; nothing where nobody learns. */
export function writeLearningGauges(learning: LearningControl | null): string {
  if (learning === null) return '';
  const registry = createMetricRegistry();
  const stats = learning.learning.sona.stats();
  for (const [name, help, read] of GAUGES) {
    registry.gauge(name, help, () => read(stats).map(([kind, value]) => ({ labels: { kind }, value })));
  }
  return registry.write();
}
