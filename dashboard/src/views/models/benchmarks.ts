import { signal } from '@preact/signals';
import type { Benchmark } from '../../api/models.ts';
import { onSignOut } from '../../app/session.ts';

const STORAGE_KEY = 'ruvllm.benchmarks';

/** The last measurement of each model by id, kept in this browser. */
export const benchmarks = signal<Readonly<Record<string, Benchmark>>>(read());

onSignOut(() => {
  benchmarks.value = {};
  localStorage.removeItem(STORAGE_KEY);
});

export function keepBenchmark(id: string, result: Benchmark): void {
  benchmarks.value = { ...benchmarks.value, [id]: result };
  localStorage.setItem(STORAGE_KEY, JSON.stringify(benchmarks.value));
}

function read(): Readonly<Record<string, Benchmark>> {
  try {
    return JSON.parse(localStorage.getItem(STORAGE_KEY) ?? '{}') as Record<string, Benchmark>;
  } catch {
    return {};
  }
}
