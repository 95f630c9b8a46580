import { measureBank } from './bank.ts';
import { bootstrapPercentile } from '../../../src/learning/evaluation/bootstrap.ts';
import type { Findings } from './findings.ts';
import { printTable } from '../report.ts';

export async function showBank(count: number, { figures, rows }: Findings): Promise<void> {
  const { numPatterns, p50Ms, p99Ms, times, counts, created } = await measureBank(count);
  const { low, high } = bootstrapPercentile(times, 0.99);
  const interval = `${low.toFixed(2)} … ${high.toFixed(2)}`;
  const [first, ...later] = created;
  printTable([
    ['reasoning bank', ''],
    ['patterns', String(numPatterns)],
    ['search p50, p99 ms (p99 95 %)', `${p50Ms.toFixed(2)}, ${p99Ms.toFixed(2)} (${interval})`],
    ['patterns before, and after each of four distillations', counts.join(', ')],
    ['new patterns of each', created.join(', ')],
  ]);
  figures['pattern_p99_ms'] = p99Ms;
  figures['pattern_p50_ms'] = p50Ms;
  figures['pattern_growth_without_news'] = later.reduce((sum, one) => sum + one, 0);
  const control = `${numPatterns} patterns; distilled: ${first} new, then without new data ${later.join(', ')}`;
  rows['pattern_p99_ms'] = { value: p99Ms.toFixed(2), interval, control };
}
