import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files of 30 s and more. Vitest orders by size without recorded durations, and some of these are short. */
const LONGEST = [
  'test/browser/learning.test.ts',
  'src/kernels/wasm/wasm-pack.test.ts',
  'src/kernels/reference/reference.test.ts',
  'src/kernels/native/native-pack.test.ts',
  'test/memory-commands.test.ts',
  'test/cli.test.ts',
  'test/shared-pages.test.ts',
  'test/fleet-adapters.test.ts',
  'src/platform/node/memory/postgres-store.test.ts',
  'test/learning-served.test.ts',
  'test/learning-crash.test.ts',
  'test/server/batch-client.test.ts',
  'test/learning.test.ts',
  'test/minilm.test.ts',
  'test/bench-routing.test.ts',
  'test/dashboard/endurance.test.ts',
  'test/dashboard/tab.test.ts',
  'test/browser/faults.test.ts',
  'test/browser/example.test.ts',
  'src/runtime/learning/reranking.test.ts',
  'src/platform/node/memory/crash.test.ts',
];

/** Starts the longest files first: one that starts last leaves the other worker idle. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ project, moduleId }: TestSpecification): number => {
      // An isolated file between two shared ones would end the process that they share.
      if (project.config.isolate) return -1;
      const rank = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}`));
      return rank < 0 ? LONGEST.length : rank;
    };
    return (await super.sort(files)).sort((a, b) => rankOf(a) - rankOf(b));
  }
}
